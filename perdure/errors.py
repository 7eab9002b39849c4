"""Every error that perdure raises on purpose.

PerdureError
├── InvalidSessionIdError     the ID cannot name a session
├── SessionExistsError        create or fork of an ID that is taken
├── SessionNotFoundError      load or append of an ID that nobody created
├── EntryError                an entry that cannot be written or read
│   ├── EntryDecodeError      a line that is not an entry
│   ├── EntryEncodeError      an entry whose line would not load again
│   └── EntryKindError        a kind of custom entry that is declared wrongly
├── JsonError                 text that is not JSON, or a value that JSON cannot carry
├── DamagedLogError           damage in a log, anywhere but in its torn tail
├── StoreError                a store that cannot be opened or reached
├── EncryptionError           keys that are wrong, or missing for what is encrypted
├── TenantError               a tenant's name that is none, or a session of another tenant
├── AgentError                an agent or a tool that is declared wrongly
├── UnknownAgentError         an agent that the worker does not serve
├── ModelSpecError            a model that cannot be made from what the agent names
├── ModelError                a model call that failed
│   ├── ContextOverflowError  a conversation longer than the model takes
│   ├── ContentFilterError    a question or an answer that the provider's filter refused
│   ├── ModelAccessError      a key that is wrong, or may not use the model
│   ├── ModelQuotaError       an account without credit, or with its quota used up
│   └── ModelRequestError     a request that the provider will not take as it is
├── LoopError                 a loop that cannot start, or that failed
├── McpServerError            an MCP server that cannot be reached
├── ToolArgumentsError        arguments that do not fit a tool
├── ToolCallError             a call of a tool elsewhere that has no result
├── ToolResultError           a result that cannot be shown to a model
├── CommandError              a command that the session refused; nothing changed
│   ├── UnknownCommandError   an outcome was asked for that the session does not remember
│   ├── CommandConflictError  a command ID that was used for something else
│   ├── SessionBusyError      a run that did not want to wait
│   ├── EntryNotFoundError    an entry that is not in the session's log
│   ├── CommandTooLargeError  a command larger than the engine carries
│   └── SessionClosedError    the session was closed before the command ran
├── RunFailedError            a run that started and could not go on; what it stored stays
│   ├── MaxTurnsError         a run that used up its agent's turns
│   ├── OutputError           an answer that is not what the run asked for
│   └── RunCancelledError     a run that was cancelled
├── ServerError               no Temporal server, or no worker behind it
│   └── ServerMissingError    the embedded server is not installed
├── TelemetryError            telemetry that cannot be set up
└── DemoError                 `perdure demo` cannot start, or cannot go on
"""

from __future__ import annotations

import re
from collections.abc import Sequence


class PerdureError(Exception):
    """The root of all errors that perdure raises on purpose.

    What an error carries besides its message is empty where it was only told by name, from another
    process.
    """


class InvalidSessionIdError(PerdureError, ValueError):
    """The ID cannot name a session."""

    session_id: str = ""

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(f"session ID {session_id[:80]!r} {reason}")
        self.session_id = session_id


class SessionExistsError(PerdureError):
    """The session ID is taken; open it instead, or choose another."""

    session_id: str = ""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} exists already; open it, or choose another ID")
        self.session_id = session_id


class SessionNotFoundError(PerdureError, LookupError):
    """No session was created under the ID."""

    session_id: str = ""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {session_id!r} is not in this store; open it, or use the store of its worker"
        )
        self.session_id = session_id


class EntryError(PerdureError, ValueError):
    """An entry that cannot be written or read."""


class EntryDecodeError(EntryError):
    """A line that is not an entry; `index` is its place among several that were read at once."""

    index: int = 0


class EntryEncodeError(EntryError):
    """An entry whose line would not load again; it was refused, nothing was written."""


class EntryKindError(EntryError, TypeError):
    """A kind of custom entry that is declared wrongly; raised when its class is made."""


class JsonError(PerdureError, ValueError):
    """Text that is not JSON, or a value that JSON cannot carry."""


class DamagedLogError(PerdureError):
    """Damage in a log, anywhere but in its torn tail. Nothing is read past it, nothing is
    guessed.
    """

    path: str = ""
    line: int = 0
    reason: str = ""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(f"{path}, line {line}: {reason}; restore the line, nothing was changed")
        self.path = path
        self.line = line
        self.reason = reason


class StoreError(PerdureError):
    """A store that cannot be opened or reached."""


