"""SessionWorkflow: one conversation as one long-lived workflow.

The store holds the transcript; the workflow holds the leaf and the order of things. Commands go
through one inbox and are done one at a time. A run advances turn by turn, and between two steps
the workflow may continue as new, so neither a long life nor a long run outgrows its history.
"""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.contrib.workflow_streams import WorkflowStream

from perdure import names
from perdure.protocol import (
    ErrandReport,
    ErrorInfo,
    LifecycleEvent,
    LoadedSession,
    OpenCommand,
    Opened,
    OpenSession,
    Outcome,
    SessionState,
    SessionStateName,
    Status,
    WaitCommand,
)
from perdure.protocol.said import lightened
from perdure.workflows.approvals import SHOWN_APPROVALS, pending
from perdure.workflows.attributes import see_as, show_status
from perdure.workflows.commands import CLOSED, Commands
from perdure.workflows.details import details, tell_details
from perdure.workflows.errands import begins_at, report
from perdure.workflows.failures import ActivityFailure, reason_of
from perdure.workflows.history import HistoryLength
from perdure.workflows.idleness import Idleness
from perdure.workflows.lifecycle import Lifecycle
from perdure.workflows.renewal import Renewal
from perdure.workflows.sandbox import SANDBOXED
from perdure.workflows.session_stream import SessionStream
from perdure.workflows.timing import LOADING
from perdure.workflows.verbs import receive_verbs, refused


