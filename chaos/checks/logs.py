"""What is in the logs has been produced, by someone, once."""

from __future__ import annotations

from collections import defaultdict

from chaos.conversation import may_end
from chaos.evidence import (
    Evidence,
    Line,
    Log,
    calls_of,
    identity_of,
    parent_of,
    role_of,
    text_of,
)
from perdure.repair import INTERRUPTED


def nothing_is_there_that_nobody_produced(evidence: Evidence) -> tuple[int, list[str]]:
    """Each entry was sent by a client, said by the model or returned by a tool, in this session or
    in one that it was forked from; and each line of a log is whole.
    """
    asked: dict[str, set[str]] = defaultdict(set)
    for note in evidence.of("intent"):
        asked[note["session"]].update(note["texts"])
    for note in evidence.of("signal sent"):
        asked[note["session"]].update(note.get("texts", ()))
    said: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for note in evidence.of("model said"):
        said[note["session"]][note["text"]] = [call["id"] for call in note["calls"]]
    checked, wrong = 0, []
    for log in evidence.logs.values():
        wrong += [f"{log.session_id}: {broken}" for broken in log.broken]
        origins = evidence.origins(log.session_id)
        known_questions = set[str]().union(*(asked[origin] for origin in origins))
        known_answers = {text: calls for origin in origins for text, calls in said[origin].items()}
        known_calls = {call for calls in known_answers.values() for call in calls}
        for line in log.lines:
            checked += 1
            if not _is_known(line, known_questions, known_answers, known_calls):
                wrong.append(f"{log.session_id}: nobody produced {line['id']}: {text_of(line)!r}")
    return checked, wrong


def _is_known(
    line: Line, questions: set[str], answers: dict[str, list[str]], calls: set[str]
) -> bool:
    text = text_of(line)
    if line.get("type") == "compaction":
        return text in answers
    match role_of(line):
        case "user":
            return text in questions
        case "assistant":
            message = line["message"]
            if message.get("stop_reason") == "aborted":
                return any(answer.startswith(text) for answer in answers)
            return answers.get(text) == [call["id"] for call in calls_of(message)]
        case "tool_result":
            return line["message"].get("tool_call_id") in calls
    return False


def nothing_is_twice_on_a_path(evidence: Evidence) -> tuple[int, list[str]]:
    """Whatever was sent twice, or stored and sent again after a crash, a path has it once.

    But for what was sent when the workflow was terminated: a client that sends it again cannot know
    that it is in the store, see `repeated_after_an_end`.
    """
    checked, wrong = 0, []
    for log in evidence.logs.values():
        by_identity: dict[str, list[Line]] = defaultdict(list)
        for line in log.lines:
            by_identity[identity_of(line)].append(line)
        checked += len(by_identity)
        for identity, lines in by_identity.items():
            wrong += [
                f"{log.session_id}: {identity!r} is twice on the path of {line['id']}"
                for line in _repeated(log, lines)
                if not (_could_end(evidence, log) and role_of(line) == "user")
            ]
    return checked, wrong


def _repeated(log: Log, lines: list[Line]) -> list[Line]:
    """Those of the lines that have another of them above."""
    ids = {line["id"] for line in lines}
    if len(ids) < 2:
        return []
    return [
        line for line in lines if any(other["id"] in ids for other in log.upwards(parent_of(line)))
    ]


def _could_end(evidence: Evidence, log: Log) -> bool:
    return may_end(evidence.origins(log.session_id)[-1])


def every_parent_resolves(evidence: Evidence) -> tuple[int, list[str]]:
    """Each entry has an ID of its own, and its parent stands before it in the log."""
    checked, wrong = 0, []
    for log in evidence.logs.values():
        before = {""}
        for line in log.lines:
            checked += 1
            if parent_of(line) not in before:
                wrong.append(f"{log.session_id}: {line['id']} has an unknown parent")
            if line["id"] in before:
                wrong.append(f"{log.session_id}: {line['id']} is there twice")
            before.add(line["id"])
    return checked, wrong


def times_are_the_servers(evidence: Evidence) -> tuple[int, list[str]]:
    """No entry is from before or after the run, whatever the clocks of clients say."""
    walls = [note["wall"][:19] for note in evidence.of("begun", "ended")]
    checked, wrong = 0, []
    for log in evidence.logs.values():
        for line in log.lines:
            checked += 1
            if not min(walls) <= line["created_at"][:19] <= max(walls):
                wrong.append(f"{log.session_id}: {line['id']} is of {line['created_at']}")
    return checked, wrong


def repeated_after_an_end(evidence: Evidence) -> int:
    """Inputs that follow themselves, because the workflow was terminated when the store had them
    and their client had not heard of it.
    """
    return sum(
        role_of(line) == "user" and text_of(log.get(parent_of(line)) or {}) == text_of(line)
        for log in evidence.logs.values()
        for line in log.lines
        if not log.parent_id
    )


def copies_on_dead_branches(evidence: Evidence) -> int:
    """Entries that a crash between the store's commit and the engine's record left behind, because
    what was done again came in another order. Not an error: no path has one twice.
    """
    copies = 0
    for log in evidence.logs.values():
        copies += len(log.lines) - len({identity_of(line) for line in log.lines})
    return copies


def interrupted_calls(evidence: Evidence) -> int:
    """Results that tell of an interruption."""
    return sum(
        role_of(line) == "tool_result" and text_of(line) == INTERRUPTED
        for log in evidence.logs.values()
        for line in log.lines
    )
