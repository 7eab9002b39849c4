"""Sessions go on: they answer, and fail only for a reason that is theirs to give."""

from __future__ import annotations

from collections import Counter

from chaos.conversation import may_end
from chaos.evidence import Evidence

_ANY_TIME = frozenset({"RunCancelledError", "UnknownCommandError"})
"""A run may be cancelled; and a client that comes back may ask for one that is long forgotten."""

_WHERE_IT_MAY_END = frozenset({"SessionClosedError"})

BENIGN = frozenset(
    {
        "WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND",
        "WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE",
        "WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND",
    }
)
"""What the server does by itself: a message arrived while the workflow was about to continue as
new, or a worker was gone."""


def no_session_is_stuck(evidence: Evidence) -> tuple[int, list[str]]:
    """When the faults are over, everything that was begun comes to an end, and each session answers
    a last run, within the deadline.
    """
    answered = {note["session"]: note["answer"] for note in evidence.of("last run")}
    sessions = sorted({note["session"] for note in evidence.of("intent", "last run")})
    wrong = [
        f"{session_id} did not answer" for session_id in sessions if not answered.get(session_id)
    ]
    wrong += [
        f"{note['session']}: {note['late']} runs were not over"
        for note in evidence.of("all heard")
        if note["late"]
    ]
    wrong += ["clients did not end" for note in evidence.of("clients ended") if not note["well"]]
    if not evidence.of("clients ended"):
        wrong.append("the run did not come to its end")
    return len(sessions), wrong


def runs_fail_for_a_reason(evidence: Evidence) -> tuple[int, list[str]]:
    """A run fails when it was cancelled, when its session's workflow was ended, or when there was
    nothing to answer; for nothing else.
    """
    ended = evidence.of("run ended")
    wrong: list[str] = []
    for note in ended:
        allowed = _ANY_TIME | (_WHERE_IT_MAY_END if may_end(note["session"]) else frozenset())
        if "the session is empty" in note["says"]:
            continue  # someone went back to before the first entry
        if note["error"] and note["error"] not in allowed:
            wrong.append(
                f"{note['session']}: run {note['command']}: {note['error']}: {note['says']}"
            )
    return len(ended), wrong


def clients_get_perdures_errors_only(evidence: Evidence) -> tuple[int, list[str]]:
    """Whatever goes wrong, a client hears of it by an error that perdure has a name for."""
    leaked = evidence.of("leaked")
    wrong = [f"{note['session']}: {note['verb']} raised {note['error']}" for note in leaked]
    return len(leaked) + len(evidence.of("refused")), wrong


def what_one_worker_did_the_next_can_replay(evidence: Evidence) -> tuple[int, list[str]]:
    """Histories replay, and no run of a workflow fails more than one task by itself.

    One it may: when a task was lost with the server or in a frozen worker, the SDK at times finds
    out that way that what it has of the workflow is of no use, and drops it.
    """
    failed = [note for note in evidence.of("task failed") if note["cause"] not in BENIGN]
    times = Counter(note["run"] for note in failed)
    wrong = [
        f"{note['workflow']}: {note['cause']}, {times[note['run']]} times: {note['says']}"
        for note in failed
        if times[note["run"]] > 1
    ]
    wrong += [
        f"{note['workflow']} does not replay: {note['says']}"
        for note in evidence.of("replay failed")
    ]
    return sum(note["replayed"] for note in evidence.of("histories read")), wrong
