"""Why a session's workflow does not answer: it was sent what its workers have no key for, or its
code fails.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from perdure.errors import EncryptionError, PerdureError, ServerError, restored
from perdure.wire import check_opened

_LOOKED_AT = 10
"""Events, from the latest on, that are looked at."""

_TIMEOUT = timedelta(seconds=5)

_FAILED_IN_CODE = (
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR,
)


async def why_silent(client: Client, workflow_id: str) -> PerdureError | None:
    """The error that the workflow's tasks fail with, again and again; nothing when they do not, as
    where no worker takes them.
    """
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id),
        maximum_page_size=_LOOKED_AT,
    )
    service = client.workflow_service
    try:
        history = await service.get_workflow_execution_history_reverse(request, timeout=_TIMEOUT)
    except RPCError:
        return None
    for event in history.history.events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            return None
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            failed = event.workflow_task_failed_event_attributes
            is_fault = failed.cause in _FAILED_IN_CODE
            return await _reason(client, failed.failure) if is_fault else None
    return None


def told_unreadable(error: BaseException | None) -> PerdureError | None:
    """The EncryptionError of a worker that could not read what it was sent, if that is behind this
    error.
    """
    while error is not None:
        if isinstance(error, ApplicationError) and error.type == EncryptionError.__name__:
            # The SDK puts the type before the words where it has made the error itself.
            reason = error.message.removeprefix(f"{error.type}: ")
            return restored(
                error.type, f"the session's worker cannot read what it is sent: {reason}"
            )
        error = error.__cause__
    return None


async def _reason(client: Client, failure: Failure) -> PerdureError:
    error = await client.data_converter.decode_failure(failure)
    if isinstance(error, ApplicationError) and error.failure is not None:
        try:
            check_opened(error.failure.encoded_attributes)
        except EncryptionError as unread:
            return EncryptionError(
                "the session's workflow cannot go on, and what its worker says of it cannot be read"
                f" here: {unread}. If the worker lacks this client's key, give it that key",
                key_id=unread.key_id,
            )
    if (unreadable := told_unreadable(error)) is not None:
        return unreadable
    return ServerError("the session's workflow cannot go on; see the log of its worker")
