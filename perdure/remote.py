"""One session's workflow, as seen from a client: commands out, outcomes and perdure's errors
back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TypeVar

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateHandle,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.contrib.workflow_streams import WorkflowStreamClient
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from perdure import names
from perdure.encryption.payloads import mark_of
from perdure.errors import (
    CommandTooLargeError,
    EncryptionError,
    PerdureError,
    ServerError,
    SessionClosedError,
    restored,
)
from perdure.large_payloads import command_limit
from perdure.protocol import (
    LifecycleEvent,
    OpenCommand,
    Opened,
    Outcome,
    QueuedCommand,
    SessionState,
    Status,
    WaitCommand,
)
from perdure.unreadable import told_unreadable, why_silent
from perdure.wire import ENCRYPTED, check_opened

T = TypeVar("T")

_BUSY = {
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.ABORTED,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.UNKNOWN,
    RPCStatusCode.INTERNAL,
    RPCStatusCode.CANCELLED,
}
"""What is said when a call may succeed soon. FAILED_PRECONDITION is for an update whose workflow
task was done again, because many signals arrived meanwhile; the last three are what a connection
breaks with when the server goes down."""

ANSWER_TIMEOUT = 60.0
"""Seconds that a command waits for a worker to take it, and a question for the answer. What the
session does then may take as long as it likes."""

_PATIENCE = 60.0
_LONG_POLL = 15.0
"""A call that took so many seconds was a long poll that ended without news, not a failure."""

_WORKFLOW_ENDED = "AcceptedUpdateCompletedWorkflow"
"""The server's name for an update whose workflow ended under it."""

_PASSED_OVER = "UnprocessedUpdate"
"""The server's name for an update that a worker left unanswered, as one does that knows more of the
workflow than the server, which was restarted. Nothing came of it, and it may be sent again."""

_FIRST_PAUSE = 0.05

_TASK_TIMEOUT = timedelta(seconds=5)


