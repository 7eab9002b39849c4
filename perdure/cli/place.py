"""Which session a command line means, and where it is."""

from __future__ import annotations

import os
from dataclasses import dataclass

from perdure.session_id import workflow_id
from perdure.tenant import given_tenant

STORE_VARIABLE = "PERDURE_STORE"
TASK_QUEUE_VARIABLE = "PERDURE_TASK_QUEUE"


@dataclass(frozen=True, slots=True)
class Where:
    """A store, and whose part of it, as the command line gives them; None is for the environment
    to say.
    """

    store: str | None = None
    tenant: str | None = None

    @property
    def store_spec(self) -> str:
        """The store that is named here, or by PERDURE_STORE; files:./sessions otherwise."""
        from perdure.stores import DEFAULT_STORE

        return self.store or os.environ.get(STORE_VARIABLE) or DEFAULT_STORE

    @property
    def tenant_name(self) -> str:
        """The tenant named here, or by PERDURE_TENANT; empty for none. Raises TenantError."""
        return given_tenant(self.tenant)


@dataclass(frozen=True, slots=True)
class Place:
    """A session, or a second live instance of it, in a store, served on a task queue. With `otel`
    what is done to it is told to OpenTelemetry; None is for the environment to say.
    """

    session_id: str
    where: Where = Where()
    instance: str = ""
    task_queue: str | None = None
    otel: bool | None = None

    @property
    def workflow_id(self) -> str:
        """The ID of its workflow. Raises InvalidSessionIdError, TenantError."""
        return workflow_id(self.session_id, self.instance, tenant=self.where.tenant_name)

    @property
    def task_queue_name(self) -> str:
        """The task queue that is named here, or by PERDURE_TASK_QUEUE; a tenant's own is made of
        it.
        """
        from perdure import names

        return self.task_queue or os.environ.get(TASK_QUEUE_VARIABLE) or names.TASK_QUEUE
