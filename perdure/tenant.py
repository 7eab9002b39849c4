"""Tenants: applications that share a namespace or a store and see nothing of each other.

A tenant's name stands before the IDs of its sessions in the store, in workflow IDs and in the names
of its task queues. It ends with a colon and holds none, so no session ID leads from one tenant into
another. What the application sees are its own IDs.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from perdure.errors import TenantError

VARIABLE = "PERDURE_TENANT"
"""The environment variable that names the tenant."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def check_tenant(tenant: str) -> str:
    """Return the name as it is, if it can be a tenant's. Raises TenantError."""
    given: Any = tenant
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise TenantError(
            f"{str(tenant)[:80]!r} cannot name a tenant; take 1 to 63 lower-case letters, digits, "
            "'.', '_' and '-', starting with a letter or digit"
        )
    return tenant


def given_tenant(tenant: str | None) -> str:
    """The tenant that was named, or PERDURE_TENANT; empty for none. Raises TenantError."""
    name = os.environ.get(VARIABLE, "") if tenant is None else tenant
    return check_tenant(name) if name else ""


def tenant_queue(task_queue: str, tenant: str) -> str:
    """The task queue of a tenant's workers and clients, where others have `task_queue`."""
    return f"{tenant}:{task_queue}" if tenant else task_queue
