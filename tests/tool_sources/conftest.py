"""Workers and sessions, as the tests of the engine have them, and MCP servers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from perdure.activities.mcp_connections import McpConnections
from tests.engine.conftest import serving, store
from tests.tool_sources.servers import Folder

__all__ = ["serving", "store"]


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Folder]:
    """A folder for servers, none of which outlives whoever has started it."""
    folder = Folder(tmp_path)
    yield folder
    await folder.emptied()


@pytest.fixture
async def connections(folder: Folder) -> AsyncIterator[McpConnections]:
    """The connections of a worker."""
    connections = McpConnections()
    yield connections
    await connections.close()