class RemoteSession:
    """Talks to a session's workflow. Commands are repeated while the server is busy: their ID
    makes that harmless.
    """

    def __init__(self, client: Client, workflow_id: str, task_queue: str) -> None:
        self.client = client
        self.workflow_id = workflow_id
        self._task_queue = task_queue

    async def open(self, command: OpenCommand, state: SessionState, answer_within: float) -> Opened:
        """Start the workflow if it does not run, and wait until the session is ready.

        Raises ServerError when no worker answered within that many seconds.
        """

        async def start_and_open() -> Opened:
            start: WithStartWorkflowOperation[object, None] = WithStartWorkflowOperation(
                names.SESSION_WORKFLOW,
                state,
                id=self.workflow_id,
                task_queue=self._task_queue,
                task_timeout=_TASK_TIMEOUT,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                static_summary=f"perdure session {state.session_id}"[:200],
            )
            try:
                opened: Opened = await self.client.execute_update_with_start_workflow(
                    names.OPEN, command, start_workflow_operation=start, result_type=Opened
                )
            except Exception:
                # The SDK puts the error into the start's handle too; someone has to look at it.
                with suppress(Exception, asyncio.CancelledError):
                    await start.workflow_handle()
                raise
            return opened

        async with self._a_worker_within(answer_within):
            return await _reopened(start_and_open)

    async def send(
        self, command: QueuedCommand, *, is_own_id: bool = False
    ) -> WorkflowUpdateHandle[Outcome]:
        """Hand a command over; it is durably queued when this returns.

        With an ID of the application's own choice, the update's ID tells its content too: the
        server answers an ID that it knows with the first outcome, without asking the workflow
        whether this is the same command. Raises CommandTooLargeError before anything is sent,
        CommandError when the session refuses, ServerError when no worker takes it within a minute;
        it may still be done when one comes.
        """
        update_id = command.command_id
        if is_own_id:
            update_id += f".{mark_of(self.client, command.digest())}"
        size, limit = len(command.to_json()), command_limit(self.client)
        if size > limit:
            raise CommandTooLargeError(size, limit)
        async with self._a_worker_within(ANSWER_TIMEOUT):
            handle = await self._while_running(lambda: self._hand_over(command, update_id))
        await _raise_if_refused(handle)
        return handle

    async def _hand_over(
        self, command: QueuedCommand, update_id: str
    ) -> WorkflowUpdateHandle[Outcome]:
        handle = await self._handle().start_update(
            command.verb,
            command,
            id=update_id,
            result_type=Outcome,
            wait_for_stage=WorkflowUpdateStage.ACCEPTED,
        )
        refusal = await _refusal(handle)
        if refusal is not None and _is_passed_over(refusal):
            raise refusal
        return handle

    async def outcome(
        self, command_id: str, handle: WorkflowUpdateHandle[Outcome] | None = None
    ) -> Outcome:
        """What became of a command, as soon as there is something. A failed one is an outcome
        too.
        """
        try:
            outcome = None if handle is None else await self._first_answer(handle)
            while outcome is None or outcome.status == "pending":
                outcome = await self._while_running(lambda: self._ask_for(command_id))
        except _Told as told:
            return told.outcome
        return outcome

    async def status(self) -> Status:
        """The workflow's answer to `status`. Raises SessionClosedError when it does not run,
        ServerError when no worker answers within a minute.
        """
        async with self._a_worker_within(ANSWER_TIMEOUT):
            return await self._while_running(self._ask_status)

    async def lifecycle(self) -> AsyncIterator[LifecycleEvent]:
        """Lifecycle events, from what the stream still holds on, across continue-as-new."""
        stream = WorkflowStreamClient.create(self.client, self.workflow_id)
        topic = stream.topic(names.LIFECYCLE_TOPIC, type=LifecycleEvent)
        async for item in topic.subscribe():
            yield item.data

    async def _first_answer(self, handle: WorkflowUpdateHandle[Outcome]) -> Outcome | None:
        """The update's own answer; None when the workflow ended under it."""
        with suppress(SessionClosedError):
            return await _persist(handle.result)
        return None

    async def _ask_status(self) -> Status:
        # Why not by the query of that name: see the workflow.
        try:
            await self._handle().execute_update(names.STATUS)
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.type == names.STATUS_TOLD:
                return Status.model_validate(cause.details[0])
            raise
        raise _closed()

    async def _ask_for(self, command_id: str) -> Outcome:
        waited: Outcome = await self._handle().execute_update(
            names.WAIT, WaitCommand(command_id=command_id), result_type=Outcome
        )
        return waited

    async def _while_running(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call, again when one run of the workflow ended under it and the next goes on."""
        while True:
            try:
                return await _persist(call)
            except SessionClosedError:
                if not await self._is_running():
                    raise
                await asyncio.sleep(_FIRST_PAUSE)

    async def _is_running(self) -> bool:
        try:
            described = await _persist(self._handle().describe)
        except SessionClosedError:
            return False
        return described.status == WorkflowExecutionStatus.RUNNING

    @asynccontextmanager
    async def _a_worker_within(self, seconds: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds) as deadline:
                yield
        except TimeoutError:
            if not deadline.expired():
                raise
            if (reason := await why_silent(self.client, self.workflow_id)) is not None:
                raise reason from None
            raise ServerError(
                f"no worker answered on task queue {self._task_queue!r} "
                f"within {seconds:g} seconds; start one with `perdure worker`"
            ) from None

    def _handle(self) -> WorkflowHandle[object, None]:
        return self.client.get_workflow_handle(self.workflow_id)


class _Told(Exception):
    """The workflow told the outcome of a failed command."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


async def _raise_if_refused(handle: WorkflowUpdateHandle[Outcome]) -> None:
    refusal = await _refusal(handle)
    told = None if refusal is None else _told_by_workflow(refusal)
    if told is not None and not isinstance(told, _Told):
        raise told


async def _refusal(handle: WorkflowUpdateHandle[Outcome]) -> WorkflowUpdateFailedError | None:
    """The SDK keeps the refusal of an update for whoever asks for its result; here it is asked for
    at once, if there is anything to hear already.
    """
    if handle._known_outcome is not None:
        try:
            await handle.result()
        except WorkflowUpdateFailedError as error:
            return error
    return None


def _is_passed_over(error: WorkflowUpdateFailedError) -> bool:
    return isinstance(error.cause, ApplicationError) and error.cause.type == _PASSED_OVER


async def _reopened(open_it: Callable[[], Awaitable[T]]) -> T:
    """Open, again while a workflow that is just ending is in the way."""
    while True:
        try:
            return await _persist(open_it)
        except SessionClosedError:
            await asyncio.sleep(_FIRST_PAUSE)


async def _persist(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call, again while the server says "not now", and raise what it says otherwise as
    perdure's errors.

    Raises ServerError when the server says so, or nothing, for a minute without a break.
    """
    pause, patience = _FIRST_PAUSE, _PATIENCE
    while True:
        began, trouble = time.monotonic(), "the Temporal server is out of reach"
        try:
            return await _readable(call)
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            if isinstance(error.__cause__, asyncio.CancelledError):
                raise error.__cause__ from None
            reason = "it did not answer in time"
        except WorkflowUpdateFailedError as error:
            if not _is_passed_over(error):
                raise _told_by_workflow(error) from None
            reason = "a worker left it unanswered"
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                raise _closed() from None
            reason = error.message
            if error.status not in _BUSY:
                raise ServerError(f"the Temporal server refused: {reason}") from error
            if error.status == RPCStatusCode.FAILED_PRECONDITION:
                trouble = "the session's workflow cannot go on; see the log of its worker"
        if time.monotonic() - began > _LONG_POLL:
            pause, patience = _FIRST_PAUSE, _PATIENCE  # it listened for long: it is there
        if patience <= 0:
            raise ServerError(f"{trouble}: {reason}")
        await asyncio.sleep(pause)
        patience -= pause + time.monotonic() - began
        pause = min(2 * pause, 2.0)


async def _readable(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call. What is in an error is read by the SDK, which may find it encrypted."""
    try:
        return await call()
    except KeyError as error:
        if ENCRYPTED.decode() not in str(error):
            raise
        raise EncryptionError(
            "what the session's worker answers is encrypted, with a key that is not among those of "
            "this client; give the client the worker's keys"
        ) from None


def _told_by_workflow(error: WorkflowUpdateFailedError) -> PerdureError | _Told:
    cause = error.cause
    if not isinstance(cause, ApplicationError) or cause.type == _WORKFLOW_ENDED:
        return _closed()
    if cause.failure is not None:
        check_opened(cause.failure.encoded_attributes)  # the words of an error, where encrypted
    if (unread := told_unreadable(cause.__cause__)) is not None:
        return unread
    details = cause.details
    if details and isinstance(details[0], dict):
        return _Told(Outcome.model_validate(details[0]))
    return restored(cause.type or "", cause.message)


def _closed() -> SessionClosedError:
    return SessionClosedError("the session's workflow does not run; open the session to resume it")
