"""Why a run does not start, or does not go on."""

from __future__ import annotations

from perdure.protocol import ErrorInfo

NO_AGENT = ErrorInfo(
    type="UnknownAgentError",
    message="the session has no agent; open it with one (`agent=…`) to run it",
)

CANCELLED = ErrorInfo(
    type="RunCancelledError", message="the run was cancelled; run again to go on from its leaf"
)

NOTHING_TO_SAY = ErrorInfo(
    type="CommandError", message="the session is empty; give the run something to answer"
)


def too_many_turns(limit: int) -> ErrorInfo:
    """The run has called the model as often as it may."""
    return ErrorInfo(
        type="MaxTurnsError",
        message=f"the run stopped after {limit} turns (the agent's max_turns); "
        "run again without input to let it go on",
    )
