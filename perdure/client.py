"""The client: find or create sessions, from any process."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.client import Client
from temporalio.envconfig import ClientConfig

from perdure import names
from perdure.errors import ServerError
from perdure.protocol import (
    MAX_HISTORY_EVENTS,
    TIMES_IN_A_RUN,
    OpenCommand,
    Opened,
    SessionState,
)
from perdure.remote import RemoteSession
from perdure.session import Session
from perdure.session_id import check_session_id, workflow_id
from perdure.stores import open_store
from perdure.stores.contract import Store
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
        max_history_events: int = MAX_HISTORY_EVENTS,
        max_history_events_in_run: int | None = None,
    ) -> None:
        """Use a client that is connected already.

        `max_history_events` is for new sessions: the length of history, in events, after which a
        session's workflow continues as new between two commands. In the middle of a run it does so
        after `max_history_events_in_run`, three times as many unless told otherwise.

        Raises StoreError when the store cannot be opened, ValueError for fewer than one event.
        """
        self.client = client
        self.store = open_store(store) if isinstance(store, str) else store
        self.task_queue = task_queue
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
        max_history_events: int = MAX_HISTORY_EVENTS,
        max_history_events_in_run: int | None = None,
    ) -> AsyncIterator[Sessions]:
        """Connect to Temporal as the SDK's environment configuration says, and use the store.

        Raises ServerError when there is no server, StoreError when the store cannot be opened.
        """
        client = await connect_client()
        yield cls(
            client,
            store,
            task_queue=task_queue,
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

        Raises InvalidSessionIdError, ValueError for an idle timeout of nothing or over ten years,
        DamagedLogError when the log cannot be read, ServerError when no worker answers within
        `timeout` seconds.
        """
        session_id = check_session_id(session_id if session_id is not None else uuid.uuid4().hex)
        remote = RemoteSession(self.client, workflow_id(session_id, instance), self.task_queue)
        command = OpenCommand(agent=agent, idle_timeout=idle_timeout)
        state = SessionState(
            session_id=session_id,
            instance=instance,
            agent=agent,
            idle_timeout=idle_timeout,
            max_history_events=self._max_history_events,
            max_history_events_in_run=self._max_history_events_in_run,
        )
        opened = await remote.open(command, state, timeout)

        async def open_again() -> Opened:
            again = state.model_copy(update={"agent": opened.agent})
            return await remote.open(OpenCommand(), again, timeout)

        return Session(opened, remote, self._transcripts, open_again, self.open, instance=instance)


def _checked_limit(events: int) -> int:
    if events < 1:
        raise ValueError(f"a workflow continues as new after 1 event or more, not {events!r}")
    return events


async def connect_client() -> Client:
    """A client as the SDK's environment configuration describes it (`TEMPORAL_ADDRESS`, profiles,
    TLS, API key).

    Raises ServerError when the server cannot be reached or the configuration cannot be read.
    """
    try:
        config = ClientConfig.load_client_connect_config()
    except Exception as error:
        raise ServerError(f"the Temporal client configuration cannot be read: {error}") from error
    config.setdefault("target_host", "localhost:7233")
    config.setdefault("namespace", "default")
    address = config["target_host"]
    try:
        return await Client.connect(**config)
    except Exception as error:
        raise ServerError(
            f"no Temporal server answers at {address}; "
            "set TEMPORAL_ADDRESS, or start one: temporal server start-dev"
        ) from error
