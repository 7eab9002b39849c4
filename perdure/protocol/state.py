"""What a session's workflow carries from one run of it to the next."""

from __future__ import annotations

from typing import Any

from temporalio.contrib.workflow_streams import WorkflowStreamState

from perdure.protocol.activities import PlannedCall
from perdure.protocol.commands import (
    MAX_COMMAND_BYTES,
    ApproveCommand,
    EntryJson,
    QueuedCommand,
    RunCommand,
)
from perdure.protocol.events import RunPlace
from perdure.protocol.outcomes import ErrorInfo, Outcome
from perdure.protocol.output import OutputSpec
from perdure.protocol.said import Said
from perdure.usage import Usage
from perdure.wire import Wire, always

MAX_HISTORY_EVENTS = 140
"""The default length of history, in events, after which a session's workflow continues as new."""


TIMES_IN_A_RUN = 3
"""How many times longer history may become in the middle of a run, unless told otherwise: whoever
waits for the run has to ask again after a continue-as-new, which is dear."""


class OpenCall(Wire):
    """A tool call of the turn in progress that has no result yet.

    One that needs an approval has a `call_digest`, and waits since then for a person. `proposal` is
    an answer with other arguments, while these are checked. With `is_answered` the call may run:
    as it was, with the arguments that a person gave it (`is_edited`), or not at all, and then the
    model is told of the `refusal` instead.
    """

    call: PlannedCall
    since: str = ""
    call_digest: str = ""
    proposal: ApproveCommand | None = None
    is_answered: bool = False
    is_edited: bool = False
    refusal: str = ""

    @property
    def is_awaited(self) -> bool:
        """Whether the call cannot run before a person has answered."""
        return self.call.needs_approval and not self.is_answered


class ActiveRun(Wire):
    """The position of the run in progress: all that a worker needs to go on with it.

    `output_faults` counts the answers that were not the output which the run asked for. A run that
    is traced has the `trace` of its own span, the ID of the span that it was sent from (`caller`),
    when it was accepted (seconds since 1970), and the spans that it is linked to.
    """

    run_id: str
    digest: str = ""
    agent: str
    model: str
    max_turns: int
    compact_at_tokens: int | None = None
    is_loop: bool = False
    stream: bool = False
    output: OutputSpec | None = None
    output_faults: int = 0
    start_id: str
    input_count: int = 0
    ephemeral: list[EntryJson] = []
    turn: int = 0
    next_index: int = 0
    usage: Usage = Usage()
    is_cancelled: bool = False
    restarts: int = 0
    joined: list[Outcome] = []
    calls: list[OpenCall] = []
    tools: str = ""
    trace: str = ""
    caller: str = ""
    accepted_at: float = 0.0
    links: list[str] = []

    def watched_place(self, call: int = 0) -> RunPlace | None:
        """Where watchers are told what is under way; nowhere unless the run streams. `call` counts
        the model calls of one turn.
        """
        if not self.stream:
            return None
        return RunPlace(
            run_id=self.run_id,
            start_id=self.start_id,
            input_count=self.input_count,
            turn=self.turn,
            next_index=self.next_index,
            call=call,
        )


class Errand(Wire):
    """What a sub-agent's session was started for: a run, on which the workflow's result
    reports.

    `depth` counts the sessions above it.
    """

    parent_id: str
    run_id: str
    depth: int


class ErrandReport(Wire):
    """What came of an errand: the outcome of its run, and the content of the answer."""

    outcome: Outcome
    content: list[dict[str, Any]] = []


class EventMark(Wire):
    """Where a lifecycle event stands in the stream, and when it was published (seconds)."""

    offset: int
    at: float


class SessionState(Wire):
    """Everything that a session's workflow carries from one run of it to the next; bounded.

    `max_history_events` is the length of history after which the workflow continues as new,
    between two commands, `max_history_events_in_run` that between two turns of a run. A worker that
    takes a session over replays up to so many. They are part of the state because a replay must
    decide as the first execution did, whatever the defaults are by then.
    `max_command_bytes` is what a command, and all that wait, may hold together.
    `owed` are the commands whose senders were told to ask again, at a continue-as-new.
    `idle_timeout` (seconds) is how long a session without anything to do keeps its workflow; None:
    for ever. `forked_by` is the span of the fork that made the session, if it was traced.
    `said` and `forks` are what was said last and which forks were made last, for people who look
    on; `hides_text` and `has_attributes` are as in `SeenOutside`.
    """

    session_id: str
    instance: str = ""
    errand: Errand | None = None
    max_history_events: int = always(MAX_HISTORY_EVENTS)
    max_history_events_in_run: int = always(MAX_HISTORY_EVENTS * TIMES_IN_A_RUN)
    max_command_bytes: int = MAX_COMMAND_BYTES
    idle_timeout: float | None = None
    forked_by: str = ""
    agent: str | None = None
    opened: bool = False
    created: bool = False
    leaf_id: str = ""
    tip_id: str = ""
    inbox: list[QueuedCommand] = []
    steering: list[RunCommand] = []
    active: ActiveRun | None = None
    outcomes: list[Outcome] = []
    owed: list[str] = []
    runs: int = 0
    turns: int = 0
    usage: Usage = Usage()
    context_tokens: int = 0
    last_error: ErrorInfo | None = None
    stream: WorkflowStreamState | None = None
    recent_events: list[EventMark] = []
    parent_id: str = ""
    said: list[Said] = []
    forks: list[str] = []
    hides_text: bool = False
    has_attributes: bool = False

    @property
    def tip_apart(self) -> str | None:
        """The tip, where it is not the leaf."""
        return self.tip_id if self.tip_id != self.leaf_id else None
