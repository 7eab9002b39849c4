"""The demo's folder: it is the demo's alone, and nothing that the demo did not make is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.demo.folder import Folder, Progress
from perdure.errors import DemoError

RUNNING = Progress("running", "script", "1")


def names(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_clearing_deletes_what_the_demo_made_and_nothing_else(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "demo")
    with folder.taken():
        folder.save(RUNNING)
        folder.put_log()
    for made in ("temporal.db", "temporal.db-wal", "journal.jsonl", "reports.jsonl", "worker.log"):
        (folder.root / made).touch()
    (folder.sessions / "interrupted.jsonl.torn-1").touch()
    theirs = {"notes.txt", "sessions/mine.jsonl"}
    for name in theirs:
        (folder.root / name).touch()
    folder.clear()
    assert names(folder.root) == theirs | {"demo.json", "demo.lock", "processes.lock"}


def test_a_folder_that_holds_other_things_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years")
    with pytest.raises(DemoError, match=r"thesis\.txt.*--dir"), Folder(tmp_path).taken():
        pass
    assert names(tmp_path) == {"thesis.txt"}


def test_two_demos_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "demo")
    with folder.taken(), pytest.raises(DemoError, match="a demo runs in"), folder.taken():
        pass
    with folder.taken():
        pass


def test_a_file_in_the_place_of_the_folder_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DemoError, match="--dir"), Folder(tmp_path / "file").taken():
        pass


def test_the_log_is_put_there_once_and_its_store_reads_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "demo")
    with folder.taken():
        given = folder.put_log()
        folder.log.write_bytes(given + b"{}\n")
        assert folder.put_log() == given
        assert folder.log.read_bytes() == given + b"{}\n"


def test_progress_is_what_was_saved_last(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "demo")
    with folder.taken():
        assert folder.progress() is None
        folder.save(RUNNING)
        assert folder.progress() == RUNNING
