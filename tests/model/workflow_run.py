"""One run of the session's workflow, fed by hand: the SDK's instance without a worker or a server.

A run is what was put into it. The instance is made anew for each task and fed the history first, as
on a worker that never saw the session, so a state of the model holds no live objects.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from temporalio import workflow
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.common import Priority, TypedSearchAttributes
from temporalio.contrib.workflow_streams import WorkflowStream
from temporalio.converter import DataConverter
from temporalio.worker import UnsandboxedWorkflowRunner
from temporalio.worker._workflow_instance import WorkflowInstance, WorkflowInstanceDetails

from perdure import names
from perdure.codec import loads_json
from perdure.session_id import workflow_id
from perdure.workflows.session import SessionWorkflow

EPOCH = datetime(2026, 11, 29, 12, tzinfo=UTC)

_DEFINITION = workflow._Definition.must_from_class(SessionWorkflow)
_LOOP = asyncio.new_event_loop()


Recorded = tuple[bytes, bytes]
"""An activation as history has it, and the mark of what the workflow decided then."""


class TaskFailed(Exception):
    """The workflow raised where it may not, or decided otherwise than it did before."""


class WorkflowRun:
    """An instance that has seen the whole history of its run."""

    def __init__(self, session_id: str, number: int, history: Sequence[Recorded]) -> None:
        self._run_id = f"run-{number}"
        self._instance = _instance(session_id, self._run_id, number)
        for data, decided in history:
            commands = self._feed(WorkflowActivation.FromString(data))
            if decisions(commands) != decided:
                raise TaskFailed("the workflow does not decide as it did before")

    def activate(
        self, jobs: Sequence[WorkflowActivationJob], clock: int
    ) -> tuple[bytes, list[WorkflowCommand]]:
        """Let the workflow see the jobs at that time (seconds); answers with the activation, for
        the history, and with what the workflow asks for.
        """
        activation = WorkflowActivation(run_id=self._run_id, jobs=jobs)
        activation.timestamp.FromDatetime(EPOCH + timedelta(seconds=clock))
        return activation.SerializeToString(deterministic=True), self._feed(activation)

    def is_open(self) -> bool:
        """Whether the session is loaded, so that an opening is answered."""
        is_open: bool = self._instance.workflow_instance()._state.opened  # type: ignore[attr-defined]
        return is_open

    def published(self) -> tuple[int, list[tuple[str, bytes]]]:
        """What the stream holds: the offset of the first item, and topic and JSON of each."""
        stream: WorkflowStream = self._instance.workflow_instance()._stream._stream  # type: ignore[attr-defined]
        items = [(item.topic, item.data.data) for item in stream._log]
        return stream._base_offset, items

    def _feed(self, activation: WorkflowActivation) -> list[WorkflowCommand]:
        completion = self._instance.activate(activation)
        if completion.HasField("failed"):
            raise TaskFailed(completion.failed.failure.message)
        return list(completion.successful.commands)


def decisions(commands: Sequence[WorkflowCommand]) -> bytes:
    """The mark of what the workflow asks for: the same for the same."""
    digest = hashlib.blake2b(digest_size=16)
    for command in commands:
        digest.update(command.SerializeToString(deterministic=True))
    return digest.digest()


def first_job(session_id: str, argument: bytes) -> WorkflowActivationJob:
    """The job that starts a run with the state as its argument."""
    job = WorkflowActivationJob()
    start = job.initialize_workflow
    start.workflow_type = names.SESSION_WORKFLOW
    start.workflow_id = workflow_id(session_id)
    start.arguments.append(json_payload(argument))
    return job


def json_payload(data: bytes) -> Payload:
    """JSON as the default data converter makes a payload of it."""
    return Payload(metadata={"encoding": b"json/plain"}, data=data)


def first_detail(details: Sequence[Payload]) -> object:
    """What a failure says besides its message."""
    return loads_json(details[0].data) if details else None


def _instance(session_id: str, run_id: str, seed: int) -> WorkflowInstance:
    converter = DataConverter.default
    details = WorkflowInstanceDetails(
        payload_converter_factory=converter._new_payload_converter,
        failure_converter_class=converter.failure_converter_class,
        interceptor_classes=[],
        defn=_DEFINITION,
        info=_info(session_id, run_id),
        randomness_seed=seed,
        extern_functions={"__temporal_assert_local_activity_valid": lambda name: None},
        disable_eager_activity_execution=True,
        worker_level_failure_exception_types=[],
        patch_activation_callback=None,
        last_completion_result=Payloads(),
        last_failure=None,
    )
    # Where a worker's loop would be; the instance takes itself off it when it has been activated.
    asyncio._set_running_loop(_LOOP)
    try:
        return UnsandboxedWorkflowRunner().create_instance(details)
    finally:
        asyncio._set_running_loop(None)


def _info(session_id: str, run_id: str) -> workflow.Info:
    return workflow.Info(
        attempt=1,
        continued_run_id=None,
        cron_schedule=None,
        execution_timeout=None,
        first_execution_run_id="run-0",
        headers={},
        namespace="default",
        original_execution_run_id=run_id,
        parent=None,
        root=None,
        raw_memo={},
        retry_policy=None,
        run_id=run_id,
        run_timeout=None,
        search_attributes={},
        start_time=EPOCH,
        workflow_start_time=EPOCH,
        task_queue="perdure",
        task_timeout=timedelta(seconds=5),
        typed_search_attributes=TypedSearchAttributes.empty,
        workflow_id=workflow_id(session_id),
        workflow_type=names.SESSION_WORKFLOW,
        priority=Priority.default,
    )