class EncryptionError(PerdureError):
    """Keys that are wrong, or missing for what is encrypted; `key_id` names the key, if it is about
    one. Never holds a key.
    """

    key_id: str = ""

    def __init__(self, message: str, *, key_id: str = "") -> None:
        super().__init__(message)
        self.key_id = key_id


class TenantError(PerdureError):
    """A tenant's name that is none, or a session of another tenant."""


class AgentError(PerdureError):
    """An agent or a tool that is declared wrongly."""


class ModelSpecError(PerdureError):
    """A model that cannot be made from what the agent names."""


class ModelError(PerdureError):
    """A model call that failed.

    `retryable` says whether the same call may succeed later; `retry_after` is the provider's
    own wish in seconds, when it stated one.
    """

    retryable: bool = False
    retry_after: float | None = None

    def __init__(
        self, message: str, *, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after


class ContextOverflowError(ModelError):
    """The conversation is longer than the model takes; compact it, or use another model."""


class ContentFilterError(ModelError):
    """The provider's content filter refused the question or stopped the answer."""


class ModelAccessError(ModelError):
    """The provider refused the key: it is wrong, or may not use the model."""


class ModelQuotaError(ModelError):
    """The account has no credit, or its quota is used up; waiting a little does not help."""


class ModelRequestError(ModelError):
    """The provider will not take the request as it is: a parameter, a model that it does not have,
    content of a kind that the model cannot read.
    """


class LoopError(PerdureError):
    """A loop of one's own that cannot start, or that failed. What it stored stays."""


class McpServerError(PerdureError):
    """An MCP server that cannot be reached, or does not answer as one."""


class ToolArgumentsError(PerdureError, ValueError):
    """Arguments that do not fit a tool; the message tells the model what to mend."""


class ToolCallError(PerdureError):
    """A call of a tool elsewhere (an MCP server's, say) that has no result; the message is for the
    model.
    """


class ToolResultError(PerdureError, TypeError):
    """A tool's result that cannot be shown to a model."""


class UnknownAgentError(PerdureError, LookupError):
    """An agent that the worker does not serve."""

    name: str = ""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        served = ", ".join(known) or "none"
        super().__init__(
            f"no agent {name!r} on this worker (it serves: {served}); "
            "start the worker with it, or open the session with another"
        )
        self.name = name


class CommandError(PerdureError):
    """A command that the session refused; nothing changed."""


class UnknownCommandError(CommandError):
    """An outcome was asked for that the session does not remember."""


class CommandConflictError(CommandError):
    """A command ID that was used for something else; give every command an ID of its own."""


class SessionBusyError(CommandError):
    """A run that did not want to wait for what the session is doing."""


class EntryNotFoundError(CommandError, LookupError):
    """An entry that is not in the session's log; ephemeral ones never are."""


class CommandTooLargeError(CommandError):
    """A command larger than the engine carries; it was not sent. Sizes are in bytes."""

    size: int = 0
    limit: int = 0

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the input is {size:,} bytes and the engine carries {limit:,}; "
            "send less, or send a file by its URL"
        )
        self.size = size
        self.limit = limit


class SessionClosedError(CommandError):
    """The session was closed before the command ran; open it to resume it."""


class RunFailedError(PerdureError):
    """A run that started and could not go on; what it stored stays."""


class MaxTurnsError(RunFailedError):
    """A run that used up its agent's turns."""


class OutputError(RunFailedError):
    """The model's answer is not what the run asked for, or what it asked for cannot be had."""


class RunCancelledError(RunFailedError):
    """A run that was cancelled. What it stored stays, and the session is ready for the next."""


class ServerError(PerdureError):
    """No Temporal server, or no worker behind it."""


class ServerMissingError(ServerError):
    """The embedded server is not installed."""


class TelemetryError(PerdureError):
    """Telemetry that cannot be set up: a package is missing, or a setting is none."""


class DemoError(PerdureError):
    """`perdure demo` cannot start, or cannot go on."""


def restored(type_name: str, message: str) -> PerdureError:
    """An error that was told by name, as the class of that name; a name from elsewhere becomes
    RunFailedError.
    """
    kind = globals().get(type_name)
    if not (isinstance(kind, type) and issubclass(kind, PerdureError)):
        return RunFailedError(f"{type_name}: {message}")
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    if isinstance(error, EncryptionError) and (named := _NAMED_KEY.search(message)):
        error.key_id = named[1]
    return error


_NAMED_KEY = re.compile(r"(?:encrypted with|under) key '([^']{1,64})'")
"""How messages of EncryptionError name the key that they are about."""
