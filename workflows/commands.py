"""The commands of a session: taken in order, done one at a time."""

from __future__ import annotations

from temporalio import workflow

from perdure import names
from perdure.protocol import (
    ActiveRun,
    AppendCommand,
    ApproveCommand,
    BranchCommand,
    CancelCommand,
    CloseCommand,
    CompactCommand,
    ErrorInfo,
    ForkCommand,
    Outcome,
    QueuedCommand,
    RunCommand,
    SessionState,
)
from perdure.workflows.agent_run import AgentRun
from perdure.workflows.approvals import nothing_waits
from perdure.workflows.attributes import show_status
from perdure.workflows.compaction import compact
from perdure.workflows.failures import ActivityFailure, CommandFailed, reason_of
from perdure.workflows.history import HistoryLength
from perdure.workflows.inbox import Inbox, failure
from perdure.workflows.lifecycle import Lifecycle
from perdure.workflows.log import SessionLog
from perdure.workflows.loop_run import LoopRun
from perdure.workflows.run_errors import CANCELLED, NO_AGENT
from perdure.workflows.session_stream import SessionStream
from perdure.workflows.tool_calls import Answered
from perdure.workflows.tracing import begin, go_on
from perdure.workflows.tree_verbs import branch, fork
from perdure.workflows.verbs import refused


