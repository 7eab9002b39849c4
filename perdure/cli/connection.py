"""How commands reach the workflow of a session."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Coroutine
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from perdure.cli.failures import INTERRUPTED, is_debugging
from perdure.cli.place import Place
from perdure.cli.screen import err
from perdure.cli.stored import opened, record_of
from perdure.client import Sessions, connect_client
from perdure.errors import CommandError, ServerError, SessionNotFoundError
from perdure.remote import RemoteSession
from perdure.session import Session
from perdure.telemetry import telemetry
from perdure.tenant import tenant_queue

CONNECT_TIMEOUT = 10.0
"""Seconds that a command waits for a server to answer."""

HEALTH_TIMEOUT = 2.0
"""Seconds that a server which is there may take to say so."""

T = TypeVar("T")


async def connect() -> Client:
    """A client, as the SDK's environment configuration says. Raises ServerError when no server
    answers within ten seconds.
    """
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            return await connect_client(runtime=None if is_debugging() else _quiet())
    except TimeoutError:
        raise ServerError(
            f"no Temporal server answered within {CONNECT_TIMEOUT:g} seconds; set TEMPORAL_ADDRESS"
        ) from None


@functools.cache
def _quiet() -> Runtime:
    """A runtime of the SDK whose core writes no log of its own among what a command prints."""
    return Runtime(telemetry=TelemetryConfig(logging=None))


async def sessions_of(place: Place) -> Sessions:
    """The sessions of that store on that task queue. Raises StoreError, ServerError and
    TelemetryError.
    """
    store = opened(place.where)
    telemetry(place.otel)  # before anything else: a package may be missing
    return Sessions(
        await connect(),
        store,
        task_queue=place.task_queue_name,
        tenant=place.where.tenant_name,
        otel=place.otel,
    )


async def existing(sessions: Sessions, place: Place) -> Session:
    """A session that somebody created, open. A slip in its ID creates none.

    Raises SessionNotFoundError for one that neither runs nor is stored, ServerError.
    """
    if not await is_running(sessions.client, place):
        await record_of(sessions.store, place.session_id)
    return await sessions.open(place.session_id, instance=place.instance)


async def running(sessions: Sessions, place: Place) -> Session:
    """A session whose workflow runs, open. Raises CommandError when it does not, ServerError."""
    if not await is_running(sessions.client, place):
        await record_of(sessions.store, place.session_id)
        raise CommandError(
            f"session {place.session_id!r} does not run, so there is nothing to do for it"
        )
    return await sessions.open(place.session_id, instance=place.instance)


async def is_running(client: Client, place: Place) -> bool:
    """Whether the session has a workflow that runs. Raises ServerError."""
    try:
        described = await client.get_workflow_handle(place.workflow_id).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND and "amespace" not in error.message:
            return False
        raise ServerError(f"the Temporal server refused: {error.message}") from None
    return described.status == WorkflowExecutionStatus.RUNNING


async def check_store(sessions: Sessions, place: Place) -> None:
    """Make sure that this store is the one that the session's worker has.

    Raises SessionNotFoundError: it knows nothing of a session that is open.
    """
    try:
        await record_of(sessions.store, place.session_id)
    except SessionNotFoundError:
        raise CommandError(
            f"session {place.session_id!r} is open, but not in {sessions.store!r}; "
            "name the store of its worker with --store or PERDURE_STORE"
        ) from None


async def answers(client: Client) -> bool:
    """Whether the server says within two seconds that it is there."""
    try:
        async with asyncio.timeout(HEALTH_TIMEOUT):
            return await client.service_client.check_health()
    except (TimeoutError, RPCError):
        return False


def remote_of(client: Client, place: Place) -> RemoteSession:
    """The session's workflow, without opening it."""
    return RemoteSession(
        client,
        place.workflow_id,
        tenant_queue(place.task_queue_name, place.where.tenant_name),
    )


def finish(work: Coroutine[Any, Any, T], *, when_interrupted: str) -> T:
    """Do the work; at Ctrl-C say what goes on without us, and end the command."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        screen = err()
        screen.line(screen.styled(f"perdure: {when_interrupted}", "dim"))
        raise SystemExit(INTERRUPTED) from None
