"""Keeps a worker from the sessions of other tenants, whatever comes to its task queue."""

from __future__ import annotations

from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from perdure import names
from perdure.session_id import tenant_of


class TenantGuard(Interceptor):
    """Lets through the activities of one tenant's sessions, and what is not perdure's.

    Task queues keep tenants apart already. This is for when they are named alike by mistake: a
    worker would look for the session of one tenant among those of another.
    """

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See the SDK."""
        return _Guarded(next, self._tenant)


class _Guarded(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, tenant: str) -> None:
        super().__init__(next)
        self._tenant = tenant

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if info.activity_type.startswith(names.ACTIVITY_PREFIX):
            theirs = tenant_of(info.workflow_id or "")
            if theirs != self._tenant:
                raise ApplicationError(
                    f"a session of {_name(theirs)} came to a worker of {_name(self._tenant)}; "
                    "give the workers of each tenant a task queue of their own",
                    type="TenantError",
                    non_retryable=True,
                )
        return await super().execute_activity(input)


def _name(tenant: str) -> str:
    return f"tenant {tenant!r}" if tenant else "no tenant"
