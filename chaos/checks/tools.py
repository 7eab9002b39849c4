"""What tools did in the world, and what the logs say that they did."""

from __future__ import annotations

from collections import Counter, defaultdict

from chaos.evidence import Evidence, Line, calls_of, role_of, text_of
from chaos.tools import IDEMPOTENT, REFUND
from perdure.repair import INTERRUPTED

_ATTEMPTS = 5
"""How often an idempotent tool is tried: a call that kills its worker must not kill them all."""


def other_tools_ran_at_most_once(evidence: Evidence) -> tuple[int, list[str]]:
    """A call of a tool that is not idempotent was started once at most; one that a person has to
    approve, only after they did; and none that is in no log.
    """
    started = Counter(
        note["call"] for note in evidence.of("tool started") if note["tool"] not in IDEMPOTENT
    )
    wrong = [f"{call} was started {times} times" for call, times in started.items() if times > 1]
    approved = {note["call"]: note["at"] for note in reversed(evidence.of("approved"))}
    stored = {
        call["id"]
        for log in evidence.logs.values()
        for line in log.lines
        if role_of(line) == "assistant"
        for call in calls_of(line["message"])
    }
    for note in evidence.of("tool started"):
        if note["call"] not in stored:
            wrong.append(f"{note['call']} was started, and no log has it")
        if note["tool"] == REFUND and approved.get(note["call"], note["at"]) >= note["at"]:
            wrong.append(f"{note['call']} was started, and nobody had approved it")
    return len(started), wrong


def idempotent_tools_ran_at_least_once(evidence: Evidence) -> tuple[int, list[str]]:
    """In a run that was done, each call of an idempotent tool came to its end, unless it outlived
    as many workers as it may.
    """
    ended = Counter(note["call"] for note in evidence.of("tool ended"))
    attempts: dict[str, int] = defaultdict(int)
    for note in evidence.of("tool started"):
        attempts[note["call"]] = max(attempts[note["call"]], note["attempt"])
    checked: set[str] = set()
    wrong: list[str] = []
    for note in evidence.of("run ended"):
        if note["status"] != "done":
            continue
        for line in _added(evidence, note["session"], note["start"], note["leaf"]):
            if role_of(line) != "assistant" or line["message"].get("stop_reason") == "aborted":
                continue
            for call in calls_of(line["message"]):
                if call["name"] not in IDEMPOTENT or call["id"] in checked:
                    continue
                checked.add(call["id"])
                if not ended[call["id"]] and attempts[call["id"]] < _ATTEMPTS:
                    wrong.append(f"{note['session']}: {call['id']} never ran to its end")
    return len(checked), wrong


def a_result_is_what_the_tool_said(evidence: Evidence) -> tuple[int, list[str]]:
    """A result in a log is the one of an execution that is in the tool's journal, or says what
    went wrong; and each call of a run that was done has one result on its path.
    """
    did: dict[str, set[str]] = defaultdict(set)
    for note in evidence.of("tool ended"):
        did[note["call"]].add(f"did {note['did']}")
    checked, wrong = 0, []
    for log in evidence.logs.values():
        for line in log.lines:
            if role_of(line) != "tool_result":
                continue
            checked += 1
            message, text = line["message"], text_of(line)
            told = text.removeprefix("RuntimeError: ")
            if told in did[message["tool_call_id"]]:
                continue
            if not message.get("is_error") or not (text == INTERRUPTED or "chaos says no" in text):
                wrong.append(f"{log.session_id}: {message['tool_call_id']} did not say {text!r}")
    for note in evidence.of("run ended"):
        if note["status"] == "done":
            wrong += _unanswered(
                note["session"], _added(evidence, note["session"], note["start"], note["leaf"])
            )
    return checked, wrong


def _added(evidence: Evidence, session_id: str, start: str, leaf: str) -> list[Line]:
    added: list[Line] = []
    for line in evidence.log(session_id).upwards(leaf):
        if line["id"] == start:
            break
        added.append(line)
    return added[::-1]


def _unanswered(session_id: str, path: list[Line]) -> list[str]:
    results = Counter(
        line["message"]["tool_call_id"] for line in path if role_of(line) == "tool_result"
    )
    return [
        f"{session_id}: {call['id']} has {results[call['id']]} results in a run that was done"
        for line in path
        if role_of(line) == "assistant"
        for call in calls_of(line["message"])
        if results[call["id"]] != 1
    ]
