"""What a workflow tells a worker that observes it. It is told once, when it happens, and not when
history is replayed; it is in no history.

Times are the workflow's, in seconds since 1970: those at which its workflow task began, so that
what happened in the task comes after.
"""

from __future__ import annotations

from dataclasses import dataclass

from perdure.protocol.activities import PlannedCall
from perdure.protocol.outcomes import Outcome
from perdure.protocol.state import ActiveRun


@dataclass(frozen=True, slots=True)
class CommandQueued:
    """A command came; so many wait now, with it."""

    verb: str
    waiting: int


@dataclass(frozen=True, slots=True)
class CommandBegun:
    """A command's turn has come, so many seconds after it was accepted."""

    verb: str
    waited: float


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run is over, as the outcome says."""

    run: ActiveRun
    outcome: Outcome
    at: float


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The model and its tools are done with a turn that began then."""

    run: ActiveRun
    began: float
    at: float


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A tool call ended of which no activity can tell: another agent answered it, or its worker
    died.

    `trace` is the span that the other agent was told of.
    """

    run: ActiveRun
    call: PlannedCall
    began: float
    at: float
    error: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalEnded:
    """A person has answered a call that waited `since` then (as entries have times)."""

    run: ActiveRun
    call: PlannedCall
    since: str
    at: float
    approved: bool


Observed = CommandQueued | CommandBegun | RunEnded | TurnEnded | CallEnded | ApprovalEnded
