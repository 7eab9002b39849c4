"""SessionWorkflow: one conversation as one long-lived workflow.

The store holds the transcript; the workflow holds the leaf and the order of things. Commands go
through one inbox and are done one at a time. A run advances turn by turn, and between two steps
the workflow may continue as new, so neither a long life nor a long run outgrows its history.
"""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.contrib.workflow_streams import WorkflowStream
from temporalio.exceptions import ApplicationError

from perdure import names
from perdure.protocol import (
    AppendCommand,
    CloseCommand,
    ErrorInfo,
    LoadedSession,
    OpenCommand,
    Opened,
    OpenSession,
    Outcome,
    QueuedCommand,
    RunCommand,
    SessionState,
    SessionStateName,
    Status,
    WaitCommand,
)
from perdure.workflows.agent_run import AgentRun, RunStopped
from perdure.workflows.failures import ActivityFailure, reason_of
from perdure.workflows.inbox import Inbox
from perdure.workflows.log import SessionLog
from perdure.workflows.run_stream import RunStream
from perdure.workflows.sandbox import SANDBOXED
from perdure.workflows.timing import LOADING

_MAX_HISTORY_BYTES = 2_000_000

_PATIENCE_IN_A_RUN = 3
"""How many times more events there may be in the middle of a run: whoever waits for it has to ask
again after a continue-as-new, which is dear."""


