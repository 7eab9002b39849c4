"""Real processes at one log: side by side, killed in the middle, and out of room."""

from __future__ import annotations

import json
import random
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from perdure.errors import StoreError
from perdure.stores import FileStore
from tests.stores.appender import call_entries
from tests.stores.logs import ids, notes

PROJECT = Path(__file__).parent.parent.parent


class Appender:
    """An `appender.py` of its own process, ready to start."""

    def __init__(self, root: Path, name: str, *, calls: int, size: int) -> None:
        arguments = [str(root), "s", name, str(calls), str(size)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.stores.appender", *arguments],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def await_ready(self) -> None:
        assert self.line() == "ready"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def rest(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout.read().split()


def run_together(root: Path, names: list[str], *, calls: int, size: int) -> list[list[str]]:
    """What the processes print that start at the same moment and go on to their end."""
    with ExitStack() as stack:
        appenders = [
            stack.enter_context(Appender(root, name, calls=calls, size=size)) for name in names
        ]
        for appender in appenders:
            appender.await_ready()
        for appender in appenders:
            appender.go()
        outputs = [appender.rest() for appender in appenders]
        assert [appender.process.wait() for appender in appenders] == [0] * len(names)
    return outputs


async def test_processes_that_append_to_one_log_lose_nothing(tmp_path: Path) -> None:
    """2.1, 2.8: every call in one piece, in the order of its process; one creates the session."""
    outputs = run_together(tmp_path, ["x", "y"], calls=200, size=3)
    assert sorted(output[0] for output in outputs) == ["created", "exists"]
    found = ids(await FileStore(tmp_path).load_entries("s"))
    calls = [found[index].rsplit("-", 1)[0] for index in range(0, len(found), 3)]
    assert found == [f"{call}-{part}" for call in calls for part in range(3)]
    for name in ("x", "y"):
        assert [c for c in calls if c.startswith(name)] == [f"{name}-{n}" for n in range(200)]
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


@pytest.mark.parametrize("torn", [None, b"", b'{"type":"sess'])
async def test_of_processes_that_create_one_session_exactly_one_succeeds(
    tmp_path: Path, torn: bytes | None
) -> None:
    """2.1, 2.7: also where the folder is not there yet, and where a torn first line is."""
    root = tmp_path / "root"
    if torn is not None:
        root.mkdir()
        (root / "s.jsonl").write_bytes(torn)
    outputs = run_together(root, ["p0", "p1", "p2"], calls=1, size=1)
    assert sorted(output[0] for output in outputs) == ["created", "exists", "exists"]
    found = ids(await FileStore(root).load_entries("s"))
    assert sorted(found) == ["p0-0-0", "p1-0-0", "p2-0-0"]


async def test_what_was_acknowledged_survives_sigkill_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    """2.6, 2.7, 2.8: killed at any moment; the call that was cut off is completed by its retry."""
    moments = random.Random(7)
    store = FileStore(tmp_path)
    expected: list[str] = []
    for attempt in range(8):
        name, size = f"k{attempt}", moments.choice([1, 4, 400])
        with Appender(tmp_path, name, calls=0, size=size) as appender:
            appender.await_ready()
            appender.go()
            lines = [appender.line() for _ in range(1 + moments.randrange(12))]
            appender.process.kill()
            acknowledged = sum(line.isdigit() for line in lines + appender.rest())
        found = ids(await store.load_entries("s"))
        calls = [call_entries(name, call, size) for call in range(last_call(found, name) + 1)]
        whole = expected + [entry.id for call in calls for entry in call]
        assert found == whole[: len(found)]
        assert len(found) >= len(expected) + size * acknowledged
        await store.append_entries("s", calls[-1])
        assert ids(await store.load_entries("s")) == whole
        assert ids(await FileStore(tmp_path).load_entries("s")) == whole
        expected = whole


def last_call(found: list[str], name: str) -> int:
    """The number of the last call of which there is anything, or 0."""
    return max([int(entry.split("-")[1]) for entry in found if entry.startswith(f"{name}-")] or [0])


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size` bytes meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 60, 500])
async def test_an_append_that_runs_out_of_room_adds_nothing(tmp_path: Path, room: int) -> None:
    """2.1, 2.7: a short write is undone, the error says so, and the session stays usable."""
    store = FileStore(tmp_path)
    await store.create_session("s")
    await store.append_entries("s", notes("e1"))
    path = tmp_path / "s.jsonl"
    before = path.read_bytes()
    entries = notes("e2", "e3", "e4", "e5", "e6")
    with largest_file(len(before) + room), pytest.raises(StoreError) as caught:
        await store.append_entries("s", entries)
    assert str(caught.value) == (
        f"{path}: File too large; nothing was added; raise the limit on file sizes, or go on in a"
        " fork"
    )
    assert path.read_bytes() == before
    assert ids(await store.load_entries("s")) == ["e1"]
    await store.append_entries("s", entries)
    assert ids(await store.load_entries("s")) == ["e1", "e2", "e3", "e4", "e5", "e6"]


def test_a_full_disk_is_said_and_the_session_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """2.1, 2.7: on a file system of 64 kB, where this user may make one."""
    mount = 'mount -t tmpfs -o size=64k tmpfs "$0"'
    small = ["unshare", "--map-root-user", "--mount", "sh", "-ec"]
    if shutil.which("unshare") is None or subprocess.run([*small, mount, tmp_path]).returncode:
        pytest.skip("this user may not mount")
    program = f'{mount}; exec {shlex.quote(sys.executable)} -m tests.stores.full_disk "$0"'
    ended = subprocess.run(
        [*small, program, tmp_path], cwd=PROJECT, check=True, capture_output=True, text=True
    )
    assert json.loads(ended.stdout) == {
        "said": "LOG: No space left on device; nothing was added; make room and try again",
        "is_whole": True,
        "kept": True,
        "then": True,
    }


async def test_a_torn_piece_that_cannot_be_kept_is_not_cut_off(tmp_path: Path) -> None:
    """2.7: nothing is thrown away."""
    store = FileStore(tmp_path)
    await store.create_session("s")
    path = tmp_path / "s.jsonl"
    with path.open("ab") as log:
        log.write(b"x" * 1000)
    before = path.read_bytes()
    with largest_file(500), pytest.raises(StoreError):
        await store.append_entries("s", notes("e1"))
    assert path.read_bytes() == before
    await store.append_entries("s", notes("e1"))
    assert ids(await store.load_entries("s")) == ["e1"]
    assert b"x" * 1000 in [piece.read_bytes() for piece in tmp_path.glob("*.torn-*")]