class Commands:
    """Takes commands into the inbox, does the one that is next, and remembers the outcomes.

    A run is done in steps, a turn each; everything else is one step.
    """

    def __init__(
        self,
        state: SessionState,
        stream: SessionStream,
        lifecycle: Lifecycle,
        history: HistoryLength,
    ) -> None:
        self.inbox = Inbox(state)
        self._history = history
        self.is_closing = False
        self._state = state
        self._stream = stream
        self._lifecycle = lifecycle
        self._log = SessionLog(state)
        self._run: AgentRun | None = None
        if state.active is not None:
            self._run = self._in_progress(state.active)
        self._to_cancel = ""
        self._is_leaving = False

    def refusal(self, command: QueuedCommand) -> ErrorInfo | None:
        """Why the command cannot be taken, if it cannot."""
        return CLOSED if self.is_closing else self.inbox.refusal(command)

    def take(self, command: QueuedCommand) -> None:
        """Do the command, now or in its turn; one that is known already is done once."""
        self.inbox.note_message()
        if self.inbox.knows(command.command_id):
            return
        if isinstance(command, CancelCommand):
            self._cancel(command)
        elif isinstance(command, ApproveCommand):
            self._approve(command)
        elif (
            isinstance(command, RunCommand)
            and command.when_busy == "steer"
            and command.output is None
            and self._can_be_joined()
        ):
            self.inbox.put_steering(command)
        else:
            self.inbox.put(command)

    async def outcome_of(self, command_id: str, verb: str) -> Outcome:
        """What became of a command; "pending" when the workflow continues as new before it is
        done.
        """
        with self.inbox.awaiting(command_id):
            await workflow.wait_condition(
                lambda: self.inbox.outcome(command_id) is not None or self._is_leaving
            )
            outcome = self.inbox.outcome(command_id)
        if outcome is None:
            return Outcome(command_id=command_id, verb=verb, status="pending")
        if outcome.error is not None:
            raise refused(outcome.error, outcome)
        return outcome

    def note_failure(self, verb: str, error: ErrorInfo) -> None:
        """A signal was refused."""
        self._lifecycle.note_failure("", verb, error)

    def _cancel(self, command: CancelCommand) -> None:
        """Cancelling does not wait its turn: it is about what holds the turn up."""
        run_id = self._run_in_progress() if command.run_id is None else command.run_id
        withdrawn = self.inbox.withdraw(run_id) if run_id else None
        if withdrawn is not None:
            self._settle(failure(withdrawn, CANCELLED))
            if not self._can_be_joined():
                self.inbox.requeue_steering()
        elif run_id and run_id == self._run_in_progress():
            if self._run is None:
                self._to_cancel = run_id
            else:
                self._run.cancel()
        else:
            self._settle(failure(command, _nothing_to_cancel(command.run_id)))
            return
        self._settle(self._outcome(command, self._state.leaf_id))

    def _run_in_progress(self) -> str:
        doing = self.inbox.activity()
        return doing.command_id if doing is not None and doing.verb == names.RUN else ""

    def _can_be_joined(self) -> bool:
        """Whether there is a run to be steered: in progress, or the next thing to be done."""
        if self._run is not None:
            return not self._run.is_cancelled and not isinstance(self._run, LoopRun)
        first = self.inbox.first
        return isinstance(first, RunCommand) and first.command_id != self._to_cancel

    def _approve(self, command: ApproveCommand) -> None:
        """Nor does an answer wait that a run waits for."""
        if self._run is None:
            self._settle_answer(command, nothing_waits(command.tool_call_id))
        else:
            self._run.tools.approve(command)

    def _settle_answer(self, command: ApproveCommand, error: ErrorInfo | None) -> None:
        if error is None:
            self._settle(self._outcome(command, self._state.leaf_id))
        else:
            self._settle(failure(command, error))

    @property
    def is_ready(self) -> bool:
        """Whether there is something to do."""
        if self._run is not None:
            return not self._run.tools.is_at_rest
        return not self.inbox.is_empty

    @property
    def is_awaiting_approval(self) -> bool:
        """Whether a run is in the middle of a turn, and only a person can take it further."""
        return self._run is not None and self._run.tools.is_at_rest

    async def next_step(self) -> None:
        """Take the run in progress one turn further, or do the next command."""
        if self._run is None:
            await self._do_next()
        else:
            go_on(self._state.active)
            await self._go_on(self._run)

    def leave(self) -> None:
        """From now on whoever waits is answered: with an outcome, or with "ask again"."""
        self._is_leaving = True

    def end(self, error: ErrorInfo) -> None:
        """Nothing more is done; everything that waits or runs ends with this error."""
        if self._run is not None:
            self._finish_run(self._run.stopped(error))
        self.inbox.refuse_the_rest(error)

    async def _do_next(self) -> None:
        command = self.inbox.take()
        begin(command)
        start_id = self._state.leaf_id
        try:
            outcome = await self._perform(command, start_id)
        except CommandFailed as failed:
            outcome = failure(command, failed.error)
        except ActivityFailure as error:
            outcome = failure(command, reason_of(error))
        self._history.add_local_step()
        if isinstance(command, ForkCommand | CompactCommand):
            self._history.add_activities(2)
        if outcome is None:
            self.inbox.doing = None
        else:
            self._settle(outcome)
        if self._run is None:
            self.inbox.requeue_steering()

    async def _perform(self, command: QueuedCommand, start_id: str) -> Outcome | None:
        """Do one command. A run answers later, from its last turn."""
        match command:
            case RunCommand():
                self._run = await AgentRun.start(command, *self._parts())
                if (active := self._state.active) is not None:
                    self._run = self._in_progress(active)
                if self._to_cancel == command.command_id:
                    self._run.cancel()
                self._to_cancel = ""
                return None
            case AppendCommand():
                await self._log.append(command.command_id, command.entries)
            case BranchCommand():
                await branch(command, self._state, self._lifecycle)
            case ForkCommand():
                await fork(command, self._state, self._lifecycle)
                return self._outcome(command, start_id, child_id=command.session_id)
            case CompactCommand():
                return self._outcome(command, start_id, entry_id=await self._compact(command))
            case CloseCommand():
                self.is_closing = True
        return self._outcome(command, start_id)

    async def _compact(self, command: CompactCommand) -> str:
        if self._state.agent is None:
            raise CommandFailed(NO_AGENT)
        show_status(self._state, "running")
        try:
            entry = await compact(
                self._state,
                self._log,
                self._lifecycle,
                command_id=command.command_id,
                agent=self._state.agent,
                keep_turns=command.keep_turns,
                prompt=command.prompt,
            )
        finally:
            show_status(self._state, "idle")
        return "" if entry is None else str(entry["id"])

    async def _go_on(self, run: AgentRun) -> None:
        while run.can_be_joined and (joining := self.inbox.take_steering()) is not None:
            try:
                await run.join(joining)
            except ActivityFailure as error:
                self._settle(failure(joining, reason_of(error)))
        outcomes = await run.turn()
        if outcomes:
            self._finish_run(outcomes)
            if self._state.errand is None:  # it is closed next, and shown as that
                show_status(self._state, "idle")

    def _finish_run(self, outcomes: list[Outcome]) -> None:
        self._run = self._state.active = None
        self.inbox.requeue_steering()
        for outcome in outcomes:
            self._settle(outcome)

    def _settle(self, outcome: Outcome) -> None:
        self.inbox.settle(outcome)
        if outcome.error is not None and outcome.verb != names.RUN:
            self._lifecycle.note_failure(outcome.command_id, outcome.verb, outcome.error)

    def _outcome(
        self, command: QueuedCommand, start_id: str, *, child_id: str = "", entry_id: str = ""
    ) -> Outcome:
        return Outcome(
            command_id=command.command_id,
            verb=command.verb,
            status="done",
            digest=command.digest(),
            start_id=start_id,
            leaf_id=self._state.leaf_id,
            tip_id=self._state.tip_apart,
            child_id=child_id,
            entry_id=entry_id,
        )

    def _in_progress(self, run: ActiveRun) -> AgentRun:
        return (LoopRun if run.is_loop else AgentRun)(run, *self._parts())

    def _parts(
        self,
    ) -> tuple[SessionState, SessionLog, SessionStream, Lifecycle, HistoryLength, Answered]:
        state, log, stream = self._state, self._log, self._stream
        return state, log, stream, self._lifecycle, self._history, self._settle_answer


def _nothing_to_cancel(run_id: str | None) -> ErrorInfo:
    what = "no run is in progress" if run_id is None else f"no run {run_id!r} waits or runs"
    return ErrorInfo(type="CommandError", message=f"{what}; there is nothing to cancel")


CLOSED = ErrorInfo(
    type="SessionClosedError", message="the session was closed first; open it to resume it"
)
