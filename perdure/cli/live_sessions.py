"""The sessions that run, as Temporal and their workers tell it.

Where the search attributes of sessions are registered, Temporal does. Who is not found by them, as
a session that began before they were, is asked.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from temporalio.client import Client, WorkflowExecution
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError

from perdure import names
from perdure.cli.connection import connect
from perdure.cli.listing import Filters, Listed
from perdure.cli.place import Where
from perdure.errors import InvalidSessionIdError, PerdureError, ServerError
from perdure.remote import RemoteSession
from perdure.search_attributes import are_registered
from perdure.session_id import WORKFLOW_ID_PREFIX, session_id_of

ANSWER_TIMEOUT = 5.0
"""Seconds that a worker may take to tell how a session stands."""

_AT_ONCE = 16

_STATUS = SearchAttributeKey.for_keyword(names.SESSION_STATUS)
_AGENT = SearchAttributeKey.for_keyword(names.SESSION_AGENT)
_TURNS = SearchAttributeKey.for_int(names.SESSION_TURNS)
_TOLD_STATES = ("running", "waiting", "idle")


async def live_sessions(where: Where, filters: Filters) -> list[Listed]:
    """The sessions with a workflow that runs, in the order of their IDs. Raises ServerError."""
    client = await connect()
    tenant = where.tenant_name
    found: list[Listed] = []
    query = f"WorkflowType = '{names.SESSION_WORKFLOW}' AND ExecutionStatus = 'Running'"
    if not filters.ask and await _has_attributes(client):
        query += _narrowed(filters)
    try:
        async for execution in client.list_workflows(query):
            listed = _listed(execution, tenant, is_told=not filters.ask)
            if listed is not None and listed.session_id.startswith(filters.prefix):
                found.append(listed)
    except RPCError as error:
        raise ServerError(f"the Temporal server refused: {error.message}") from None
    found.sort(key=lambda listed: (listed.session_id, listed.instance))
    # Who is asked is brought into the memory of a worker: no more than are shown, unless a filter
    # needs to know.
    asked = found if filters.state or filters.agent else found[: filters.limit + 1]
    at_once = asyncio.Semaphore(_AT_ONCE)
    told = await asyncio.gather(*(_asked(client, listed, at_once) for listed in asked))
    return [*told, *found[len(asked) :]]


async def _has_attributes(client: Client) -> bool:
    try:
        return await are_registered(client)
    except RPCError:  # who may list sessions need not be allowed to ask that
        return False


def _narrowed(filters: Filters) -> str:
    """What is asked of Temporal besides, so that it leaves out whom the filters leave out."""
    narrowed = ""
    if filters.state in _TOLD_STATES:
        status = names.SESSION_STATUS
        narrowed += f" AND ({status} = '{filters.state}' OR {status} IS NULL)"
    if filters.agent and "'" not in filters.agent and "\\" not in filters.agent:
        agent = names.SESSION_AGENT
        narrowed += f" AND ({agent} = '{filters.agent}' OR {agent} IS NULL)"
    return narrowed


def _listed(execution: WorkflowExecution, tenant: str, *, is_told: bool) -> Listed | None:
    try:
        session_id = session_id_of(execution.id, tenant=tenant)
    except InvalidSessionIdError:
        return None
    _, _, instance = execution.id.removeprefix(WORKFLOW_ID_PREFIX).partition("@")
    told = execution.typed_search_attributes
    state = told.get(_STATUS) if is_told else None
    return Listed(
        session_id,
        instance=instance,
        state=state if state in _TOLD_STATES else "unknown",
        agent=told.get(_AGENT) if is_told else None,
        turns=told.get(_TURNS) if is_told else None,
        started_at=execution.start_time,
        workflow_id=execution.id,
    )


async def _asked(client: Client, listed: Listed, at_once: asyncio.Semaphore) -> Listed:
    if listed.state != "unknown":
        return listed
    remote = RemoteSession(client, listed.workflow_id, names.TASK_QUEUE)
    async with at_once:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                status = await remote.status()
        except (TimeoutError, PerdureError):
            return listed
    usage = status.usage
    return replace(
        listed,
        state="waiting" if status.awaiting else status.state,
        agent=status.agent,
        runs=status.runs,
        turns=status.turns,
        tokens=usage.input + usage.cache_read + usage.cache_write + usage.output,
        error=None if status.last_error is None else status.last_error.message,
    )
