"""A demo that is killed, and started again."""

from __future__ import annotations

import signal
import subprocess

import pytest

from perdure.demo.journal import Event, Journal, Note
from tests.demo.conftest import Demo


def in_both_slow_tools(note: Note) -> bool:
    return note.event is Event.TOOL_STARTED and note.subject == "count_lines"


def answered(note: Note) -> bool:
    return note.event is Event.MODEL_ANSWERED


def test_a_demo_that_was_killed_goes_on_when_it_is_started_again(demo: Demo) -> None:
    first = demo.start()
    demo.wait_for(in_both_slow_tools)
    first.kill()
    first.communicate()
    seen = [note.entry for note in Journal(demo.folder.journal).notes() if note.entry]
    log = demo.folder.log.read_bytes()

    outcome = demo.run()
    assert (outcome["resumed"], outcome["passed"]) == (True, True)
    after = demo.folder.log.read_bytes()
    assert after.startswith(log)
    assert [entry_id for entry_id in seen if entry_id.encode() not in after] == []


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_demo_that_is_told_to_end_says_how_to_go_on(
    demo: Demo, number: signal.Signals, status: int
) -> None:
    process = demo.start()
    demo.wait_for(answered)
    process.send_signal(number)
    story, errors = process.communicate(timeout=30)
    assert process.returncode == status
    assert errors == ""
    assert story.endswith(f"perdure demo --dir {demo.folder.root}\n")
    progress = demo.folder.progress()
    assert progress is not None
    assert progress.state == "running"


def test_a_reader_that_leaves_ends_the_demo_without_a_traceback(demo: Demo) -> None:
    with demo.start() as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("perdure demo")
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_a_second_demo_in_the_folder_is_refused_while_the_first_one_runs(demo: Demo) -> None:
    first = demo.start()
    demo.wait_for(lambda note: note.event is Event.DEMO_STARTED)
    second = demo.start()
    _, errors = second.communicate(timeout=30)
    first.kill()
    first.communicate()
    assert second.returncode == 1
    assert errors.startswith("perdure: a demo runs in ")
    assert len(errors.splitlines()) == 1


def test_an_unknown_model_is_refused_before_anything_starts(demo: Demo) -> None:
    process: subprocess.Popen[str] = demo.start("--model", "nobody:nothing")
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, demo.folder.root.exists()) == (1, False)
    assert errors.startswith("perdure: model 'nobody:nothing' cannot be")
    assert len(errors.splitlines()) == 1
