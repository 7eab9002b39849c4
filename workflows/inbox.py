"""The inbox: commands wait here in order, and are answered from here by their ID."""

from __future__ import annotations

from perdure.protocol import (
    MAX_COMMAND_BYTES,
    MAX_QUEUE,
    Activity,
    ErrorInfo,
    Outcome,
    QueuedCommand,
    SessionState,
)

REMEMBERED_OUTCOMES = 24
"""Outcomes that a session remembers: so far back is a command that is sent again recognized. They
are carried over every continue-as-new, so each costs history for ever."""


class Inbox:
    """Commands in the order in which they came, and what became of the recent ones."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.doing: QueuedCommand | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no command waits."""
        return not self._state.inbox

    def refusal(self, command: QueuedCommand) -> str:
        """Why the command cannot wait here, or an empty string."""
        if self.knows(command.command_id):
            return ""
        if len(self._state.inbox) >= MAX_QUEUE:
            return f"{MAX_QUEUE} commands wait in this session already; send it again later"
        size = len(command.to_json())
        if size > MAX_COMMAND_BYTES:
            return f"the command is {size:,} bytes, {MAX_COMMAND_BYTES:,} are the most"
        if size + sum(len(each.to_json()) for each in self._state.inbox) > MAX_COMMAND_BYTES:
            return (
                f"the commands that wait would be over {MAX_COMMAND_BYTES:,} bytes; "
                "send it again later"
            )
        return ""

    def put(self, command: QueuedCommand) -> None:
        """Queue a command, once."""
        if not self.knows(command.command_id):
            self._state.inbox.append(command)

    def take(self) -> QueuedCommand:
        """The command that is next."""
        command = self._state.inbox.pop(0)
        self.doing = command
        return command

    def settle(self, outcome: Outcome) -> None:
        """A command is done: remember what became of it."""
        self.doing = None
        self._state.outcomes = [*self._state.outcomes, outcome][-REMEMBERED_OUTCOMES:]
        if outcome.error is not None:
            self._state.last_error = outcome.error

    def outcome(self, command_id: str) -> Outcome | None:
        """What became of a command, if it is done and not long ago."""
        for outcome in reversed(self._state.outcomes):
            if outcome.command_id == command_id:
                return outcome
        return None

    def knows(self, command_id: str) -> bool:
        """Whether the command waits, is being done, or was done recently."""
        active = self._state.active
        return (
            any(waiting.command_id == command_id for waiting in self._state.inbox)
            or (self.doing is not None and self.doing.command_id == command_id)
            or (active is not None and active.run_id == command_id)
            or self.outcome(command_id) is not None
        )

    def activity(self) -> Activity | None:
        """What is being done right now."""
        active = self._state.active
        if active is not None:
            return Activity(command_id=active.run_id, verb="run", turn=active.turn)
        if self.doing is not None:
            return Activity(command_id=self.doing.command_id, verb=self.doing.verb)
        return None

    def waiting(self) -> list[Activity]:
        """The queue as `status` shows it."""
        return [
            Activity(command_id=command.command_id, verb=command.verb)
            for command in self._state.inbox
        ]

    def refuse_the_rest(self, error: ErrorInfo) -> None:
        """The session ends: everything that still waits fails."""
        while not self.is_empty:
            command = self.take()
            self.settle(
                Outcome(
                    command_id=command.command_id, verb=command.verb, status="failed", error=error
                )
            )
