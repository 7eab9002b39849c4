"""What a session that was started for an errand reports: the outcome of the run, and the answer."""

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
    SessionState,
)
from perdure.workflows.failures import ActivityFailure, reason_of
from perdure.workflows.timing import LOADING


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
            **LOADING,
        )
    except ActivityFailure as failure:
        failed = outcome.model_copy(update={"status": "failed", "error": reason_of(failure)})
        return ErrandReport(outcome=failed)
    return ErrandReport(outcome=outcome, content=answer.content)


def _never_run(errand: Errand) -> Outcome:
    error = ErrorInfo(type="SessionClosedError", message="the session was closed before its task")
    return Outcome(command_id=errand.run_id, verb=names.RUN, status="failed", error=error)
