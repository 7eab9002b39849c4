"""Changing a log on disk: opened under a lock, written whole or not at all, flushed.

The lock is advisory (`flock` on the log itself) and ends with the process that holds it. Every call
opens a descriptor of its own, since two users of one descriptor would not exclude each other.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import stat
import sys
from collections.abc import Iterator

from perdure.stores.file_names import NAME_LIMIT

LOG_MODE = 0o644
FOLDER_MODE = 0o755

# Without a link followed at its end, no name in the folder leads to a file outside of it; and the
# open of something that is no ordinary file, such as a pipe, does not wait for its other end.
_OPEN_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_LINKS_UNSUPPORTED = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_LOCKS_UNSUPPORTED = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


@contextlib.contextmanager
def open_for_reading(path: bytes) -> Iterator[int]:
    """Open a log, without a lock.

    Raises:
        OSError: as of open(2).
    """
    descriptor = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    try:
        _check_ordinary(path, os.fstat(descriptor))
        yield descriptor
    finally:
        unlock(descriptor)
        os.close(descriptor)


def settled_status(descriptor: int) -> os.stat_result:
    """Wait until nobody writes to a log, and return its status at that moment.

    Up to that size the log holds whole appends that are on disk. Its lines never change, so the
    lock is given back at once; only a last line without a line end may be cut or completed by the
    next append, and then the lock is kept until `unlock` or the close.

    A file system without locks is read as it is: nobody can append to it through this package.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError as error:
        if error.errno not in _LOCKS_UNSUPPORTED:
            raise
    status = os.fstat(descriptor)
    if status.st_size == 0 or os.pread(descriptor, 1, status.st_size - 1) == b"\n":
        unlock(descriptor)
    return status


@contextlib.contextmanager
def open_for_writing(path: bytes) -> Iterator[int]:
    """Open a log for appending, with everyone else locked out.

    Raises:
        OSError: as of open(2) and flock(2).
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | _OPEN_FLAGS)
        try:
            _check_ordinary(path, os.fstat(descriptor))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Whoever held the lock may have moved the file away: what is written must be found.
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                yield descriptor
                return
        finally:
            unlock(descriptor)
            os.close(descriptor)


def unlock(descriptor: int) -> None:
    """Give the lock back, if there is one.

    Closing does that too, but not while a child process that was just started has a copy.
    """
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def write_or_undo(descriptor: int, data: bytes) -> None:
    """Add data to the end of a log and flush it. If that fails, the log ends where it ended before.

    Raises:
        OSError: nothing was added.
    """
    end = os.fstat(descriptor).st_size
    try:
        _write_all(descriptor, data)
        flush(descriptor)
    except BaseException:
        # After a flush that failed nobody knows what is on disk: a retry must write all of it anew.
        cut(descriptor, end)
        raise


def cut(descriptor: int, end: int) -> None:
    """Let a log end at `end`."""
    os.ftruncate(descriptor, end)


def set_aside(path: bytes, data: bytes) -> bytes:
    """Keep a torn piece of a log in a file beside it, `<name>.torn-<n>`; return its path.

    Raises:
        OSError: it could not be kept; cut nothing off.
    """
    folder, name = os.path.split(path)
    if len(name) > NAME_LIMIT - len(".torn-000000"):
        name = hashlib.sha256(name).hexdigest().encode()
    number = 0
    while True:
        number += 1
        piece = os.path.join(folder, b"%s.torn-%d" % (name, number))
        with contextlib.suppress(FileExistsError):
            _write_new(piece, data)
            flush_folder(folder)
            return piece


def publish(path: bytes, data: bytes) -> None:
    """Make a log that is complete on disk before its name exists. The name is flushed as well.

    Where the file system has no links, an empty file takes the name; that is no session yet.

    Raises:
        FileExistsError: the name is taken, by a session or by a file without a record.
        OSError: it could not be written.
    """
    folder = os.path.dirname(path)
    draft = os.path.join(folder, b".new-" + secrets.token_hex(8).encode())
    try:
        _write_new(draft, data)
        os.link(draft, path)
    except OSError as error:
        if error.errno not in _LINKS_UNSUPPORTED:
            raise
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _OPEN_FLAGS, LOG_MODE))
        raise FileExistsError(errno.EEXIST, "made without links", path) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
    flush_folder(folder)


def make_folder(path: bytes) -> None:
    """Make a folder and those above it, as far as they are missing, and flush their names.

    A folder that is there is flushed too: who made it may not have come that far.

    Raises:
        OSError: one of them could not be made.
    """
    above = os.path.dirname(path)
    if not os.path.isdir(above):
        make_folder(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, FOLDER_MODE)
    # A folder that may not be listed cannot be flushed; nothing better can be had there.
    with contextlib.suppress(PermissionError):
        flush_folder(above)


def flush(descriptor: int) -> None:
    """Wait until the data of a file is on disk, with what is needed to find it again.

    `fdatasync` leaves out only what no reader needs, such as the time of change; a new size it does
    write. macOS keeps data in the drive's own memory unless it is asked by another name.
    """
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:  # not every file system has it
            os.fsync(descriptor)
    else:
        os.fdatasync(descriptor)


def flush_folder(path: bytes) -> None:
    """Wait until the names in a folder are on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_ordinary(path: bytes, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "this is no ordinary file", path)


def _write_all(descriptor: int, data: bytes) -> None:
    # One call writes everything, but for a full disk (the next call says so) and above 2 GiB.
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _write_new(path: bytes, data: bytes) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _OPEN_FLAGS, LOG_MODE)
    try:
        _write_all(descriptor, data)
        flush(descriptor)
    finally:
        os.close(descriptor)
