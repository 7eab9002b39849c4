"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from perdure.dev_server import DevServer
    from tests.stores.postgres_server import PostgresServer

# Before anything imports the workflow: in the tests it runs in the SDK's sandbox, which finds what
# is not deterministic.
os.environ.setdefault("PERDURE_WORKFLOW_SANDBOX", "1")


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[DevServer]:
    """A real Temporal server, one for all tests of the process."""
    from perdure.dev_server import dev_server

    async with dev_server() as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL server, one for all tests of the process."""
    from tests.stores.postgres_server import PostgresServer

    server = PostgresServer()
    yield server
    server.close()
