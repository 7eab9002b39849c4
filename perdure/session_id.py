"""Session IDs: which strings are one, and the workflow ID that each stands for.

The application chooses the ID and its meaning. Nothing about it is normalized: two IDs that differ
in one code point are two sessions.
"""

from __future__ import annotations

import unicodedata
from urllib.parse import quote, unquote

from perdure.errors import InvalidSessionIdError
from perdure.tenant import check_tenant

WORKFLOW_ID_PREFIX = "session:"

WORKFLOW_ID_LIMIT = 1000
"""Bytes. Temporal takes no longer workflow ID with its default settings."""


def check_session_id(session_id: str) -> str:
    """Return the ID as it is, if it can name a session.

    Any text does, unless it is empty, holds a control character (Unicode category Cc) or a lone
    surrogate (which has no UTF-8 form), or is too long to make a workflow ID of.

    Raises:
        InvalidSessionIdError: the ID cannot name a session; the message says why.
    """
    workflow_id(session_id)
    return session_id


def workflow_id(session_id: str, instance: str = "", *, tenant: str = "") -> str:
    """Return the ID of the workflow that runs the session.

    It is `session:`, for one of a tenant's the tenant and `:`, and the session ID; for a second
    live instance of the same session, `@` and the name of the instance follow. ID and instance are
    percent-encoded but for unreserved characters, so that the text is plain ASCII, no ID reads like
    that of another tenant, and `session_id_of` can take it apart again.

    Raises:
        InvalidSessionIdError: either part cannot name a session, or both are too long together.
        TenantError: the tenant's name is none.
    """
    if not isinstance(session_id, str):
        raise InvalidSessionIdError(str(session_id), "is no text")
    name = workflow_id_prefix(tenant) + _encoded(session_id)
    if not isinstance(instance, str):
        raise InvalidSessionIdError(str(instance), "is no text, and so names no instance")
    if instance:
        name += "@" + _encoded(instance)
    if len(name) > WORKFLOW_ID_LIMIT:
        raise InvalidSessionIdError(
            session_id,
            f"makes a workflow ID of {len(name)} bytes, the limit is {WORKFLOW_ID_LIMIT};"
            " choose a shorter one",
        )
    return name


def workflow_id_prefix(tenant: str) -> str:
    """Return what the IDs of all workflows of a tenant's sessions start with; of those that are of
    no tenant, for an empty name. Raises TenantError.
    """
    return f"{WORKFLOW_ID_PREFIX}{check_tenant(tenant)}:" if tenant else WORKFLOW_ID_PREFIX


def tenant_of(workflow_id: str) -> str:
    """Return the tenant that a session's workflow belongs to, by its ID; empty for none."""
    tenant, colon, _ = workflow_id.removeprefix(WORKFLOW_ID_PREFIX).partition(":")
    return tenant if colon else ""


def session_id_of(workflow_id: str, *, tenant: str = "") -> str:
    """Return the session ID that a workflow ID was made from, whichever instance it names.

    Raises:
        InvalidSessionIdError: this is not the ID of a workflow of a session of the tenant's.
    """
    prefix = workflow_id_prefix(tenant)
    encoded, _, instance = workflow_id.removeprefix(prefix).partition("@")
    session_id = unquote(encoded)
    if not _makes(workflow_id, session_id, unquote(instance), tenant):
        raise InvalidSessionIdError(
            workflow_id, f"is no workflow ID of a session; those start with {prefix!r}"
        )
    return session_id


def _makes(name: str, session_id: str, instance: str, tenant: str) -> bool:
    try:
        return workflow_id(session_id, instance, tenant=tenant) == name
    except InvalidSessionIdError:
        return False


def _encoded(part: str) -> str:
    """Percent-encode one part of a workflow ID, after a look at what may not be in it."""
    if not part:
        raise InvalidSessionIdError(part, "is empty; give it at least one character")
    for position, character in enumerate(part):
        category = unicodedata.category(character)
        if category == "Cc":
            raise InvalidSessionIdError(
                part, f"holds a control character at position {position}; leave it out"
            )
        if category == "Cs":
            raise InvalidSessionIdError(
                part, f"holds half a surrogate pair at position {position}; leave it out"
            )
    return quote(part, safe="")
