"""Every error that perdure raises on purpose.

PerdureError
├── InvalidSessionIdError     the ID cannot name a session
├── SessionExistsError        create or fork of an ID that is taken
├── SessionNotFoundError      load or append of an ID that nobody created
├── EntryError                an entry that cannot be written or read
│   ├── EntryDecodeError      a line that is not an entry
│   └── EntryEncodeError      an entry whose line would not load again
├── DamagedLogError           damage in a log, anywhere but in its torn tail
├── StoreError                a store that cannot be opened or reached
├── AgentError                an agent or a tool that is declared wrongly
├── ModelSpecError            a model that cannot be made from what the agent names
├── ModelError                a model call that failed
├── ToolArgumentsError        arguments that do not fit a tool
├── CommandError              a command that the session refused; nothing changed
│   ├── UnknownCommandError   an outcome was asked for that the session does not remember
│   ├── CommandTooLargeError  a command larger than the engine carries
│   └── SessionClosedError    the session was closed before the command ran
├── RunFailedError            a run that started and failed; its input stays stored
└── ServerError               no Temporal server, or none of perdure's workers behind it
    └── ServerMissingError    the embedded server is not installed
"""

from __future__ import annotations


class PerdureError(Exception):
    """The root of all errors that perdure raises on purpose."""


class InvalidSessionIdError(PerdureError, ValueError):
    """The ID cannot name a session."""

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(f"session ID {session_id[:80]!r} {reason}")
        self.session_id = session_id


class SessionExistsError(PerdureError):
    """The session ID is taken; open it instead, or choose another."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} exists already; open it, or choose another ID")
        self.session_id = session_id


class SessionNotFoundError(PerdureError, LookupError):
    """No session was created under the ID."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} does not exist; open it to create it")
        self.session_id = session_id


class EntryError(PerdureError, ValueError):
    """An entry that cannot be written or read."""


class EntryDecodeError(EntryError):
    """A line that is not an entry."""


class EntryEncodeError(EntryError):
    """An entry whose line would not load again; it was refused, nothing was written."""


class DamagedLogError(PerdureError):
    """Damage in a log, anywhere but in its torn tail. Nothing is read past it, nothing is guessed."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(f"{path}, line {line}: {reason}; restore the line, nothing was changed")
        self.path = path
        self.line = line
        self.reason = reason


class StoreError(PerdureError):
    """A store that cannot be opened or reached."""


class AgentError(PerdureError):
    """An agent or a tool that is declared wrongly."""


class ModelSpecError(PerdureError):
    """A model that cannot be made from what the agent names."""


class ModelError(PerdureError):
    """A model call that failed.

    `retryable` says whether the same call may succeed later; `retry_after` is the provider's
    own wish in seconds, when it stated one.
    """

    def __init__(
        self, message: str, *, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after


class ToolArgumentsError(PerdureError, ValueError):
    """Arguments that do not fit a tool; the message tells the model what to mend."""
