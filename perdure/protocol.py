"""What client, workflow and activities say to each other: one model per message.

Entries travel as the JSON object of their line (`EntryJson`): the workflow stamps headers and
keeps order, and never needs an application's own types.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from temporalio.contrib.workflow_streams import WorkflowStreamState

from perdure.usage import Usage
from perdure.wire import Wire

EntryJson = dict[str, Any]
"""An entry's line as a JSON object. On its way to a run it may carry `"ephemeral": true`, which
is never stored."""

MessageJson = dict[str, Any]
"""A message of the log as a JSON object."""

MAX_COMMAND_BYTES = 1_500_000
"""The largest command, and the most that commands waiting in one session may hold together, in
bytes.

The engine carries payloads of up to 2 MB, and blocks a session for half a minute on an update that
is a little larger; what waits must also fit through a continue-as-new."""

MAX_RESULT_BYTES = 1_000_000
"""The largest tool result that is passed on, in bytes of JSON."""

MAX_QUEUE = 100
"""The most commands that may wait in one session."""

MAX_HISTORY_EVENTS = 120
"""The default length of history, in events, after which a session's workflow continues as new."""


class ErrorInfo(Wire):
    """Why a command failed: the name of one of perdure's errors, and what to do about it."""

    type: str
    message: str


# ── commands ───────────────────────────────────────────────────────────────────────────────────


class Command(Wire):
    """A verb on its way to the session. Sent twice with one `command_id`, it is done once."""

    command_id: str = ""


class OpenCommand(Command):
    """Make sure that the session exists and is loaded; name the agent that serves it from now
    on.
    """

    agent: str | None = None


class RunCommand(Command):
    """Store the entries, then run the session's agent. Without entries the run continues from
    the leaf.
    """

    verb: Literal["run"] = "run"
    entries: list[EntryJson] = []

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: object) -> object:
        return {"entries": [user_text(value)]} if isinstance(value, str) else value


class AppendCommand(Command):
    """Store the entries without a run."""

    verb: Literal["append"] = "append"
    entries: list[EntryJson]

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: object) -> object:
        return {"entries": [user_text(value)]} if isinstance(value, str) else value


class CloseCommand(Command):
    """End the workflow when everything before is done. The store keeps the session; `open`
    resumes it.
    """

    verb: Literal["close"] = "close"


QueuedCommand = Annotated[RunCommand | AppendCommand | CloseCommand, Field(discriminator="verb")]


class WaitCommand(Wire):
    """Ask for the outcome of a command, and wait for it."""

    command_id: str

    @model_validator(mode="before")
    @classmethod
    def _bare_id(cls, value: object) -> object:
        return {"command_id": value} if isinstance(value, str) else value


def user_text(text: str) -> EntryJson:
    """The entry of a bare text, as someone types it on a command line."""
    return {
        "type": "message",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
    }


# ── answers ────────────────────────────────────────────────────────────────────────────────────


class Outcome(Wire):
    """What became of a command.

    `pending` means "ask again": the workflow continued as new meanwhile. The entries that a run or
    an append added are those on the path to `leaf_id` that come after `start_id`; of these the
    first `input_count` are its input. `tip_id` is said where it is not the leaf.
    """

    command_id: str
    verb: str
    status: Literal["pending", "done", "failed"]
    start_id: str = ""
    leaf_id: str = ""
    tip_id: str | None = None
    input_count: int = 0
    turns: int = 0
    usage: Usage | None = None
    error: ErrorInfo | None = None


class Opened(Wire):
    """A session that is ready: `created` says whether this opening made it."""

    session_id: str
    agent: str | None = None
    leaf_id: str = ""
    tip_id: str = ""
    created: bool = False


class Activity(Wire):
    """What the session does right now."""

    command_id: str
    verb: str
    turn: int = 0


SessionStateName = Literal["opening", "idle", "running", "closed"]


