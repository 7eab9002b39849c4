"""`perdure import`: sessions of other programs, as sessions of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perdure.cli.checks import check_entries
from perdure.cli.foreign_logs import ForeignLogError, Imported
from perdure.cli.importing import read_log
from perdure.entries import CompactionEntry, Entry, MessageEntry
from perdure.messages import Message
from perdure.transcript import Transcript
from tests.cli.test_command_line import perdure

NOON = "2026-11-29T12:00:00.000Z"


def log(tmp_path: Path, *lines: dict[str, Any]) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def read(tmp_path: Path, *lines: dict[str, Any]) -> Imported:
    return read_log(log(tmp_path, *lines))


def chain(entries: list[Entry]) -> list[tuple[str, str]]:
    """Each entry with its parent."""
    return [(entry.id, entry.parent_id) for entry in entries]


def message_of(entry: Entry) -> Message:
    assert isinstance(entry, MessageEntry)
    return entry.message


# ── Claude Code ────────────────────────────────────────────────────────────────────────────────


def line(uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    """A line as Claude Code writes it."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/shop",
        "sessionId": "5f1c",
        "version": "2.1.37",
        "uuid": uuid,
        "timestamp": NOON,
    } | fields


def asks(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    said = {"role": "user", "content": content}
    return line(uuid, parent, type="user", message=said, **fields)


def answers(uuid: str, parent: str, message_id: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    """One line of an answer."""
    said = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": list(blocks),
        "stop_reason": "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 9, "cache_read_input_tokens": 100},
    }
    return line(uuid, parent, type="assistant", message=said, requestId="req_1")


def calls(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "ls"}}


def results(call_id: str, said: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": said, "is_error": False}]


TEXT = {"type": "text", "text": "I look."}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}


def test_an_answer_of_several_lines_is_one_message(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        {"type": "summary", "summary": "Shop", "leafUuid": "a3"},
        asks("u1", None, "What is here?"),
        answers("a1", "u1", "m1", THOUGHT),
        answers("a2", "a1", "m1", TEXT),
        answers("a3", "a2", "m1", calls("t1")),
        asks("u2", "a3", results("t1", "README.md"), toolUseResult={"stdout": "README.md"}),
        answers("a4", "u2", "m2", {"type": "text", "text": "A readme."}),
    )
    assert imported.session_id == "5f1c"
    assert imported.left_out == {"summary": 1}
    assert chain(imported.entries) == [("u1", ""), ("a1", "u1"), ("u2", "a1"), ("a4", "u2")]
    answer = message_of(imported.entries[1])
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_call"]
    assert answer.tool_calls[0].arguments == {"command": "ls"}
    assert answer.usage is not None
    assert (answer.usage.output, answer.usage.cache_read) == (9, 100)
    result = message_of(imported.entries[2])
    assert (result.tool_call_id, result.tool_name, result.text) == ("t1", "Bash", "README.md")


@pytest.mark.parametrize("second_parent", ["a1", "u2"])
def test_results_of_parallel_calls_follow_their_message(tmp_path: Path, second_parent: str) -> None:
    """They hang from the lines of their calls, which here are one message."""
    imported = read(
        tmp_path,
        asks("u1", None, "Look twice."),
        answers("a1", "u1", "m1", calls("t1")),
        asks("u2", "a1", results("t1", "one")),
        answers("a2", second_parent, "m1", calls("t2")),
        asks("u3", "a2", results("t2", [{"type": "text", "text": "two"}])),
        answers("a3", "u3", "m2", TEXT),
    )
    assert chain(imported.entries) == [
        ("u1", ""),
        ("a1", "u1"),
        ("u2", "a1"),
        ("u3", "u2"),
        ("a3", "u3"),
    ]
    assert check_entries(imported.entries, range(1, 6)) == []


def test_results_that_come_after_all_calls_follow_one_another(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        asks("u1", None, "Look twice."),
        answers("a1", "u1", "m1", calls("t1")),
        answers("a2", "a1", "m1", calls("t2")),
        asks("u2", "a1", results("t1", "one")),
        asks("u3", "a2", results("t2", "two")),
        answers("a3", "u3", "m2", TEXT),
    )
    assert chain(imported.entries)[1:] == [("a1", "u1"), ("u2", "a1"), ("u3", "u2"), ("a3", "u3")]


