"""The checker finds nothing in a run where all is well, and each property finds what breaks it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.checks import CHECKS, check_all
from chaos.checks.logs import nothing_is_there_that_nobody_produced
from chaos.checks.requests import fault_of
from chaos.evidence import Evidence, Line, Log, read_evidence, read_log
from chaos.journal import Journal

ASKED = "ask aaa do=charge,look_up rounds=1"
TIME = "2026-01-01T12:00:05Z"
CALLS = [
    {"type": "tool_call", "id": "c1", "name": "charge", "arguments": {}},
    {"type": "tool_call", "id": "c2", "name": "look_up", "arguments": {}},
]


def message(entry_id: str, parent_id: str, role: str, said: str, **more: Any) -> Line:
    calls = more.pop("calls", [])
    content = [{"type": "text", "text": said}, *calls]
    line: Line = {"type": "message", "id": entry_id, "parent_id": parent_id, "created_at": TIME}
    return line | {"message": {"role": role, "content": content} | more}


def result(entry_id: str, parent_id: str, call: str, said: str, **more: Any) -> Line:
    name = {"c1": "charge", "c2": "look_up"}[call]
    more |= {"tool_call_id": call, "tool_name": name}
    return message(entry_id, parent_id, "tool_result", said, **more)


def conversation(prefix: str = "") -> list[Line]:
    ids = ["", *(f"{prefix}e{number}" for number in range(1, 6))]
    return [
        message(ids[1], ids[0], "user", ASKED),
        message(ids[2], ids[1], "assistant", "say bbb", calls=CALLS),
        result(ids[3], ids[2], "c1", "did ddd"),
        result(ids[4], ids[3], "c2", "tool execution interrupted", is_error=True),
        message(ids[5], ids[4], "assistant", "say eee"),
    ]


def tool(kind: str, call: str, did: str, at: float, **more: Any) -> dict[str, Any]:
    name = {"c1": "charge", "c2": "look_up"}[call]
    about = {"tool": name, "session": "chaos-0", "call": call, "attempt": 1, "did": did}
    return {"kind": kind, "at": at, "by": "worker-0.0"} | about | more


class Run:
    """A run without a fault, to be spoiled: one turn with two calls, and a fork of it."""

    def __init__(self) -> None:
        self.log = conversation()
        self.child = conversation("f")
        self.receipts = [
            self.client("receipt", 10 + number, via="event", watch="w", entries=[line])
            for number, line in enumerate(copy.deepcopy(self.log))
        ]
        self.intent = self.client("intent", 1, verb="run", texts=[ASKED], command="r")
        self.run_ended = self.client(
            "run ended", 20, command="r", status="done", watch="w", start="", leaf="e5"
        ) | {"error": "", "says": ""}
        self.last_run = self.client("last run", 30, answer="fine")
        self.request: dict[str, Any] = self.client("model asked", 3, word="bbb", messages=[])
        self.request["messages"] = [line["message"] for line in conversation()[:1]]
        self.charged = [tool("tool started", "c1", "ddd", 5), tool("tool ended", "c1", "ddd", 6)]
        self.looked_up = [
            tool("tool started", "c2", "xxx", 5),
            tool("tool started", "c2", "ggg", 7, attempt=2),
            tool("tool ended", "c2", "ggg", 8, attempt=2),
        ]
        self.fork = self.client("fork sent", 21, child="chaos-0~k", entry="e5")
        self.more: list[dict[str, Any]] = []

    def client(self, kind: str, at: float, **fields: Any) -> dict[str, Any]:
        return {"kind": kind, "at": at, "by": "client-0.0", "session": "chaos-0"} | fields

    def evidence(self) -> Evidence:
        said = [("bbb", ["c1", "c2"]), ("eee", [])]
        notes = [
            {"kind": "begun", "at": 0, "wall": "2026-01-01T12:00:00"},
            self.intent,
            self.request,
            *(
                self.client(
                    "model said",
                    4,
                    text=f"say {word}",
                    calls=[call for call in CALLS if call["id"] in ids],
                )
                for word, ids in said
            ),
            *self.charged,
            *self.looked_up,
            *self.receipts,
            self.run_ended,
            self.fork,
            self.client("forked", 22, child="chaos-0~k", entry="e5"),
            self.client("all heard", 25, late=0, seconds=1),
            self.last_run,
            {"kind": "clients ended", "at": 31, "well": True},
            {"kind": "histories read", "at": 32, "runs": 7, "replayed": 7},
            {"kind": "ended", "at": 40, "wall": "2026-01-01T12:00:40"},
            *self.more,
        ]
        logs = {
            "chaos-0": Log("chaos-0", "", self.log),
            "chaos-0~k": Log("chaos-0~k", "chaos-0", self.child),
        }
        return Evidence(logs, notes)


def broken(evidence: Evidence) -> dict[str, list[str]]:
    findings = check_all(evidence)
    return {finding.property: finding.violations for finding in findings if finding.violations}


def test_a_run_in_which_all_is_well_passes_every_check() -> None:
    evidence = Run().evidence()
    assert broken(evidence) == {}
    assert len(check_all(evidence)) == len(CHECKS)


# What spoils a run; its docstring is the property that must find it.


def spoiled_by(spoil: Callable[[Run], None]) -> str:
    return (spoil.__doc__ or "").rstrip(".").lower()


def an_acknowledged_entry_is_lost(run: Run) -> None:
    """Receipts are in the store once."""
    run.log.pop()


def an_acknowledged_entry_is_stored_twice(run: Run) -> None:
    """Receipts are in the store once."""
    run.log.append(copy.deepcopy(run.log[-1]))


def an_acknowledged_entry_is_stored_otherwise(run: Run) -> None:
    """Receipts are in the store once."""
    run.log[4]["created_at"] = "2026-01-01T12:00:06Z"


def a_receipt_comes_out_of_order(run: Run) -> None:
    """Receipts have the order of the path."""
    run.receipts[2]["at"], run.receipts[3]["at"] = 13, 12
    run.receipts[2], run.receipts[3] = run.receipts[3], run.receipts[2]


def a_receipt_is_left_out(run: Run) -> None:
    """Receipts have the order of the path."""
    del run.receipts[3]


def the_last_receipt_is_left_out(run: Run) -> None:
    """Receipts have the order of the path."""
    del run.receipts[-1]


def a_receipt_follows_what_is_stored_later(run: Run) -> None:
    """Receipts have the order of the path."""
    run.log[3], run.log[4] = run.log[4], run.log[3]


def the_input_of_a_run_is_not_on_its_path(run: Run) -> None:
    """Acknowledged input is on the path of its run."""
    run.log[1]["parent_id"] = ""


def an_entry_is_there_that_nobody_sent(run: Run) -> None:
    """Nothing is there that nobody produced."""
    run.log.append(message("e6", "e5", "user", "who said that?"))


def an_answer_is_there_that_no_model_gave(run: Run) -> None:
    """Nothing is there that nobody produced."""
    run.log.append(message("e6", "e5", "assistant", "say made-up"))


def an_answer_lost_a_call(run: Run) -> None:
    """Nothing is there that nobody produced."""
    run.log[1]["message"]["content"].pop()


def an_input_is_on_a_path_twice(run: Run) -> None:
    """Nothing is twice on a path."""
    run.log.append(message("e6", "e5", "user", ASKED))


def a_result_is_on_a_path_twice(run: Run) -> None:
    """Nothing is twice on a path."""
    run.log.append(result("e6", "e5", "c1", "did ddd"))


def a_parent_is_missing(run: Run) -> None:
    """Every parent resolves."""
    run.log.append(message("e6", "e99", "user", ASKED))


def an_id_is_there_twice(run: Run) -> None:
    """Every parent resolves."""
    run.log.append(message("e5", "e4", "assistant", "say eee"))


def an_entry_has_the_time_of_a_client(run: Run) -> None:
    """Times are the servers."""
    run.log[0]["created_at"] = run.receipts[0]["entries"][0]["created_at"] = "2026-01-03T00:00:00Z"
    run.child[0]["created_at"] = "2026-01-03T00:00:00Z"


def a_fork_is_half_a_child(run: Run) -> None:
    """A fork is one complete child."""
    del run.child[3:]


def a_fork_copied_another_entry(run: Run) -> None:
    """A fork is one complete child."""
    run.child[4]["message"]["content"][0]["text"] = "say bbb"


def a_fork_shares_its_entries(run: Run) -> None:
    """A fork is one complete child."""
    run.child[:] = conversation()


def a_fork_has_another_child(run: Run) -> None:
    """A fork is one complete child."""
    run.fork["child"] = "chaos-0~other"


def a_tool_ran_twice(run: Run) -> None:
    """Other tools ran at most once."""
    run.charged.append(tool("tool started", "c1", "ddd", 9, attempt=2))


def a_tool_ran_that_no_log_has(run: Run) -> None:
    """Other tools ran at most once."""
    run.charged[0]["call"] = "c9"


def a_tool_ran_before_a_person_agreed(run: Run) -> None:
    """Other tools ran at most once."""
    run.charged[0]["tool"] = "refund"
    run.more.append(run.client("approved", 7, call="c1"))


def an_idempotent_tool_never_ran(run: Run) -> None:
    """Idempotent tools ran at least once."""
    run.looked_up.clear()


def a_result_is_of_no_execution(run: Run) -> None:
    """A result is what the tool said."""
    run.log[2]["message"]["content"][0]["text"] = "did something else"


def a_call_has_no_result(run: Run) -> None:
    """A result is what the tool said."""
    del run.log[3]
    run.log[3]["parent_id"] = "e3"


def a_model_is_sent_a_call_without_a_result(run: Run) -> None:
    """Model requests are valid."""
    run.request["messages"] = [line["message"] for line in conversation()[:2]]


def a_session_does_not_answer(run: Run) -> None:
    """No session is stuck."""
    run.last_run["answer"] = ""


def a_run_does_not_end(run: Run) -> None:
    """No session is stuck."""
    run.more.append(run.client("all heard", 26, late=1, seconds=9))


def a_client_waits_for_ever(run: Run) -> None:
    """No session is stuck."""
    run.more.append({"kind": "clients ended", "at": 50, "well": False})


def a_run_fails_because_a_worker_died(run: Run) -> None:
    """Runs fail for a reason."""
    run.run_ended |= {"status": "failed", "error": "RunFailedError", "says": "Heartbeat"}


def a_run_is_refused_though_nobody_closed_its_session(run: Run) -> None:
    """Runs fail for a reason."""
    run.run_ended |= {"status": "failed", "error": "SessionClosedError"}


def an_error_of_grpc_reaches_a_client(run: Run) -> None:
    """Clients get perdures errors only."""
    run.more.append(run.client("leaked", 9, verb="run", error="RPCError: oh"))


def a_history_does_not_replay(run: Run) -> None:
    """What one worker did the next can replay."""
    run.more.append({"kind": "replay failed", "at": 33, "workflow": "w", "says": "oh"})


def a_task_fails_again_and_again(run: Run) -> None:
    """What one worker did the next can replay."""
    cause = "WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR"
    failed = {"kind": "task failed", "at": 33, "workflow": "w", "run": "r", "cause": cause}
    run.more += [failed | {"says": "oh"}, failed | {"says": "oh"}]


SPOILED: list[Callable[[Run], None]] = [
    an_acknowledged_entry_is_lost,
    an_acknowledged_entry_is_stored_twice,
    an_acknowledged_entry_is_stored_otherwise,
    a_receipt_comes_out_of_order,
    a_receipt_is_left_out,
    the_last_receipt_is_left_out,
    a_receipt_follows_what_is_stored_later,
    the_input_of_a_run_is_not_on_its_path,
    an_entry_is_there_that_nobody_sent,
    an_answer_is_there_that_no_model_gave,
    an_answer_lost_a_call,
    an_input_is_on_a_path_twice,
    a_result_is_on_a_path_twice,
    a_parent_is_missing,
    an_id_is_there_twice,
    an_entry_has_the_time_of_a_client,
    a_fork_is_half_a_child,
    a_fork_copied_another_entry,
    a_fork_shares_its_entries,
    a_fork_has_another_child,
    a_tool_ran_twice,
    a_tool_ran_that_no_log_has,
    a_tool_ran_before_a_person_agreed,
    an_idempotent_tool_never_ran,
    a_result_is_of_no_execution,
    a_call_has_no_result,
    a_model_is_sent_a_call_without_a_result,
    a_session_does_not_answer,
    a_run_does_not_end,
    a_client_waits_for_ever,
    a_run_fails_because_a_worker_died,
    a_run_is_refused_though_nobody_closed_its_session,
    an_error_of_grpc_reaches_a_client,
    a_history_does_not_replay,
    a_task_fails_again_and_again,
]


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_what_spoils_a_run_is_found_by_its_property(spoil: Callable[[Run], None]) -> None:
    run = Run()
    spoil(run)
    assert spoiled_by(spoil) in broken(run.evidence())


def test_each_property_is_shown_to_find_something() -> None:
    shown = set(map(spoiled_by, SPOILED))
    assert shown == {check.__name__.replace("_", " ") for check in CHECKS}


USER = {"role": "user", "content": [{"type": "text", "text": "go"}]}
CALLING = {"role": "assistant", "content": CALLS[:1]}
ANSWER = {
    "role": "tool_result",
    "content": [{"type": "text", "text": "did"}],
    "tool_call_id": "c1",
    "tool_name": "charge",
}


@pytest.mark.parametrize(
    "messages, fault",
    [
        ([USER, CALLING, ANSWER], ""),
        ([], "empty"),
        ([CALLING, ANSWER], "does not begin with a question"),
        ([USER, CALLING], "ends before the results of"),
        ([USER, ANSWER], "answers no open call"),
        ([USER, CALLING, ANSWER, ANSWER], "answers no open call"),
        ([USER, CALLING, USER, ANSWER], "before the results"),
        ([USER, CALLING, ANSWER, CALLING, ANSWER], "for the second time"),
        ([USER, CALLING, ANSWER | {"tool_name": "other"}], "as 'other'"),
        ([USER, {"role": "system", "content": "be good"}], "is by 'system'"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "is empty"),
        ([USER, {"role": "assistant", "content": [{"type": "opaque"}]}], "is empty"),
    ],
)
def test_a_strict_provider_says_what_is_wrong(messages: list[Line], fault: str) -> None:
    found = fault_of(messages)
    assert fault in found
    assert bool(fault) == bool(found)


def test_a_log_is_read_line_by_line_and_what_is_broken_is_kept(tmp_path: Path) -> None:
    record = {"type": "session_init", "id": "chaos-0", "parent_id": "chaos-1"}
    path = tmp_path / "chaos-0.jsonl"
    lines = [json.dumps(record), json.dumps(message("e1", "", "user", "ask")), '{"type": "mess']
    path.write_text("\n".join(lines) + "\n")
    log = read_log(path)
    assert (log.session_id, log.parent_id, list(log.places)) == ("chaos-0", "chaos-1", ["e1"])
    assert log.broken == ['line 3: b\'{"type": "mess\'']
    _, wrong = nothing_is_there_that_nobody_produced(Evidence({"chaos-0": log}, []))
    assert wrong[0].startswith("chaos-0: line 3")


def test_journals_of_processes_that_were_killed_are_read_in_the_order_of_time(
    tmp_path: Path,
) -> None:
    (tmp_path / "sessions").mkdir()
    folder = tmp_path / "journals"
    folder.mkdir()
    one, other = Journal(folder, "one"), Journal(folder, "other")
    one.note("first")
    other.note("second")
    one.note("third")
    with other.path.open("ab") as file:
        file.write(b'{"kind": "torn", "at"')
    notes = read_evidence(tmp_path).notes
    assert [(note["kind"], note["by"]) for note in notes] == [
        ("first", "one"),
        ("second", "other"),
        ("third", "one"),
    ]
