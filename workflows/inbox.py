"""The inbox: commands wait here in order, and are answered from here by their ID."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio import workflow

from perdure import names
from perdure.codec import dumps_json
from perdure.protocol import (
    MAX_QUEUE,
    ApproveCommand,
    CancelCommand,
    Doing,
    ErrorInfo,
    Outcome,
    QueuedCommand,
    RunCommand,
    SessionState,
)
from perdure.protocol.observed import CommandQueued
from perdure.workflows.approvals import carried_bytes
from perdure.workflows.run_errors import CANCELLED
from perdure.workflows.tracing import observe

REMEMBERED_OUTCOMES = 24
"""Outcomes that a session remembers: so far back is a command that is sent again recognized. They
are carried over every continue-as-new, so each costs history for ever."""

NOWHERE = "-"
"""The `start_id` of an outcome that is carried, in place of an empty one. Where it is empty then,
it is the leaf of the outcome before it, as it mostly is."""

_MOST_OWED = 64
_MOST_AT_ONCE = 20_000

_SHOWN = 20


class Inbox:
    """Commands in the order in which they came, and what became of the recent ones."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        waiting = [*state.inbox, *state.steering]
        self._sizes = {command.command_id: len(command.to_json()) for command in waiting}
        self._bytes = sum(self._sizes.values())
        self._awaited: list[str] = []
        state.outcomes = _with_starts(state.outcomes)
        self.doing: QueuedCommand | None = None
        self.note_message()

    @property
    def is_empty(self) -> bool:
        """Whether no command waits."""
        return not self._state.inbox

    @property
    def is_busy(self) -> bool:
        """Whether a command is being done, or waits."""
        return self.activity() is not None or not self.is_empty

    def refusal(self, command: QueuedCommand) -> ErrorInfo | None:
        """Why the command cannot be taken, if it cannot. One that is known already can."""
        known = self._digest_of(command.command_id)
        if known is not None:
            return None if known == command.digest() else _conflict(command.command_id)
        if isinstance(command, RunCommand) and command.when_busy == "reject" and self.is_busy:
            return _BUSY
        size = len(command.to_json())
        if isinstance(command, CancelCommand | ApproveCommand) and size <= _MOST_AT_ONCE:
            return None  # it does not wait, and may be what everything else waits for
        if len(self._sizes) >= MAX_QUEUE:
            return _full(f"{MAX_QUEUE:,} commands wait in this session already")
        limit = self._state.max_command_bytes
        if size > limit:
            return _full(f"the command is {size:,} bytes, {limit:,} are the most")
        if size + self._bytes + self._bytes_in_use() > limit:
            return _full(f"the commands that wait would be over {limit:,} bytes")
        return None

    def put(self, command: QueuedCommand) -> None:
        """Queue a command."""
        self._note(command)
        self._state.inbox.append(command)
        observe(CommandQueued(command.verb, self.count()))

    def put_steering(self, command: RunCommand) -> None:
        """Queue a run that is to join the one in progress."""
        self._note(command)
        self._state.steering.append(command)
        observe(CommandQueued(command.verb, self.count()))

    @property
    def first(self) -> QueuedCommand | None:
        """The command that is being done, or is next."""
        return self.doing or next(iter(self._state.inbox), None)

    def take(self) -> QueuedCommand:
        """The command that is next."""
        self.doing = self._state.inbox.pop(0)
        self._forget(self.doing.command_id)
        return self.doing

    def take_steering(self) -> RunCommand | None:
        """The next run that is to join the one in progress."""
        if not self._state.steering:
            return None
        command = self._state.steering.pop(0)
        self._forget(command.command_id)
        return command

    def requeue_steering(self) -> None:
        """No run is there to be joined: those that wanted to run next, before what was queued."""
        self._state.inbox[:0] = self._state.steering
        self._state.steering.clear()

    def withdraw(self, command_id: str) -> QueuedCommand | None:
        """Take a run that waits out of the queue."""
        for queue in (self._state.inbox, self._state.steering):
            for command in queue:
                if command.command_id == command_id and command.verb == names.RUN:
                    queue.remove(command)
                    self._forget(command_id)
                    return command
        return None

    def settle(self, outcome: Outcome) -> None:
        """A command is done: remember what became of it."""
        if self.doing is not None and self.doing.command_id == outcome.command_id:
            self.doing = None
        outcomes = [*self._state.outcomes, outcome]
        old = len(outcomes) - REMEMBERED_OUTCOMES
        self._state.outcomes = [
            outcome
            for place, outcome in enumerate(outcomes)
            if place >= old or outcome.command_id in (*self._awaited, *self._state.owed)
        ]
        if outcome.error is None:
            if outcome.verb == names.RUN:
                self._state.last_error = None
        elif outcome.error != CANCELLED:  # somebody wanted that
            self._state.last_error = outcome.error

    def lighten(self) -> None:
        """Leave out of what is remembered what the store can tell, or what the outcome before
        tells: it is carried over every continue-as-new, and costs history twice at each.
        """
        lighter: list[Outcome] = []
        leaf_id = ""
        for outcome in self._state.outcomes:
            start_id = "" if outcome.start_id == leaf_id else outcome.start_id or NOWHERE
            light = {"usage": None, "start_id": start_id}
            lighter.append(outcome.model_copy(update=light))
            leaf_id = outcome.leaf_id
        self._state.outcomes = lighter

    def outcome(self, command_id: str) -> Outcome | None:
        """What became of a command, if it is done and not long ago."""
        for outcome in reversed(self._state.outcomes):
            if outcome.command_id == command_id:
                return outcome
        return None

    def note_message(self) -> None:
        """A message came."""
        self.last_message_at = workflow.time()

    @contextmanager
    def awaiting(self, command_id: str) -> Iterator[None]:
        """Keep the outcome of the command, however many others come after it.

        Who leaves without it is owed it, and may ask again in the next run of the workflow, which
        may take a while: the server is busy, and other commands are done meanwhile.
        """
        self._awaited.append(command_id)
        try:
            yield
        finally:
            self._awaited.remove(command_id)
            owed = [other for other in self._state.owed if other != command_id]
            if self.outcome(command_id) is None:
                owed.append(command_id)
            self._state.owed = owed[-_MOST_OWED:]

    def knows(self, command_id: str) -> bool:
        """Whether the command waits, is being done, or was done recently."""
        return self._digest_of(command_id) is not None

    def activity(self) -> Doing | None:
        """What is being done right now."""
        active = self._state.active
        if active is not None:
            return Doing(command_id=active.run_id, verb=names.RUN, turn=active.turn)
        if self.doing is not None:
            return Doing(command_id=self.doing.command_id, verb=self.doing.verb)
        return None

    def waiting(self) -> list[Doing]:
        """The head of the queue, as `status` shows it."""
        return [
            Doing(command_id=command.command_id, verb=command.verb)
            for command in [*self._state.steering, *self._state.inbox][:_SHOWN]
        ]

    def count(self) -> int:
        """How many commands wait."""
        return len(self._sizes)

    def refuse_the_rest(self, error: ErrorInfo) -> None:
        """The session ends: everything that still waits fails."""
        for command in [*self._state.steering, *self._state.inbox]:
            self._forget(command.command_id)
            self.settle(failure(command, error))
        self._state.inbox.clear()
        self._state.steering.clear()

    def _digest_of(self, command_id: str) -> str | None:
        if command_id in self._sizes:
            waiting = [*self._state.inbox, *self._state.steering]
            return next(item.digest() for item in waiting if item.command_id == command_id)
        if self.doing is not None and self.doing.command_id == command_id:
            return self.doing.digest()
        active = self._state.active
        if active is not None:
            if active.run_id == command_id:
                return active.digest
            for joined in active.joined:
                if joined.command_id == command_id:
                    return joined.digest
            for call in active.calls:
                if call.proposal is not None and call.proposal.command_id == command_id:
                    return call.proposal.digest()
        outcome = self.outcome(command_id)
        return None if outcome is None else outcome.digest

    def _bytes_in_use(self) -> int:
        """What is carried of commands that no longer wait: the entries that live for the run, and
        what people answered.
        """
        if isinstance(self.doing, RunCommand):
            return len(self.doing.to_json())
        active = self._state.active
        if active is None:
            return 0
        return carried_bytes(active) + (
            len(dumps_json(active.ephemeral)) if active.ephemeral else 0
        )

    def _note(self, command: QueuedCommand) -> None:
        size = len(command.to_json())
        self._sizes[command.command_id] = size
        self._bytes += size

    def _forget(self, command_id: str) -> None:
        self._bytes -= self._sizes.pop(command_id, 0)


def _with_starts(outcomes: list[Outcome]) -> list[Outcome]:
    """Outcomes that were carried, each with its start again."""
    whole: list[Outcome] = []
    leaf_id = ""
    for outcome in outcomes:
        start_id = "" if outcome.start_id == NOWHERE else outcome.start_id or leaf_id
        whole.append(outcome.model_copy(update={"start_id": start_id}))
        leaf_id = outcome.leaf_id
    return whole


def failure(command: QueuedCommand, error: ErrorInfo) -> Outcome:
    """The outcome of a command that failed and changed nothing."""
    return Outcome(
        command_id=command.command_id,
        verb=command.verb,
        status="failed",
        digest=command.digest(),
        error=error,
    )


def _full(reason: str) -> ErrorInfo:
    return ErrorInfo(type="CommandError", message=f"{reason}; send it again later")


def _conflict(command_id: str) -> ErrorInfo:
    return ErrorInfo(
        type="CommandConflictError",
        message=f"the command ID {command_id!r} was used for something else; give this one its own",
    )


_BUSY = ErrorInfo(
    type="SessionBusyError", message="the session is busy; wait for it, or let the run queue"
)