@workflow.defn(name=names.SESSION_WORKFLOW, sandboxed=SANDBOXED)
class SessionWorkflow:
    """Keeps one session: opens it, takes its commands, runs its agent, remembers where it is."""

    @workflow.init
    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._stream = RunStream(WorkflowStream(prior_state=state.stream), state.stream)
        self._inbox = Inbox(state)
        self._log = SessionLog(state)
        self._run: AgentRun | None = None
        if state.active is not None:
            self._run = AgentRun(state.active, state, self._log, self._stream)
        self._fault: ErrorInfo | None = None
        self._is_leaving = False
        self._is_closed = False

    @workflow.run
    async def run(self, state: SessionState) -> None:
        """Do commands until one is `close`, or the workflow is cancelled, which means the same."""
        try:
            await self._open()
            while not self._is_closed:
                await self._next_step()
                if self._has_outgrown_history() and not self._is_closed:
                    await self._continue_as_new()
        except asyncio.CancelledError:
            await self._end()
            raise
        await self._end()

    # ── messages ───────────────────────────────────────────────────────────────────────────────

    @workflow.update(name=names.OPEN)
    async def open(self, command: OpenCommand) -> Opened:
        """The session is loaded, or it was created; from now on the named agent serves it."""
        await workflow.wait_condition(lambda: self._state.opened or self._fault is not None)
        if self._fault is not None:
            raise _refusal(self._fault)
        if command.agent is not None:
            self._state.agent = command.agent
        state = self._state
        created, state.created = state.created, False
        return Opened(
            session_id=state.session_id,
            agent=state.agent,
            leaf_id=state.leaf_id,
            tip_id=state.tip_id,
            created=created,
        )

    @workflow.update(name=names.RUN)
    async def run_agent(self, command: RunCommand) -> Outcome:
        """Run the session's agent; accepted means durably queued."""
        return await self._do(command)

    @workflow.update(name=names.APPEND)
    async def append(self, command: AppendCommand) -> Outcome:
        """Store entries without a run."""
        return await self._do(command)

    @workflow.update(name=names.CLOSE)
    async def close(self, command: CloseCommand) -> Outcome:
        """End the workflow after everything that came before."""
        return await self._do(command)

    @workflow.update(name=names.WAIT)
    async def wait(self, command: WaitCommand) -> Outcome:
        """The outcome of a command, as soon as there is one."""
        return await self._outcome_of(command.command_id, verb="")

    @run_agent.validator
    def _check_run(self, command: RunCommand) -> None:
        self._check(command)

    @append.validator
    def _check_append(self, command: AppendCommand) -> None:
        self._check(command)

    @wait.validator
    def _check_wait(self, command: WaitCommand) -> None:
        if not self._inbox.knows(command.command_id):
            raise _refusal(_unknown(command.command_id))

    @workflow.query(name=names.STATUS)
    def status(self) -> Status:
        """The session at a glance."""
        state = self._state
        return Status(
            session_id=state.session_id,
            agent=state.agent,
            state=self._state_name(),
            leaf_id=state.leaf_id,
            tip_id=state.tip_id,
            doing=self._inbox.activity(),
            queue=self._inbox.waiting(),
            runs=state.runs,
            turns=state.turns,
            usage=state.usage,
            last_error=state.last_error,
        )

    # ── life ───────────────────────────────────────────────────────────────────────────────────

    async def _open(self) -> None:
        state = self._state
        if state.opened:
            return
        try:
            loaded = await workflow.execute_local_activity(
                names.OPEN_SESSION,
                OpenSession(session_id=state.session_id),
                result_type=LoadedSession,
                **LOADING,
            )
        except ActivityFailure as error:
            self._fault = reason_of(error)
            self._inbox.refuse_the_rest(self._fault)
            await self._leave()
            raise _refusal(self._fault) from error
        state.leaf_id = state.tip_id = loaded.leaf_id
        state.created = loaded.created
        state.opened = True

    async def _next_step(self) -> None:
        """Take the run in progress one turn further, or do the next command when there is one."""
        await workflow.wait_condition(lambda: self._run is not None or not self._inbox.is_empty)
        if self._run is not None:
            outcome = await self._run.turn()
            if outcome is not None:
                self._run = self._state.active = None
                self._inbox.settle(outcome)
        else:
            outcome = await self._perform(self._inbox.take())
            if outcome is not None:
                self._inbox.settle(outcome)
        if workflow.cancellation_reason() is not None:
            # An activity that was cancelled along with the workflow has told only its caller.
            raise asyncio.CancelledError

    async def _perform(self, command: QueuedCommand) -> Outcome | None:
        """Do one command. A run answers later, from its last turn."""
        start_id = self._state.leaf_id
        error: ErrorInfo | None = None
        try:
            match command:
                case RunCommand():
                    self._run = await AgentRun.start(command, self._state, self._log, self._stream)
                    self._state.runs += 1
                    return None
                case AppendCommand():
                    await self._log.append(command.command_id, command.entries)
                case CloseCommand():
                    self._is_closed = True
        except RunStopped as stop:
            error = stop.error
        except ActivityFailure as failure:
            error = reason_of(failure)
        return Outcome(
            command_id=command.command_id,
            verb=command.verb,
            status="done" if error is None else "failed",
            start_id=start_id,
            leaf_id=self._state.leaf_id,
            tip_id=self._state.tip_apart,
            error=error,
        )

    def _has_outgrown_history(self) -> bool:
        info = workflow.info()
        limit = self._state.max_history_events
        if self._run is not None:
            limit *= _PATIENCE_IN_A_RUN
        return (
            info.get_current_history_length() > limit
            or info.get_current_history_size() > _MAX_HISTORY_BYTES
        )

    async def _continue_as_new(self) -> None:
        await self._leave()
        self._state.stream = self._stream.carry()
        workflow.continue_as_new(self._state)

    async def _end(self) -> None:
        """Answer whoever waits; the log is valid at any point, so nothing else is to be done."""
        if self._run is not None:
            self._inbox.settle(self._run.stopped(_CLOSED))
            self._run = self._state.active = None
        self._inbox.refuse_the_rest(_CLOSED)
        await self._leave()

    async def _leave(self) -> None:
        """Let every handler answer: with an outcome, or with "ask again"."""
        self._is_leaving = True
        self._stream.detach()
        await workflow.wait_condition(workflow.all_handlers_finished)

    # ── commands ───────────────────────────────────────────────────────────────────────────────

    def _check(self, command: QueuedCommand) -> None:
        reason = self._inbox.refusal(command)
        if reason:
            raise _refusal(ErrorInfo(type="CommandError", message=reason))

    async def _do(self, command: QueuedCommand) -> Outcome:
        if not command.command_id:
            info = workflow.current_update_info()
            command.command_id = info.id if info else str(workflow.uuid4())
        self._inbox.put(command)
        return await self._outcome_of(command.command_id, command.verb)

    async def _outcome_of(self, command_id: str, verb: str) -> Outcome:
        await workflow.wait_condition(
            lambda: self._inbox.outcome(command_id) is not None or self._is_leaving
        )
        outcome = self._inbox.outcome(command_id)
        if outcome is None:
            return Outcome(command_id=command_id, verb=verb, status="pending")
        if outcome.error is not None:
            raise _refusal(outcome.error, outcome)
        return outcome

    def _state_name(self) -> SessionStateName:
        if self._is_closed:
            return "closed"
        if not self._state.opened:
            return "opening"
        return "idle" if self._inbox.activity() is None else "running"


def _refusal(error: ErrorInfo, *details: Outcome) -> ApplicationError:
    return ApplicationError(error.message, *details, type=error.type, non_retryable=True)


def _unknown(command_id: str) -> ErrorInfo:
    return ErrorInfo(
        type="UnknownCommandError",
        message=f"the session does not remember a command {command_id!r}; read its entries instead",
    )


_CLOSED = ErrorInfo(
    type="SessionClosedError", message="the session was closed first; open it to resume it"
)
