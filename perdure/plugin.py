"""perdure in a Temporal worker, as a plugin of the SDK."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta

from temporalio.plugin import SimplePlugin
from temporalio.worker import Interceptor, Worker, WorkerConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from perdure.activities import (
    ForkActivities,
    LoopActivities,
    ModelActivities,
    PublishActivities,
    StoreActivities,
    SubAgentActivities,
    SummaryActivities,
    ToolActivities,
    ToolListActivities,
)
from perdure.activities.agents import AgentRegistry
from perdure.activities.appending import Appends
from perdure.activities.heartbeats import Heart
from perdure.activities.seen_outside import Outside
from perdure.activities.tenant_guard import TenantGuard
from perdure.activities.toolboxes import Toolboxes
from perdure.agent import Agent
from perdure.deployments import with_behavior
from perdure.large_payloads import allow_long_steps
from perdure.lifecycle import Publisher
from perdure.stores import given_store, in_tenant
from perdure.stores.contract import Store
from perdure.telemetry import telemetry
from perdure.tenant import given_tenant
from perdure.transcript_cache import Transcripts
from perdure.ui_text import given_ui_text
from perdure.workflows import SessionWorkflow
from perdure.workflows.tracing import TraceHeaders

_SDK_STICKY_TIMEOUT = timedelta(seconds=10)
_SDK_THROTTLE = timedelta(seconds=60)
_STICKY_TIMEOUT = timedelta(seconds=2)
_THROTTLE = timedelta(milliseconds=500)


class PerdurePlugin(SimplePlugin):
    """Adds the session workflow and its activities to a worker that may serve other things too.

    Two of the worker's settings are tightened unless they were set: the sticky queue's timeout,
    which passes after a worker died before another takes its sessions over, and the heartbeat
    throttle, which delays a cancellation.
    """

    def __init__(
        self,
        *,
        agents: Sequence[Agent],
        store: Store | str,
        publisher: Publisher | None = None,
        tenant: str | None = None,
        otel: bool | None = None,
        ui_text: bool | None = None,
    ) -> None:
        """Serve these agents over the store, and tell the publisher of lifecycle events.

        The sessions are those of `tenant`, or of PERDURE_TENANT; empty means those of no tenant.
        The worker's task queue is then the tenant's own, see `perdure.tenant.tenant_queue`.
        With `otel`, or PERDURE_OTEL, it tells OpenTelemetry what it does.

        With `ui_text=False`, or PERDURE_UI_TEXT=off, the Temporal UI shows what sessions do and not
        what is said in them: no messages, no arguments, no texts of errors.

        Raises AgentError when two agents share a name, or the publisher is none; StoreError,
        TenantError, TelemetryError, ServerError for a PERDURE_UI_TEXT that is none.
        """
        tenant = given_tenant(tenant)
        store = in_tenant(given_store(store), tenant)
        registry = AgentRegistry(agents)
        interceptors: list[Interceptor] = [TenantGuard(tenant), TraceHeaders()]
        told = telemetry(otel)
        if told is not None:
            from perdure.telemetry.store import MeasuredStore
            from perdure.telemetry.worker import WorkerTelemetry

            store = MeasuredStore(store, told)
            interceptors.append(WorkerTelemetry(told))
        transcripts = Transcripts(store)
        self._heart = Heart()
        self._toolboxes = toolboxes = Toolboxes()
        self._outside = Outside(shows_text=given_ui_text(ui_text))
        appends = Appends(store, transcripts)
        storage = StoreActivities(store, registry, transcripts, appends, self._outside)
        model = ModelActivities(registry, toolboxes, transcripts, appends, self._heart)
        tools = ToolActivities(registry, toolboxes, self._heart)
        super().__init__(
            "perdure.PerdurePlugin",
            workflows=[SessionWorkflow],
            activities=[
                storage.open_session,
                storage.append_entries,
                storage.start_run,
                storage.find_entry,
                model.call_model,
                tools.run_tool,
                tools.check_arguments,
                LoopActivities(store, registry, transcripts, self._heart).run_loop,
                ToolListActivities(registry, toolboxes, self._heart).list_tools,
                SummaryActivities(registry, toolboxes, transcripts, self._heart).summarize,
                ForkActivities(store, transcripts, self._heart).copy_path,
                SubAgentActivities(transcripts).read_answer,
                PublishActivities(publisher).publish,
            ],
            interceptors=interceptors,
            workflow_runner=_with_passthrough,
            run_context=self._while_running,
        )

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """See the class."""
        config = super().configure_worker(config)
        self._outside.client = config["client"]
        if config.get("sticky_queue_schedule_to_start_timeout") in (None, _SDK_STICKY_TIMEOUT):
            config["sticky_queue_schedule_to_start_timeout"] = _STICKY_TIMEOUT
        deployment = config.get("deployment_config")
        if deployment is not None and deployment.use_worker_versioning:
            config["deployment_config"] = with_behavior(deployment)
        if config.get("max_heartbeat_throttle_interval") in (None, _SDK_THROTTLE):
            config["max_heartbeat_throttle_interval"] = _THROTTLE
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """See the SDK."""
        allow_long_steps(worker)
        await super().run_worker(worker, next)

    @contextlib.asynccontextmanager
    async def _while_running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._heart.close()
            await self._outside.close()
            await self._toolboxes.close()


def _with_passthrough(runner: WorkflowRunner | None) -> WorkflowRunner:
    """The sandbox imports a workflow's modules anew; perdure's pure modules and pydantic need
    not be.
    """
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner or SandboxedWorkflowRunner()
    return dataclasses.replace(
        runner,
        restrictions=runner.restrictions.with_passthrough_modules(
            "perdure", "pydantic", "pydantic_core", "annotated_types"
        ),
    )