def test_several_results_in_one_line_are_entries_of_their_own(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        asks("u1", None, "Look twice."),
        answers("a1", "u1", "m1", calls("t1"), calls("t2")),
        asks("u2", "a1", [*results("t1", "one"), *results("t2", "two"), TEXT]),
        answers("a2", "u2", "m2", TEXT),
    )
    assert chain(imported.entries)[2:] == [
        ("u2", "a1"),
        ("u2.2", "u2"),
        ("u2.3", "u2.2"),
        ("a2", "u2.3"),
    ]
    assert check_entries(imported.entries, range(1, 7)) == []


def test_a_rewind_is_a_branch_and_lines_left_out_leave_no_gap(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        asks("u1", None, "First."),
        answers("a1", "u1", "m1", TEXT),
        line("s1", "a1", type="system", subtype="turn_duration"),
        asks("u2", "s1", "Second."),
        answers("a2", "u2", "m2", TEXT),
        asks("u3", "s1", "Second, otherwise."),
        asks("x1", None, "For a helper.") | {"isSidechain": True},
        line("p1", "u3", type="progress"),
        asks("u4", "p1", "<note>", isMeta=True),
    )
    assert chain(imported.entries) == [
        ("u1", ""),
        ("a1", "u1"),
        ("u2", "a1"),
        ("a2", "u2"),
        ("u3", "a1"),
        ("u4", "u3"),
    ]
    assert imported.left_out == {"system": 1, "sidechain": 1, "progress": 1}
    assert Transcript(imported.entries).leaves() == ["a2", "u4"]
    last = imported.entries[-1]
    assert isinstance(last, MessageEntry)
    assert last.meta


def test_a_compaction_goes_on_from_what_it_summarizes(tmp_path: Path) -> None:
    boundary = line("b1", None, type="system", subtype="compact_boundary")
    imported = read(
        tmp_path,
        asks("u1", None, "First."),
        answers("a1", "u1", "m1", TEXT),
        boundary | {"logicalParentUuid": "a1", "compactMetadata": {"preTokens": 155_000}},
        asks("u2", "b1", "We talked.", isCompactSummary=True),
        asks("u3", "u2", "Go on."),
    )
    assert chain(imported.entries)[2:] == [("u2", "a1"), ("u3", "u2")]
    compaction = imported.entries[2]
    assert isinstance(compaction, CompactionEntry)
    assert (compaction.summary, compaction.tokens_before) == ("We talked.", 155_000)
    view = Transcript(imported.entries).model_view()
    assert [said.text for said in view] == ["We talked.", "Go on."]


# ── pi ─────────────────────────────────────────────────────────────────────────────────────────


def pi(entry_id: str, parent: str | None, kind: str = "message", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": entry_id, "parentId": parent, "timestamp": NOON} | fields


HEADER = {"type": "session", "version": 3, "id": "pi-1", "timestamp": NOON, "cwd": "/shop"}


def test_a_tree_of_pi_is_a_tree_of_ours(tmp_path: Path) -> None:
    said = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
            {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
        ],
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
        "usage": {"input": 3, "output": 9, "cacheRead": 1, "cacheWrite": 0, "totalTokens": 13}
        | {"cost": {"input": 0.5, "output": 0, "total": 0.5}},
        "stopReason": "toolUse",
        "timestamp": 1,
    }
    result = {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "bash",
        "content": [{"type": "text", "text": "README.md"}],
        "isError": False,
    }
    shell = {"role": "bashExecution", "command": "ls", "output": "x", "exitCode": 0}
    imported = read(
        tmp_path,
        HEADER,
        pi("m0", None, "model_change", provider="anthropic", modelId="claude"),
        pi("e1", "m0", message={"role": "user", "content": "Look."}),
        pi("e2", "e1", message=said),
        pi("e3", "e2", message=result),
        pi("e4", "e3", "compaction", summary="Short.", firstKeptEntryId="e2", tokensBefore=7),
        pi("e5", "e1", "branch_summary", fromId="e4", summary="Was tried."),
        pi("e6", "e5", "custom", customType="todo", data={"open": 1}),
        pi("e7", "e6", message=shell),
    )
    assert imported.session_id == "pi-1"
    assert imported.left_out == {"model_change": 1}
    assert chain(imported.entries) == [
        ("e1", ""),
        ("e2", "e1"),
        ("e3", "e2"),
        ("e4", "e3"),
        ("e5", "e1"),
        ("e6", "e5"),
        ("e7", "e6"),
    ]
    answer = message_of(imported.entries[1])
    assert answer.usage is not None
    assert (answer.stop_reason, answer.usage.cost.total) == ("tool_use", 0.5)
    assert check_entries(imported.entries, range(1, 8)) == []
    view = Transcript(imported.entries).model_view("e4")
    assert [said.role for said in view] == ["user", "assistant", "tool_result"]


