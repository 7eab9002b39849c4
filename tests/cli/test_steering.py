"""The commands that steer sessions, on a real server with a worker process behind it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perdure.cli import connection
from perdure.cli.screen import width_of
from perdure.errors import ServerError
from tests.cli.conftest import Served
from tests.cli.terminal import plain, terminal
from tests.cli.test_command_line import PERDURE, perdure

VARY = {
    "session_id", "run_id", "leaf_id", "tip_id", "leave", "created_at", "id", "parent_id",
    "started_at", "input", "output", "tokens", "context_tokens",
}  # fmt: skip
"""Keys whose values differ from run to run, or are of no account here."""


def shape(line: str) -> Any:
    """A line of JSON with what differs from run to run left out."""

    def plain_value(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain_value(key, inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [plain_value(name.removesuffix("s"), inner) for inner in value]
        return "*" if name in VARY and value else value

    return plain_value("", json.loads(line))


def ids(served: Served, session_id: str) -> list[str]:
    """The IDs of the entries on the path, from the store."""
    lines = served.printed("log", session_id, "--json").splitlines()
    return [json.loads(line)["id"] for line in lines]


def test_an_answer_goes_to_standard_output_and_the_rest_beside_it(served: Served) -> None:
    status, said, errors = served.perdure("run", "r1", "Where is order 7?", "--agent", "support")
    assert (status, said) == (0, "It ships on Friday.\n")
    assert errors.splitlines()[:2] == [
        '→ find_order(order_id="7")',
        '✓ find_order {"ships": "Friday"}',
    ]
    assert re.fullmatch(r"2 turns · \d+ in, \d+ out", errors.splitlines()[2])


def test_json_of_a_run_is_an_event_a_line(served: Served) -> None:
    status, said, errors = served.perdure("run", "r2", "Hello.", "--agent", "support", "--json")
    events = [json.loads(line) for line in said.splitlines()]
    assert (status, errors) == (0, "")
    assert [event["type"] for event in events] == [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "turn_end",
        "agent_end",
    ]
    assert shape(said.splitlines()[3]) == {
        "type": "message_end",
        "run_id": "*",
        "turn": 1,
        "entries": [
            {
                "type": "message",
                "id": "*",
                "parent_id": "*",
                "created_at": "*",
                "message": {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "You said 'Hello.'"}],
                    "api": "scripted",
                    "provider": "scripted",
                    "model": "scripted",
                    "usage": {"input": "*", "output": "*"},
                    "stop_reason": "stop",
                },
            }
        ],
        "leaf_id": "*",
        "tool_call_id": "",
        "tool_name": "",
        "arguments": None,
        "is_error": False,
        "usage": None,
        "is_passing": False,
        "approved": None,
    }
    assert [event.keys() for event in events] == [events[0].keys()] * len(events)


def test_a_run_that_fails_says_so_in_both_languages(served: Served) -> None:
    status, said, errors = served.perdure("run", "r3", "break", "--agent", "support", "--json")
    assert status == 1
    assert shape(said.splitlines()[-1]) == {
        "type": "run_failed",
        "run_id": "*",
        "error": {
            "type": "ModelError",
            "message": "scripted raised RuntimeError; see the worker's log",
        },
    }
    assert errors == "perdure: scripted raised RuntimeError; see the worker's log\n"


def test_a_text_comes_from_standard_input(served: Served) -> None:
    ended = subprocess.run(
        [PERDURE, "run", "r4", "-", "--agent", "support", "--task-queue", "cli"],
        cwd=served.folder,
        env=os.environ | {"TEMPORAL_ADDRESS": served.address},
        input=b"from a \xff pipe\n",
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout.decode()) == (
        0,
        "You said 'from a \N{REPLACEMENT CHARACTER} pipe'\n",
    )


def test_what_is_appended_is_told_as_it_was_stored(served: Served) -> None:
    assert shape(served.printed("append", "p1", "I moved.", "--json")) == {
        "session_id": "*",
        "entries": [
            {
                "type": "message",
                "id": "*",
                "created_at": "*",
                "message": {
                    "role": "user",
                    "content": [{"type": "text", "text": "I moved."}],
                },
            }
        ],
    }
    note = served.printed("append", "p1", "--entry", '{"type":"custom","kind":"note","body":"VIP"}')
    assert ids(served, "p1")[-1] == note.strip()


def test_the_leaf_goes_back_and_a_fork_goes_elsewhere(served: Served) -> None:
    served.printed("append", "b1", "One.", "Two.", "Three.")
    first, second, _ = ids(served, "b1")

    # The beginning of an ID is enough.
    told = json.loads(served.printed("branch", "b1", second[:8], "--json"))
    assert told == {"session_id": "b1", "leaf_id": second}

    told = json.loads(served.printed("fork", "b1", "b1/what-if", "--json"))
    assert told == {"session_id": "b1/what-if", "parent_id": "b1", "leaf_id": told["leaf_id"]}
    assert "⑂ forked to b1/what-if\n" in served.printed("tree", "b1")
    assert served.perdure("fork", "b1", "b1/what-if")[0] == 1

    told = json.loads(served.printed("branch", "b1", first, "--before", "--json"))
    assert told == {"session_id": "b1", "leaf_id": ""}


def test_the_start_is_gone_back_to_when_it_is_asked_for_and_not_by_a_slip(served: Served) -> None:
    served.printed("append", "b2", "One.", "Two.")
    _, second = ids(served, "b2")
    for slip in ([""], [], [second, "--to-start"], ["--to-start", "--before"]):
        status, said, errors = served.perdure("branch", "b2", *slip)
        assert (status, said) == (2, "")
        assert "name the ENTRY to go back to, or say --to-start" in " ".join(errors.split())
    assert json.loads(served.printed("status", "b2", "--json"))["leaf_id"] == second
    assert served.printed("branch", "b2", "--to-start") == "leaf: before the first entry\n"


def test_a_conversation_is_compacted_once(served: Served) -> None:
    served.printed("append", "k1", "Where is order 7?", "--agent", "support")
    assert shape(served.printed("compact", "k1", "--json")) == {
        "session_id": "*",
        "entry": {
            "type": "compaction",
            "id": "*",
            "parent_id": "*",
            "created_at": "*",
            "summary": "They talked about order 7.",
            "first_kept_id": "",
            "tokens_before": 0,
        },
    }
    assert served.printed("compact", "k1") == "nothing to summarize\n"
    assert json.loads(served.printed("compact", "k1", "--json")) == {
        "session_id": "k1",
        "entry": None,
    }


def test_a_session_that_was_closed_goes_on_with_its_next_run(served: Served) -> None:
    served.printed("append", "e1", "Hello.")
    closed = {"session_id": "e1", "was_running": True}
    assert json.loads(served.printed("close", "e1", "--json")) == closed
    assert json.loads(served.printed("close", "e1", "--json")) == closed | {"was_running": False}
    assert json.loads(served.printed("status", "e1", "--json"))["state"] == "closed"
    assert served.printed("run", "e1", "Back.", "--agent", "support") == "You said 'Back.'\n"


def test_a_run_is_left_alone_watched_and_cancelled(served: Served) -> None:
    run_id = served.printed(
        "run", "c1", "Hello.", "--agent", "slow", "--run-id", "mine", "--no-wait", "--json"
    )
    assert json.loads(run_id) == {"session_id": "c1", "run_id": "mine"}
    with terminal(
        "status", "c1", "--watch", cwd=served.folder, TEMPORAL_ADDRESS=served.address
    ) as window:
        window.wait_for("running")
        assert json.loads(served.printed("cancel", "c1", "--json")) == {
            "session_id": "c1",
            "run_id": None,
        }
        window.wait_for("RunCancelledError|idle")
        window.press(b"\x03")
        assert window.end()[0] == 130
    assert served.perdure("cancel", "c1") == (
        1,
        "",
        "perdure: no run is in progress; there is nothing to cancel\n",
    )


def test_ctrl_c_leaves_a_run_and_says_how_to_come_back(served: Served) -> None:
    with terminal(
        "run", "c2", "Hello.", "--agent", "slow", "--task-queue", "cli",
        cwd=served.folder, TEMPORAL_ADDRESS=served.address,
    ) as window:  # fmt: skip
        while json.loads(served.printed("ls", "c2", "--live", "--json") or "{}").get("state") != (
            "running"
        ):
            pass
        window.press(b"\x03")
        status, said = window.end()
    assert status == 130
    assert "the run goes on; watch it with `perdure log c2 --follow`" in plain(said)
    assert "Traceback" not in said
    assert json.loads(served.printed("status", "c2", "--json"))["state"] == "running"
    served.printed("cancel", "c2")


def test_the_status_of_a_session_for_people_and_for_programs(served: Served) -> None:
    served.printed("run", "s1", "Where is order 7?", "--agent", "support")
    assert shape(served.printed("status", "s1", "--json")) == {
        "session_id": "*",
        "agent": "support",
        "state": "idle",
        "leaf_id": "*",
        "tip_id": "*",
        "doing": None,
        "queue": [],
        "waiting": 0,
        "approvals": [],
        "awaiting": 0,
        "runs": 1,
        "turns": 2,
        "usage": {"input": "*", "output": "*"},
        "context_tokens": "*",
        "last_error": None,
        "entries": 4,
        "leaves": ["*"],
    }
    assert served.printed("status", "s1").splitlines()[:3] == [
        "session  s1",
        "state    idle",
        "agent    support",
    ]
    with terminal(
        "status", "s1", cwd=served.folder, columns=20, TEMPORAL_ADDRESS=served.address
    ) as window:
        status, said = window.end()
    assert status == 0
    assert max(map(width_of, plain(said).splitlines())) <= 20


def test_live_and_stored_sessions_are_listed_and_filtered(served: Served) -> None:
    served.printed("run", "l/1", "Hello.", "--agent", "support")
    served.printed("run", "l/2", "break", "--agent", "support", "--no-wait")
    served.printed("append", "l/3", "Hello.")
    served.printed("close", "l/3")

    def listed(*options: str) -> list[tuple[str, str]]:
        lines = served.printed("ls", "l/", "--json", *options).splitlines()
        return [(told["session_id"], told["state"]) for told in map(json.loads, lines)]

    assert listed() == [("l/1", "idle"), ("l/2", "idle"), ("l/3", "stored")]
    assert listed("--live") == [("l/1", "idle"), ("l/2", "idle")]
    assert listed("--state", "stored") == [("l/3", "stored")]
    assert listed("--agent", "slow") == []
    assert listed("--limit", "1") == [("l/1", "idle")]
    assert shape(served.printed("ls", "l/1", "--json", "--ask")) == {
        "session_id": "*",
        "instance": "",
        "state": "idle",
        "agent": "support",
        "runs": 1,
        "turns": 1,
        "tokens": "*",
        "started_at": "*",
        "error": None,
    }
    with terminal(
        "ls", "l/", cwd=served.folder, columns=20, TEMPORAL_ADDRESS=served.address
    ) as window:
        status, said = window.end()
    assert status == 0
    assert max(map(width_of, plain(said).splitlines())) <= 20
    assert "l/1" in said


# ── what goes wrong ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["branch", "nobody", "abc"], "perdure: session 'nobody' is not in this store; "),
        (["cancel", "nobody"], "perdure: session 'nobody' is not in this store; "),
        (["status", "nobody"], "perdure: session 'nobody' is not in this store; "),
        (["status", "\n"], "perdure: session ID '\\n' holds a control character"),
        (["run", "w1", "Hi."], "perdure: the session has no agent yet; name the one to run "),
        (["run", "w2", "Hi.", "--agent", "x"], "perdure: no agent 'x' on this worker "),
        (["append", "w3", "--entry", "{}"], "perdure: '{}' is no entry: "),
    ],
)
def test_what_cannot_be_done_is_one_line(
    served: Served, arguments: list[str], expected: str
) -> None:
    status, said, errors = served.perdure(*arguments)
    assert (status, said) == (1, "")
    assert errors.startswith(expected)
    assert len(errors.splitlines()) == 1


def test_a_slip_in_an_id_creates_no_session(served: Served) -> None:
    for arguments in (["fork", "slip", "child"], ["compact", "slip"], ["close", "slip"]):
        assert served.perdure(*arguments)[0] == 1
    assert served.printed("ls", "slip") == "no sessions\n"


def test_nothing_waits_for_an_approval(served: Served) -> None:
    served.printed("append", "a1", "Hello.")
    status, _, errors = served.perdure("approve", "a1", "c1")
    assert (status, errors) == (
        1,
        "perdure: no tool call 'c1' waits for an approval; see the approvals in the status\n",
    )


def test_a_call_that_waits_for_a_person_is_seen_and_answered(served: Served) -> None:
    """The run goes on with the arguments that the person gave."""
    served.printed("run", "a2", "A refund, please.", "--agent", "support", "--no-wait")
    while not (waiting := json.loads(served.printed("status", "a2", "--json"))["approvals"]):
        pass
    assert [call | {"run_id": "*", "since": "*", "call_digest": "*"} for call in waiting] == [
        {
            "tool_call_id": "pay-1",
            "tool_name": "refund",
            "arguments": {"cents": 900},
            "is_cut": False,
            "run_id": "*",
            "turn": 1,
            "since": "*",
            "call_digest": "*",
        }
    ]
    assert "pay-1: refund(cents=900)" in served.printed("status", "a2")

    bad = served.perdure("approve", "a2", "pay-1", "--arguments", "[1]")
    assert bad[0] == 2
    unfit = served.perdure("approve", "a2", "pay-1", "--arguments", '{"cents": "many"}')
    assert unfit[0] == 1
    assert "cents" in unfit[2]
    said = served.printed("approve", "a2", "pay-1", "--arguments", '{"cents": 500}', "--json")
    assert json.loads(said) == {
        "session_id": "a2",
        "tool_call_id": "pay-1",
        "approved": True,
        "reason": None,
    }
    while json.loads(served.printed("status", "a2", "--json"))["state"] != "idle":
        pass
    assert "refunded 500" in served.printed("log", "a2", "--json")


def test_the_store_of_someone_else_is_noticed(served: Served) -> None:
    status, _, errors = served.perdure(
        "run", "o1", "Hi.", "--agent", "support", "--store", "files:./elsewhere"
    )
    assert status == 1
    assert errors.startswith("perdure: session 'o1' is open, but not in FileStore(")


@pytest.mark.parametrize(
    "arguments",
    [["run", "x", "Hi."], ["chat", "x"], ["status", "x"], ["ls"]],
)
def test_no_server_is_one_line(tmp_path: Path, arguments: list[str]) -> None:
    status, said, errors = perdure(*arguments, cwd=tmp_path, TEMPORAL_ADDRESS="127.0.0.1:1")
    assert (status, said) == (1, "")
    assert errors.startswith("perdure: no Temporal server answers at 127.0.0.1:1; ")
    assert len(errors.splitlines()) == 1


def test_an_address_that_is_none_is_one_line(tmp_path: Path) -> None:
    status, _, errors = perdure("ls", cwd=tmp_path, TEMPORAL_ADDRESS="not an address")
    assert (status, len(errors.splitlines())) == (1, 1)
    assert "Traceback" not in errors


async def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("TEMPORAL_ADDRESS", f"127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 0.2)
        with pytest.raises(ServerError, match="no Temporal server answered within"):
            await asyncio.wait_for(connection.connect(), 30)