class Status(Wire):
    """A session at a glance: small, without the transcript.

    `leaf_id` is where the next entry goes; `tip_id` is the last entry that this instance appended,
    where a reopened session would resume.
    """

    session_id: str
    agent: str | None = None
    state: SessionStateName
    leaf_id: str = ""
    tip_id: str = ""
    doing: Activity | None = None
    queue: list[Activity] = []
    runs: int = 0
    turns: int = 0
    usage: Usage = Usage()
    last_error: ErrorInfo | None = None


# ── run events on the stream ───────────────────────────────────────────────────────────────────


class EventRecord(Wire):
    """A run event as the stream carries it.

    `index` counts the events of the run from 0, so a gap shows; `start_id` and `input_count` place
    the run in the log (as in an outcome), so a gap can be filled from the store.
    """

    type: str
    run_id: str
    index: int
    start_id: str = ""
    input_count: int = 0
    turn: int = 0
    entries: list[EntryJson] = []
    leaf_id: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    arguments: dict[str, Any] | None = None
    is_error: bool | None = None
    usage: Usage | None = None
    error: ErrorInfo | None = None


# ── activities ─────────────────────────────────────────────────────────────────────────────────


class OpenSession(Wire):
    """Load the session, or create it."""

    session_id: str


class LoadedSession(Wire):
    """Where a session resumes."""

    leaf_id: str = ""
    created: bool = False


class AppendEntries(Wire):
    """Store stamped entries; a repetition adds nothing."""

    session_id: str
    entries: list[EntryJson]


class StartRun(AppendEntries):
    """Check that the agent's loop can start, then store the run's input."""

    agent: str | None = None


class RunPlan(Wire):
    """What the workflow needs to know of the loop that it drives."""

    model: str
    max_turns: int


class CallModel(Wire):
    """Ask the agent's model for the next message after the leaf."""

    session_id: str
    leaf_id: str
    agent: str
    run_id: str
    turn: int
    ephemeral: list[EntryJson] = []


class PlannedCall(Wire):
    """A tool call that the model asked for, and how it has to be run.

    `timeout` is in seconds; a call that is not idempotent runs at most once.
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    idempotent: bool = False
    timeout: float | None = None


class ModelReply(Wire):
    """The message that the model produced, and the calls in it that are ours to run."""

    message: MessageJson
    calls: list[PlannedCall] = []


class RunTool(Wire):
    """Run one tool call."""

    session_id: str
    agent: str
    run_id: str
    call: PlannedCall


class ToolReply(Wire):
    """The tool result as a message of the log."""

    message: MessageJson


# ── the workflow's own state ───────────────────────────────────────────────────────────────────


class ActiveRun(Wire):
    """The position of the run in progress: all that a worker needs to go on with it."""

    run_id: str
    agent: str
    model: str
    max_turns: int
    start_id: str
    input_count: int = 0
    ephemeral: list[EntryJson] = []
    turn: int = 0
    next_index: int = 0
    usage: Usage = Usage()


class SessionState(Wire):
    """Everything that a session's workflow carries from one run of it to the next; small and
    bounded.

    `max_history_events` is the length of history after which the workflow continues as new
    between two commands; in the middle of a run it waits longer. A worker that takes a session over
    replays up to so many. It is part of the state because a replay must decide as the first
    execution did, whatever the default is by then.
    """

    session_id: str
    max_history_events: int = MAX_HISTORY_EVENTS
    agent: str | None = None
    opened: bool = False
    created: bool = False
    leaf_id: str = ""
    tip_id: str = ""
    inbox: list[QueuedCommand] = []
    active: ActiveRun | None = None
    outcomes: list[Outcome] = []
    runs: int = 0
    turns: int = 0
    usage: Usage = Usage()
    last_error: ErrorInfo | None = None
    stream: WorkflowStreamState | None = None

    @property
    def tip_apart(self) -> str | None:
        """The tip, where it is not the leaf."""
        return self.tip_id if self.tip_id != self.leaf_id else None
