"""What the operating system says about a file, as an error that says what to do next."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from perdure.errors import InvalidSessionIdError, SessionNotFoundError, StoreError

_ADVICE = {
    errno.ENOENT: "choose a folder that can be made",
    errno.EACCES: "give this process access to it",
    errno.EPERM: "give this process access to it",
    errno.EROFS: "choose a folder that can be written to",
    errno.ENOSPC: "nothing was added; make room and try again",
    errno.EDQUOT: "nothing was added; make room and try again",
    errno.EFBIG: "nothing was added; raise the limit on file sizes, or go on in a fork",
    errno.ELOOP: "a log is a file inside the store's folder, links are not followed",
    errno.ENOTDIR: "name a folder for the store",
    errno.EISDIR: "move the folder that has the name of a log",
    errno.EMFILE: "raise the limit on open files",
    errno.ENOLCK: "choose a file system with locks (flock)",
}


@contextlib.contextmanager
def explained(session_id: str, path: bytes, *, creating: bool = False) -> Iterator[None]:
    """Turn an `OSError` of the block into the error that fits the session.

    Raises:
        SessionNotFoundError: there is no such file, and nobody is creating it.
        InvalidSessionIdError: this file system takes no name of that length.
        StoreError: anything else, with the file and what to do.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOENT and not creating:
            raise SessionNotFoundError(session_id) from None
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidSessionIdError(
                session_id, "makes a file name that is too long here; choose a shorter one"
            ) from error
        number = error.errno or 0
        advice = _ADVICE.get(number, "look at the disk that holds it")
        raise StoreError(
            f"{os.fsdecode(error.filename or path)}: {error.strerror or error}; {advice}"
        ) from error