@workflow.defn(name=names.SESSION_WORKFLOW, sandboxed=SANDBOXED)
class SessionWorkflow:
    """Keeps one session: opens it, takes its commands, runs its agent, remembers where it is."""

    @workflow.init
    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._history = HistoryLength()
        stream = WorkflowStream(prior_state=state.stream)
        self._stream = SessionStream(stream, state)
        self._lifecycle = Lifecycle(state, self._stream)
        self._commands = Commands(state, self._stream, self._lifecycle, self._history)
        self._renewal = Renewal(state, self._history)
        self._idleness = Idleness(state, self._commands.inbox, self._history)
        self._fault: ErrorInfo | None = None
        receive_verbs(self._commands)
        tell_details(self._details)

    @workflow.run
    async def run(self, state: SessionState) -> ErrandReport | None:
        """Do commands until one is `close`, or the workflow is cancelled, which means the same.

        The result of a session that was started for an errand is the report on it.
        """
        try:
            await self._open()
            self._watch = asyncio.create_task(self._idleness.watch())
            while not self._commands.is_closing:
                await self._next_step()
                if self._is_between_steps() and self._renewal.is_due():
                    await self._continue_as_new()
        except asyncio.CancelledError:
            await self._end(CLOSED)
            raise
        await self._end(CLOSED)
        errand = self._state.errand
        if errand is None:
            return None
        return await report(errand, self._state, self._commands.inbox.outcome(errand.run_id))

    # ── messages ───────────────────────────────────────────────────────────────────────────────

    @workflow.update(name=names.OPEN)
    async def open(self, command: OpenCommand) -> Opened:
        """The session is loaded, or it was created; from now on the named agent serves it."""
        self._commands.inbox.note_message()
        await workflow.wait_condition(lambda: self._state.opened or self._fault is not None)
        if self._fault is not None:
            raise refused(self._fault)
        state = self._state
        if command.agent is not None:
            state.agent = command.agent
        # What fitted once still has to: it may be waiting.
        state.max_command_bytes = max(state.max_command_bytes, command.max_command_bytes)
        if command.idle_timeout is not None:
            state.idle_timeout = command.idle_timeout
        created, state.created = state.created, False
        return Opened(
            session_id=state.session_id,
            agent=state.agent,
            leaf_id=state.leaf_id,
            tip_id=state.tip_id,
            created=created,
        )

    @open.validator
    def _check_open(self, command: OpenCommand) -> None:
        if self._commands.is_closing:
            raise refused(CLOSED)

    @workflow.update(name=names.WAIT)
    async def wait(self, command: WaitCommand) -> Outcome:
        """The outcome of a command, as soon as there is one."""
        return await self._commands.outcome_of(command.command_id, verb="")

    @wait.validator
    def _check_wait(self, command: WaitCommand) -> None:
        if not self._commands.inbox.knows(command.command_id):
            raise refused(_unknown(command.command_id))

    @workflow.update(name=names.STATUS)
    async def ask_status(self) -> None:
        """What perdure's own client asks, in place of the query below. Always refused: the refusal
        holds the answer, and leaves no history.

        The SDK answers a query at once. When the result of a local activity arrives meanwhile, it
        is recorded in this workflow task and told to the workflow in the next, after the messages
        of that. A replay tells it in this one, and then the answer to an update is in another place
        than in history, which ends the session for good. A person's query now and then hardly meets
        that; a client that asks all the time does.
        """

    @ask_status.validator
    def _tell_status(self) -> None:
        told = ErrorInfo(type=names.STATUS_TOLD, message="this is how the status is told")
        raise refused(told, self.status())

    @workflow.query(name=names.STATUS)
    def status(self) -> Status:
        """The session at a glance."""
        state = self._state
        approvals = pending(state.active)
        return Status(
            session_id=state.session_id,
            agent=state.agent,
            state=self._state_name(),
            leaf_id=state.leaf_id,
            tip_id=state.tip_id,
            doing=self._commands.inbox.activity(),
            queue=self._commands.inbox.waiting(),
            waiting=self._commands.inbox.count(),
            approvals=approvals[:SHOWN_APPROVALS],
            awaiting=len(approvals),
            runs=state.runs,
            turns=state.turns,
            usage=state.usage,
            context_tokens=state.context_tokens,
            last_error=state.last_error,
        )

    def _details(self) -> str:
        return details(self.status(), self._state)

    # ── life ───────────────────────────────────────────────────────────────────────────────────

    async def _open(self) -> None:
        state = self._state
        if state.opened:
            return
        try:
            loaded = await workflow.execute_local_activity(
                names.OPEN_SESSION,
                OpenSession(
                    session_id=state.session_id,
                    parent_id="" if state.errand is None else state.errand.parent_id,
                ),
                result_type=LoadedSession,
                summary="open the session",
                **LOADING,
            )
        except ActivityFailure as error:
            self._fault = reason_of(error)
            await self._end(self._fault)
            raise refused(self._fault) from error
        state.leaf_id = state.tip_id = begins_at(state, loaded.leaf_id)
        state.created = loaded.created
        state.parent_id = loaded.parent_id or state.parent_id
        state.said = loaded.said
        see_as(state, loaded)
        if state.errand is None:  # else it is running at once
            show_status(state, "idle")
        await self._lifecycle.publish(
            LifecycleEvent(type="session_init", session_id=state.session_id, leaf_id=loaded.leaf_id)
        )
        state.opened = True

    async def _next_step(self) -> None:
        """Wait for something to do, and do one step of it; close when there was nothing for
        long.

        Messages that leave nothing to do make history longer too, so it may also have to be left
        behind.
        """
        commands = self._commands
        events = workflow.info().get_current_history_length()
        await workflow.wait_condition(
            lambda: (
                commands.is_ready
                or self._idleness.is_over
                or self._renewal.is_due_at_rest(since=events)
            )
        )
        if not commands.is_ready:
            if self._idleness.is_over:
                commands.is_closing = True
            else:
                await self._continue_as_new()
            return
        self._stream.begin_step()
        await commands.next_step()
        await self._renewal.end_long_task()
        if workflow.cancellation_reason() is not None:
            # An activity that was cancelled along with the workflow has told only its caller.
            raise asyncio.CancelledError

    def _is_between_steps(self) -> bool:
        """Whether the workflow may continue as new after this step, by what was done.

        Not where a run waits for a person: whether it does may hang on the order of an answer and
        the result of an append. There the length of history at rest decides.
        """
        return not self._commands.is_closing and not self._commands.is_awaiting_approval

    async def _continue_as_new(self) -> None:
        await self._renewal.begin_last_task()
        await self._leave()
        self._state.stream = self._stream.carry()
        self._commands.inbox.lighten()
        self._state.said = lightened(self._state.said)
        workflow.continue_as_new(
            self._state, initial_versioning_behavior=self._renewal.versioning()
        )

    async def _end(self, error: ErrorInfo) -> None:
        """Answer whoever waits; the log is valid at any point, so nothing else is to be done."""
        self._commands.end(error)
        show_status(self._state, "closed")
        await self._leave()

    async def _leave(self) -> None:
        """Let every handler answer: with an outcome, or with "ask again"."""
        self._commands.leave()
        self._stream.detach()
        await workflow.wait_condition(workflow.all_handlers_finished)

    def _state_name(self) -> SessionStateName:
        if self._commands.is_closing:
            return "closed"
        if not self._state.opened:
            return "opening"
        return "idle" if self._commands.inbox.activity() is None else "running"


def _unknown(command_id: str) -> ErrorInfo:
    return ErrorInfo(
        type="UnknownCommandError",
        message=f"the session does not remember a command {command_id!r}; read its entries instead",
    )
