"""A session that was started for an errand: where it begins, and what it reports."""

from __future__ import annotations

from temporalio import workflow

from perdure import names
from perdure.protocol import (
    Answer,
    Errand,
    ErrandReport,
    ErrorInfo,
    Outcome,
    ReadAnswer,
    RunCommand,
    SessionState,
)
from perdure.stamps import stamp
from perdure.workflows.failures import ActivityFailure, reason_of
from perdure.workflows.log import wire_time
from perdure.workflows.timing import LOADING


def begins_at(state: SessionState, leaf_id: str) -> str:
    """Where a session that was just loaded, and ends there, goes on.

    One that was started for an errand loads its log and stores its input in one workflow task. When
    a worker dies in that, the next one loads a log with the input in it; it is stored again in the
    same place then, which adds nothing, and not once more behind itself.
    """
    first = next(iter(state.inbox), None)
    if state.errand is None or not isinstance(first, RunCommand):
        return leaf_id
    stamped = stamp(
        first.entries,
        session_id=state.session_id,
        command_id=first.command_id,
        parent_id="",
        created_at=wire_time(),
    )
    return "" if stamped.leaf_id == leaf_id else leaf_id


async def report(errand: Errand, state: SessionState, outcome: Outcome | None) -> ErrandReport:
    """The report on the session's errand.

    The answer is read here and not by whoever asked, where other things are under way at the time.
    """
    if outcome is None:
        return ErrandReport(outcome=_never_run(errand))
    if outcome.error is not None:
        return ErrandReport(outcome=outcome)
    try:
        answer: Answer = await workflow.execute_local_activity(
            names.READ_ANSWER,
            ReadAnswer(session_id=state.session_id, leaf_id=outcome.leaf_id),
            result_type=Answer,
            summary="read the answer",
            **LOADING,
        )
    except ActivityFailure as failure:
        failed = outcome.model_copy(update={"status": "failed", "error": reason_of(failure)})
        return ErrandReport(outcome=failed)
    return ErrandReport(outcome=outcome, content=answer.content)


def _never_run(errand: Errand) -> Outcome:
    error = ErrorInfo(type="SessionClosedError", message="the session was closed before its task")
    return Outcome(command_id=errand.run_id, verb=names.RUN, status="failed", error=error)
