"""Commands: the verbs on their way to a session."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from perdure.protocol.output import OutputSpec
from perdure.wire import Wire, always

EntryJson = dict[str, Any]
"""An entry's line as a JSON object. On its way to a run it may carry `"ephemeral": true`, which is
never stored."""

MessageJson = dict[str, Any]
"""A message of the log as a JSON object."""

MAX_COMMAND_BYTES = 1_500_000
"""The largest command, and the most that commands waiting in one session may hold together, in
bytes.

The engine carries payloads of up to 2 MB, and blocks a session for half a minute on an update that
is a little larger; what waits must also fit through a continue-as-new."""

MAX_COMMAND_ID = 200
"""The longest command ID, in characters. A session remembers the IDs of what it did."""

MAX_REASON = 10_000
"""The longest reason for a denial, in characters."""

MAX_APPROVAL_BYTES = 200_000
"""The most that the arguments of the calls in one message may hold together when some of them wait
for a person, and the most that one's changed arguments may hold, in bytes of JSON. They are carried
while they wait."""

MAX_IDLE_TIMEOUT = 10 * 365 * 86_400
"""The longest that a session may be told to stay when it has nothing to do, in seconds."""

MAX_QUEUE = 5_000
"""The most commands that may wait in one session."""


class Command(Wire):
    """A verb on its way to the session. Sent twice with one `command_id`, it is done once.

    Whoever types one by hand may send its one field as a bare JSON value; a field that no command
    has is refused, so that a slip is not taken for consent.

    `trace` is the span that the command comes from, as a W3C traceparent, if it is traced. It
    normally comes in a header; the session then also notes when it took the command (`accepted_at`,
    seconds since 1970).
    """

    model_config = ConfigDict(extra="forbid")

    bare: ClassVar[str] = ""
    """The field that a bare value stands for."""

    command_id: str = Field(default="", max_length=MAX_COMMAND_ID)
    trace: str = ""
    accepted_at: float = 0.0

    @model_validator(mode="before")
    @classmethod
    def _from_bare(cls, value: object) -> object:
        if value is None:
            return {}
        if cls.bare and not isinstance(value, dict):
            return {cls.bare: value}
        return value

    def digest(self) -> str:
        """What the command asks for, in 16 characters: the same ID with another digest is a
        mistake. In which order the sender had the keys of an object is of no account.
        """
        content = self.model_copy(update={"command_id": "", "trace": "", "accepted_at": 0.0})
        return hashlib.sha256(content.to_json(sort_keys=True)).hexdigest()[:16]


class OpenCommand(Command):
    """Make sure that the session exists and is loaded; name the agent that serves it from now
    on, and how large a command may be.
    """

    agent: str | None = None
    max_command_bytes: int = MAX_COMMAND_BYTES
    idle_timeout: float | None = Field(default=None, gt=0, le=MAX_IDLE_TIMEOUT)


WhenBusy = Literal["queue", "reject", "steer"]


class RunCommand(Command):
    """Store the entries, then run the session's agent. Without entries the run continues from the
    leaf.

    While another command is being done, it waits its turn (`queue`), is refused (`reject`), or, if
    that is a run, joins it before its next model call (`steer`).
    With `stream` the model answers piece by piece, and a run that is cancelled keeps what it said.
    With `output` the last answer is JSON that fits a schema; such a run joins no other, but waits.
    """

    bare: ClassVar[str] = "entries"

    verb: Literal["run"] = always("run")
    entries: list[EntryJson] = []
    when_busy: WhenBusy = "queue"
    stream: bool = False
    output: OutputSpec | None = None

    @model_validator(mode="before")
    @classmethod
    def _entries(cls, value: object) -> object:
        return _with_entries(value)


class AppendCommand(Command):
    """Store the entries without a run."""

    bare: ClassVar[str] = "entries"

    verb: Literal["append"] = always("append")
    entries: list[EntryJson]

    @model_validator(mode="before")
    @classmethod
    def _entries(cls, value: object) -> object:
        return _with_entries(value)


class BranchCommand(Command):
    """Move the leaf to an earlier entry; the empty ID is the place before the first."""

    bare: ClassVar[str] = "entry_id"

    verb: Literal["branch"] = always("branch")
    entry_id: str


class ForkCommand(Command):
    """Copy the path to the leaf, or to the entry `at`, into a new session."""

    bare: ClassVar[str] = "session_id"

    verb: Literal["fork"] = always("fork")
    session_id: str
    at: str | None = None


class CompactCommand(Command):
    """Summarize the path, but for its last `keep_turns` turns. `prompt` takes the place of
    perdure's own.
    """

    bare: ClassVar[str] = "keep_turns"

    verb: Literal["compact"] = always("compact")
    keep_turns: int = Field(default=0, ge=0, strict=True)
    prompt: str | None = None


class CancelCommand(Command):
    """Stop the run of that ID, or take it from the queue; without an ID, the run in progress."""

    bare: ClassVar[str] = "run_id"

    verb: Literal["cancel"] = always("cancel")
    run_id: str | None = None


class ApproveCommand(Command):
    """Answer a tool call that waits for a person.

    `reason` is what the model is told of a denial. `arguments` take the place of the model's own.
    With a `call_digest`, which `status` shows, only the very call that was seen there is meant.
    """

    bare: ClassVar[str] = "tool_call_id"

    verb: Literal["approve"] = always("approve")
    tool_call_id: str
    approved: bool = Field(default=True, strict=True)
    reason: str | None = Field(default=None, max_length=MAX_REASON)
    arguments: dict[str, Any] | None = None
    call_digest: str | None = None

    @model_validator(mode="after")
    def _runs_what_it_changes(self) -> Self:
        if self.arguments is not None and not self.approved:
            raise ValueError("a call that is denied does not run; leave its arguments out")
        return self


class CloseCommand(Command):
    """End the workflow when everything before is done. The store keeps the session; `open`
    resumes it.
    """

    verb: Literal["close"] = always("close")


QueuedCommand = Annotated[
    RunCommand
    | AppendCommand
    | BranchCommand
    | ForkCommand
    | CompactCommand
    | CancelCommand
    | ApproveCommand
    | CloseCommand,
    Field(discriminator="verb"),
]


class WaitCommand(Command):
    """Ask for the outcome of a command, and wait for it. Its own ID is of no account."""

    bare: ClassVar[str] = "command_id"


def _with_entries(value: object) -> object:
    """Entries may be given as one bare text, one entry, or a list of either."""
    if value is None:
        return {}
    if isinstance(value, str | list) or (isinstance(value, dict) and "message" in value):
        value = {"entries": value}
    if not isinstance(value, dict) or "entries" not in value:
        return value
    given = value["entries"]
    entries = given if isinstance(given, list) else [given]
    return value | {"entries": [_entry(entry) for entry in entries]}


def _entry(given: object) -> object:
    if not isinstance(given, str):
        return given
    content = [{"type": "text", "text": given}]
    return {"type": "message", "message": {"role": "user", "content": content}}
