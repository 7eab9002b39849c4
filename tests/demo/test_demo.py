"""The whole demo: what it says, what it leaves behind, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import signal
import urllib.request
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from perdure.client import Sessions
from perdure.demo.folder import Folder
from perdure.demo.journal import Event, Journal, Note
from perdure.demo.project import Project
from perdure.entries import Entry, MessageEntry
from perdure.protocol import Status
from perdure.stores.files import FileStore
from perdure.transcript import Transcript
from tests.demo.conftest import Demo


@dataclass(frozen=True, slots=True)
class Performance:
    """A demo that ended: with what status and outcome, and what it said.

    `page` is what the Temporal UI served while the demo kept it up, and `kept` what the session's
    workflow said of itself then.
    """

    root: str
    status: int
    outcome: dict[str, Any]
    story: str
    page: str
    kept: dict[str, Any]

    @property
    def folder(self) -> Folder:
        return Folder(Path(self.root))

    @property
    def entries(self) -> list[Entry]:
        return asyncio.run(FileStore(self.folder.sessions).load_entries("interrupted"))

    @property
    def notes(self) -> list[Note]:
        return Journal(self.folder.journal).notes()


@pytest.fixture(scope="module")
def performance(tmp_path_factory: pytest.TempPathFactory) -> Performance:
    """One for all of these tests, in however many processes they run."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "performance.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = shared / "performance.json"
        if not record.exists():
            record.write_text(json.dumps(asdict(perform(shared / "performance"))))
        return Performance(**json.loads(record.read_text()))


def perform(root: Path) -> Performance:
    """A demo with --keep, looked at while it is kept up, then told to end."""
    demo = Demo(Folder(root))
    with demo.start("--keep", "--json") as process:
        assert process.stdout is not None
        outcome = json.loads(process.stdout.readline())
        kept = asyncio.run(status_at(outcome["server"], demo.folder))
        with urllib.request.urlopen(outcome["workflow_url"], timeout=30) as response:
            page = response.read().decode()
        process.send_signal(signal.SIGTERM)
        _, story = process.communicate(timeout=30)
    assert demo.is_left_alone()
    return Performance(
        str(root), process.returncode, outcome, story, page, kept.model_dump(mode="json")
    )


async def status_at(address: str, folder: Folder) -> Status:
    client = await Client.connect(address)
    session = await Sessions(client, FileStore(folder.sessions)).open("interrupted")
    return await session.status()


def test_it_ends_with_status_0_in_under_a_minute_and_all_checks_hold(
    performance: Performance,
) -> None:
    outcome = performance.outcome
    assert performance.status == 0, performance.story
    assert outcome["seconds"] < 60
    assert (outcome["passed"], outcome["resumed"], outcome["model"]) == (True, False, "script")
    assert {check["name"]: check["passed"] for check in outcome["checks"]} == {
        "nothing_rewritten": True,
        "nothing_lost": True,
        "nothing_twice": True,
        "calls_answered": True,
        "model_asked_once": True,
        "ran_again": True,
        "ran_once": True,
    }


def test_two_workers_were_killed_and_a_third_one_finished(performance: Performance) -> None:
    workers = performance.outcome["workers"]
    assert [(worker["number"], worker["killed"]) for worker in workers] == [
        (1, True),
        (2, True),
        (3, False),
    ]
    assert len({worker["pid"] for worker in workers}) == 3


def test_the_model_was_asked_once_but_for_the_call_whose_worker_was_killed(
    performance: Performance,
) -> None:
    asked = Counter(note.call for note in performance.notes if note.event is Event.MODEL_ASKED)
    [killed] = [call for call, count in asked.items() if count == 2]
    assert sorted(asked.values()) == [1] * (len(asked) - 1) + [2]
    attempts = [
        (note.worker, note.attempt, note.event) for note in performance.notes if note.call == killed
    ]
    assert attempts == [
        (2, 1, Event.MODEL_ASKED),
        (3, 2, Event.MODEL_ASKED),
        (3, 2, Event.MODEL_ANSWERED),
    ]


def test_the_idempotent_tool_ran_again_and_the_other_did_not(performance: Performance) -> None:
    starts = [
        (note.subject, note.worker, note.attempt)
        for note in performance.notes
        if note.event is Event.TOOL_STARTED and note.subject in ("count_lines", "send_report")
    ]
    assert sorted(starts) == [("count_lines", 1, 1), ("count_lines", 2, 2), ("send_report", 1, 1)]
    assert len(performance.folder.mailbox.read_text().splitlines()) == 1
    assert results_of("send_report", performance.entries) == ["tool execution interrupted"]
    [counted] = results_of("count_lines", performance.entries)
    assert re.fullmatch(r"[\d,]+ lines in \d+ files", counted)


def results_of(tool: str, entries: list[Entry]) -> list[str]:
    return [
        entry.message.text
        for entry in entries
        if isinstance(entry, MessageEntry) and entry.message.tool_name == tool
    ]


def test_the_log_begins_with_the_other_programs_lines_and_is_one_branch(
    performance: Performance,
) -> None:
    given = (Path(__file__).parents[2] / "perdure" / "demo" / "interrupted.jsonl").read_bytes()
    assert performance.folder.log.read_bytes().startswith(given)
    transcript = Transcript(performance.entries)
    assert [entry.id for entry in transcript.path()] == [entry.id for entry in performance.entries]
    assert transcript.leaves() == [performance.outcome["leaf_id"]]


def test_every_receipt_is_told_and_then_the_tree(performance: Performance) -> None:
    receipts, tree = performance.story.split("The log as a tree")
    added = [entry.id for entry in performance.entries[6:]]
    assert re.findall(r"^ ✓ ([0-9a-f]{16})  ", receipts, re.MULTILINE) == added
    told = re.findall(r"^   [●◆] ([0-9a-f]{16})  ", tree, re.MULTILINE)
    assert told == [entry.id for entry in performance.entries]


def test_the_orphaned_call_is_shown_and_its_file_is_not_mended(performance: Performance) -> None:
    story = " ".join(performance.story.split())
    assert 'search(path="perdure", pattern="fsync") has no result' in story
    assert "call_3" not in [
        entry.message.tool_call_id
        for entry in performance.entries
        if isinstance(entry, MessageEntry)
    ]


def test_what_the_agent_says_is_true_of_the_files(performance: Performance) -> None:
    answers = [
        entry.message.text
        for entry in performance.entries[6:]
        if isinstance(entry, MessageEntry) and entry.message.role == "assistant"
    ]
    found = re.findall(r"(perdure/\S+):(\d+)", answers[1])
    lines = [
        Project.here().find(path).read_text().splitlines()[int(number) - 1]
        for path, number in found
    ]
    assert ["fsync" in lines[0], "O_APPEND" in lines[1]] == [True, True]


def test_the_story_says_where_the_log_and_the_workflow_are(performance: Performance) -> None:
    assert str(performance.folder.log) in performance.story
    assert performance.outcome["workflow_url"] in performance.story


def test_keep_leaves_server_ui_and_a_worker_up(performance: Performance) -> None:
    assert "<html" in performance.page
    assert (performance.kept["state"], performance.kept["runs"]) == ("idle", 4)
    assert performance.kept["leaf_id"] == performance.outcome["leaf_id"]


def test_a_pipe_gets_no_colour_and_no_line_that_is_wider_than_the_terminal(
    performance: Performance,
) -> None:
    assert "\x1b" not in performance.story
    own_words = re.sub(r"^ +(log|server|UI|journal) .*$", "", performance.story, flags=re.MULTILINE)
    assert max(map(len, own_words.splitlines())) <= 110
