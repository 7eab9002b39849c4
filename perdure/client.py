"""The client: find or create sessions, from any process."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from temporalio.client import Client
from temporalio.converter import ExternalStorage
from temporalio.envconfig import ClientConfig
from temporalio.runtime import Runtime

from perdure import names
from perdure.data_conversion import data_converter
from perdure.encryption.keys import Keys
from perdure.errors import CommandError, ServerError
from perdure.large_payloads import command_limit
from perdure.protocol import (
    MAX_HISTORY_EVENTS,
    TIMES_IN_A_RUN,
    OpenCommand,
    Opened,
    SessionState,
)
from perdure.remote import RemoteSession
from perdure.session import Session, new_command
from perdure.session_id import check_session_id, workflow_id
from perdure.stores import given_store, in_tenant
from perdure.stores.contract import Store
from perdure.telemetry import telemetry
from perdure.tenant import given_tenant, tenant_queue
from perdure.transcript_cache import Transcripts

OPEN_TIMEOUT = 30.0
"""Seconds that `open` waits for a worker."""


class Sessions:
    """Sessions of one store on one task queue."""

    def __init__(
        self,
        client: Client,
        store: Store | str,
        *,
        task_queue: str = names.TASK_QUEUE,
        tenant: str | None = None,
        otel: bool | None = None,
        max_history_events: int = MAX_HISTORY_EVENTS,
        max_history_events_in_run: int | None = None,
    ) -> None:
        """Use a client that is connected already.

        A `tenant` keeps its sessions apart from those of others in the same store and namespace; it
        is PERDURE_TENANT unless given, and empty for none. With `otel`, or PERDURE_OTEL, commands
        are traced from here on.

        `max_history_events` is for new sessions: the length of history, in events, after which a
        session's workflow continues as new between two commands. In the middle of a run it does so
        after `max_history_events_in_run`, three times as many unless told otherwise.

        Raises StoreError when the store is none or cannot be opened, TenantError, TelemetryError,
        ServerError for what is no client, ValueError for fewer than one event.
        """
        if not isinstance(client, Client):
            raise ServerError(
                f"{client!r} is no Temporal client; connect one, or use Sessions.connect(store=…)"
            )
        self.client = _telling(client, otel)
        self.tenant = given_tenant(tenant)
        self.store = in_tenant(given_store(store), self.tenant)
        self.task_queue = tenant_queue(task_queue, self.tenant)
        if max_history_events_in_run is None:
            max_history_events_in_run = TIMES_IN_A_RUN * max_history_events
        self._max_history_events = _checked_limit(max_history_events)
        self._max_history_events_in_run = _checked_limit(max_history_events_in_run)
        self._transcripts = Transcripts(self.store)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        *,
        store: Store | str,
        task_queue: str = names.TASK_QUEUE,
        tenant: str | None = None,
        keys: Keys | None = None,
        payloads: str | ExternalStorage | None = None,
        otel: bool | None = None,
        max_history_events: int = MAX_HISTORY_EVENTS,
        max_history_events_in_run: int | None = None,
    ) -> AsyncIterator[Sessions]:
        """Connect to Temporal as the SDK's environment configuration says, and use the store.

        `keys` and `payloads` are as `connect_client` has them; the keys are also those of a store
        that is named as `encrypted:…`.

        Raises ServerError when there is no server, StoreError when the store cannot be opened,
        EncryptionError, TenantError, TelemetryError.
        """
        store = given_store(store, keys=keys)
        client = await connect_client(keys=keys, payloads=payloads)
        yield cls(
            client,
            store,
            task_queue=task_queue,
            tenant=tenant,
            otel=otel,
            max_history_events=max_history_events,
            max_history_events_in_run=max_history_events_in_run,
        )

    async def open(
        self,
        session_id: str | None = None,
        *,
        agent: str | None = None,
        instance: str = "",
        idle_timeout: float | None = None,
        timeout: float = OPEN_TIMEOUT,
    ) -> Session:
        """Resume the session of that ID, or create it; without an ID, make one up (`session.id`).

        From now on the named agent serves it; without a name, the one that its running workflow
        has, if it runs. A named `instance` is a second workflow over the same log, with a leaf of
        its own: what the two append are sibling branches. After `idle_timeout` seconds without
        anything to do the workflow ends, and the next run resumes the session; without one it
        stays.

        Raises InvalidSessionIdError, CommandError for an agent that is no name, an idle timeout of
        nothing or over ten years, or a timeout that is no number, DamagedLogError when the log
        cannot be read, ServerError when no worker answers within `timeout` seconds.
        """
        _check_patience(timeout)
        session_id = check_session_id(session_id if session_id is not None else uuid.uuid4().hex)
        name = workflow_id(session_id, instance, tenant=self.tenant)
        remote = RemoteSession(self.client, name, self.task_queue)
        limit = command_limit(self.client)
        command = new_command(
            OpenCommand,
            command_id="",
            agent=agent,
            idle_timeout=idle_timeout,
            max_command_bytes=limit,
        )
        state = SessionState(
            session_id=session_id,
            instance=instance,
            agent=agent,
            idle_timeout=idle_timeout,
            max_command_bytes=limit,
            max_history_events=self._max_history_events,
            max_history_events_in_run=self._max_history_events_in_run,
        )
        opened = await remote.open(command, state, timeout)

        async def open_again() -> Opened:
            again = state.model_copy(update={"agent": opened.agent})
            return await remote.open(OpenCommand(max_command_bytes=limit), again, timeout)

        return Session(opened, remote, self._transcripts, open_again, self.open, instance=instance)


def _telling(client: Client, otel: bool | None) -> Client:
    found = telemetry(otel)
    if found is None:
        return client
    from perdure.telemetry.client import telling

    return telling(client, found)


def _check_patience(timeout: object) -> None:
    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if not is_number or not cast("float", timeout) >= 0:
        raise CommandError(f"the timeout must be a number of seconds, not {timeout!r}")


def _checked_limit(events: int) -> int:
    if type(events) is not int or events < 1:
        raise ValueError(f"a workflow continues as new after 1 event or more, not {events!r}")
    return events


async def connect_client(
    *,
    keys: Keys | None = None,
    payloads: str | ExternalStorage | None = None,
    runtime: Runtime | None = None,
) -> Client:
    """A client as the SDK's environment configuration describes it (`TEMPORAL_ADDRESS`, profiles,
    TLS, API key).

    With `keys` everything that passes through Temporal is encrypted; without, with those of
    PERDURE_KEYS or PERDURE_KEYS_FILE, if there are any. With `payloads`, as `files:DIR`, as
    `postgresql://…` or as the SDK's own, or PERDURE_PAYLOADS, what is large is kept there instead
    of in Temporal. `runtime` is the SDK's own, where it is not to be the one that all share.

    Raises ServerError when the server cannot be reached or the configuration cannot be read,
    EncryptionError for keys that are none, StoreError for a place that is none.
    """
    converter = data_converter(keys=keys or Keys.from_environment(), payloads=payloads)
    try:
        config = ClientConfig.load_client_connect_config()
    except Exception as error:  # noqa: BLE001 - the SDK raises what it likes
        raise ServerError(
            f"the Temporal client configuration cannot be read: {_fault_of(error)}"
        ) from None
    config.setdefault("target_host", "localhost:7233")
    config.setdefault("namespace", "default")
    address = config["target_host"]
    try:
        return await Client.connect(**config, data_converter=converter, runtime=runtime)
    except Exception as error:
        raise ServerError(
            f"no Temporal server answers at {address}; "
            "set TEMPORAL_ADDRESS, or start one: temporal server start-dev"
        ) from error


def _fault_of(error: Exception) -> str:
    """What is wrong with a configuration, and where; the SDK's own words quote the line, which may
    hold a key.
    """
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    place = re.search(r"line \d+(, column \d+)?", str(error))
    where = os.environ.get("TEMPORAL_CONFIG_FILE") or "the file and the TEMPORAL_… variables"
    return f"look at {where}{f', {place[0]}' if place else ''}"
