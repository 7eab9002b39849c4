"""Everything in one process: an embedded server, a worker and a client. For a laptop, a test, a
notebook.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client

from perdure.agent import Agent
from perdure.client import Sessions
from perdure.data_conversion import data_converter
from perdure.dev_server import dev_server
from perdure.encryption import Keys
from perdure.lifecycle import Publisher
from perdure.stores import MemoryStore, given_store
from perdure.stores.contract import Store
from perdure.worker import build_worker


@asynccontextmanager
async def local(
    *,
    agents: Sequence[Agent],
    store: Store | str | None = None,
    keys: Keys | None = None,
    publisher: Publisher | None = None,
    database: Path | None = None,
    ui_port: int | None = None,
    otel: bool | None = None,
) -> AsyncIterator[Sessions]:
    """The same `Sessions` over a Temporal server and a worker that end with the block.

    Without a store, sessions live in memory. With a `database` file the server remembers its
    workflows, and with a `ui_port` it serves the Temporal UI. What passes through the server is
    encrypted under `keys`, or those of PERDURE_KEYS or PERDURE_KEYS_FILE, if there are any; a store
    is when it is named as `encrypted:…`. With `otel`, or PERDURE_OTEL, all of it is told to
    OpenTelemetry. Raises ServerMissingError when the server is not installed (extra `local`),
    EncryptionError for keys that are none, StoreError for what is no store, and as `build_worker`
    does.
    """
    converter = data_converter(keys=keys or Keys.from_environment())
    store = MemoryStore() if store is None else given_store(store, keys=keys)
    async with dev_server(database=database, ui_port=ui_port) as server:
        config = server.client.config()
        config["data_converter"] = converter
        client = Client(**config)
        serving = build_worker(client, agents=agents, store=store, publisher=publisher, otel=otel)
        async with serving:
            yield Sessions(client, store, otel=otel)