def test_an_early_log_of_pi_is_one_chain(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"type": "message", "timestamp": NOON, "message": {"role": "user", "content": said}}
        for said in ("One.", "Two.")
    ]
    imported = read(tmp_path, HEADER, *lines)
    assert chain(imported.entries) == [("line-2", ""), ("line-3", "line-2")]


# ── the command ────────────────────────────────────────────────────────────────────────────────


def test_an_imported_session_is_stored_under_an_id_that_is_free(tmp_path: Path) -> None:
    log(tmp_path, asks("u1", None, "First."), answers("a1", "u1", "m1", TEXT))
    status, said, errors = perdure("import", "log.jsonl", "--json", cwd=tmp_path)
    assert (status, errors) == (0, "")
    assert json.loads(said) == {
        "session_id": "5f1c",
        "entries": 2,
        "leaves": ["a1"],
        "leaf_id": "a1",
        "left_out": {},
    }
    status, said, errors = perdure("import", "log.jsonl", cwd=tmp_path)
    assert (status, said) == (1, "")
    assert errors.startswith("perdure: session '5f1c' exists already; ")
    assert perdure("import", "log.jsonl", "--session", "shop/1", cwd=tmp_path)[0] == 0


def test_a_log_comes_from_standard_input(tmp_path: Path) -> None:
    given = log(tmp_path, asks("u1", None, "Hello.")).read_text()
    status, said, errors = perdure("import", "-", cwd=tmp_path, given=given)
    assert (status, errors) == (0, "")
    assert said == "5f1c · 1 entry, 1 branch\n"

    nameless = json.dumps({"type": "session_init"}) + "\n"
    status, _, errors = perdure("import", "-", cwd=tmp_path, given=nameless)
    assert status == 1
    assert errors == "perdure: the log does not name its session; do it with --session\n"


def test_an_export_comes_back_as_it_was(folder: Path) -> None:
    perdure("export", "user-42", "-o", "copy.jsonl", cwd=folder)
    assert perdure("import", "copy.jsonl", "--session", "copy", cwd=folder)[0] == 0
    lines = (folder / "sessions/user-42.jsonl").read_bytes().splitlines()
    assert (folder / "sessions/copy.jsonl").read_bytes().splitlines()[1:] == lines[1:]


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"", "is no session log"),
        (b"hello\nworld\n", "line 1"),
        (b'{"type":"note"}\n', "is no session log"),
        (b'{"type":"session","id":"s"}\n{"type":"message","id":"e","message":{"role":"user"}}\n',
         "line 2 cannot be imported: "),
    ],
)  # fmt: skip
def test_what_is_no_log_is_a_clear_error(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    with pytest.raises(ForeignLogError, match=expected):
        read_log(path)


def test_a_last_line_that_was_torn_off_is_left_out(tmp_path: Path) -> None:
    path = log(tmp_path, asks("u1", None, "First."), asks("u2", "u1", "Second."))
    path.write_bytes(path.read_bytes()[:-30])
    assert chain(read_log(path).entries) == [("u1", "")]


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    status, said, errors = perdure("import", "nothing.jsonl", cwd=tmp_path)
    assert (status, said) == (1, "")
    assert errors == "perdure: nothing.jsonl: No such file or directory; name a file\n"
