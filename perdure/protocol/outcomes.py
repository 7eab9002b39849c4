"""Answers: what became of a command, and how the session stands."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator

from perdure.usage import Usage
from perdure.wire import Wire

MAX_ERROR_LENGTH = 2_000
"""Characters of an error's message that are passed on. A session remembers the errors of many
commands, and what it remembers must fit through a continue-as-new."""


def _bounded(message: str) -> str:
    return message if len(message) <= MAX_ERROR_LENGTH else f"{message[: MAX_ERROR_LENGTH - 1]}…"


class ErrorInfo(Wire):
    """Why a command failed: the name of one of perdure's errors, and what to do about it."""

    type: str
    message: Annotated[str, AfterValidator(_bounded)]


class Outcome(Wire):
    """What became of a command.

    `pending` means "ask again": the workflow continued as new meanwhile. The entries that a run or
    an append added are those on the path to `leaf_id` that come after `start_id`; of these the
    first `input_count` are its input. `child_id` is the session that a fork made, `entry_id` the
    entry that a compaction appended (empty when there was nothing to summarize). `usage` is left
    out when the run ended some time ago; its messages have it. `restarts` is how often a loop began
    again.
    """

    command_id: str
    verb: str
    status: Literal["pending", "done", "failed"]
    digest: str = ""
    start_id: str = ""
    leaf_id: str = ""
    tip_id: str | None = None
    input_count: int = 0
    turns: int = 0
    restarts: int = 0
    usage: Usage | None = None
    child_id: str = ""
    entry_id: str = ""
    error: ErrorInfo | None = None


class Opened(Wire):
    """A session that is ready: `created` says whether this opening made it."""

    session_id: str
    agent: str | None = None
    leaf_id: str = ""
    tip_id: str = ""
    created: bool = False


class PendingApproval(Wire):
    """A tool call that waits for a person: which call of which run, and since when (UTC).

    Arguments that are large are shown shortened (`is_cut`); the message in the log has them whole.
    `call_digest` tells this call from any other, of the same ID, too: an answer that states it
    cannot be taken for an answer to something else.
    """

    is_complete: ClassVar[bool] = True

    tool_call_id: str
    tool_name: str
    arguments: dict[str, Any] = {}
    is_cut: bool = False
    run_id: str
    turn: int
    since: str
    call_digest: str


class Doing(Wire):
    """A command that is being done, or waits."""

    command_id: str
    verb: str
    turn: int = 0


SessionStateName = Literal["opening", "idle", "running", "closed"]


class Status(Wire):
    """A session at a glance: small, without the transcript.

    `leaf_id` is where the next entry goes; `tip_id` is the last entry that this instance appended,
    where a reopened session would resume. `context_tokens` is what the model was last sent and
    said. `approvals` are the first of the tool calls that wait for a person, `awaiting` says how
    many there are.
    """

    is_complete: ClassVar[bool] = True

    session_id: str
    agent: str | None = None
    state: SessionStateName
    leaf_id: str = ""
    tip_id: str = ""
    doing: Doing | None = None
    queue: list[Doing] = []
    waiting: int = 0
    approvals: list[PendingApproval] = []
    awaiting: int = 0
    runs: int = 0
    turns: int = 0
    usage: Usage = Usage()
    context_tokens: int = 0
    last_error: ErrorInfo | None = None
