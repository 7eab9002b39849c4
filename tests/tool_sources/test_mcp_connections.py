"""Connections to real MCP servers: processes that answer, die, and never answer."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from perdure import McpServer, McpServerError, ToolCallError
from perdure.activities.mcp_connections import McpConnection, McpConnections
from tests.tool_sources.servers import Folder, OldServer, free_port


async def said(connection: McpConnection, tool: str, **arguments: Any) -> str:
    """The first words of a result."""
    content = (await connection.call(tool, arguments)).content
    return str(getattr(content[0], "text", ""))


async def test_one_process_serves_all_calls(folder: Folder, connections: McpConnections) -> None:
    connection = connections.to(folder.server())
    tools = [tool.name for tool in await connection.tools()]
    pids = await asyncio.gather(*(said(connection, "pid") for _ in range(5)))
    assert tools[:2] == ["add", "slow"]
    assert len(set(pids)) == 1
    assert folder.steps()["started"] == 1


async def test_a_process_that_dies_in_a_call_costs_that_call(
    folder: Folder, connections: McpConnections
) -> None:
    connection = connections.to(folder.server())
    with pytest.raises(ToolCallError, match="'test server' went away during the call"):
        await connection.call("die", {})
    assert await said(connection, "add", a=1, b=2) == "3"
    assert folder.steps()["started"] == 2


async def test_a_process_that_died_while_idle_is_started_again(
    folder: Folder, connections: McpConnections
) -> None:
    connection = connections.to(folder.server())
    pid = int(await said(connection, "pid"))
    os.kill(pid, signal.SIGKILL)
    await folder.emptied()
    await asyncio.sleep(0.1)  # until its end is noticed here as well
    assert await said(connection, "add", a=1, b=2) == "3"


async def test_other_calls_on_the_way_are_answered_too_when_the_process_dies(
    folder: Folder, connections: McpConnections
) -> None:
    connection = connections.to(folder.server())
    folder.hold("slow")
    waiting = asyncio.create_task(connection.call("slow", {"word": "a"}))
    await folder.reached("slow")
    with pytest.raises(ToolCallError):
        await connection.call("die", {})
    with pytest.raises(ToolCallError, match="went away during the call"):
        await waiting


async def test_garbage_on_its_output_does_not_disturb(
    folder: Folder, connections: McpConnections, caplog: pytest.LogCaptureFixture
) -> None:
    """Each line of it is one in the log."""
    connection = connections.to(folder.server("garbage"))
    assert len(await connection.tools()) > 5
    assert await said(connection, "add", a=1, b=2) == "3"
    assert "Failed to parse JSONRPC message" in caplog.text
    assert "Traceback" not in caplog.text


async def test_a_server_may_have_nothing_to_offer(
    folder: Folder, connections: McpConnections
) -> None:
    assert await connections.to(folder.server("empty")).tools() == []


@pytest.mark.parametrize(
    "server, reason",
    [
        (McpServer("no-such-command"), "'no-such-command' cannot be started: No such file"),
        (McpServer("true"), "'true' ended before it answered"),
        (McpServer("cat", start_timeout=0.5), "'cat' "),
        (McpServer("sleep", "600", start_timeout=0.5), "'sleep' did not answer within 0.5 seconds"),
        (McpServer("sleep", "600", cwd="/no/such/folder"), "'sleep' cannot be started: No such"),
    ],
    ids=["missing", "ends", "echoes", "silent", "no-folder"],
)
async def test_a_server_that_is_none_is_an_error_that_says_why(
    server: McpServer, reason: str, connections: McpConnections
) -> None:
    with pytest.raises(McpServerError) as raised:
        await connections.to(server).tools()
    assert reason in str(raised.value)


async def test_whoever_waits_for_a_server_that_does_not_come_up_is_told(
    connections: McpConnections,
) -> None:
    connection = connections.to(McpServer("sleep", "600", start_timeout=0.5))
    calls = (connection.call("add", {}) for _ in range(3))
    told = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(error) for error in told] == [McpServerError] * 3


async def test_a_call_that_is_cancelled_leaves_the_connection_to_others(
    folder: Folder, connections: McpConnections
) -> None:
    connection = connections.to(folder.server())
    folder.hold("slow")
    call = asyncio.create_task(connection.call("slow", {"word": "a"}))
    await folder.reached("slow")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await said(connection, "add", a=1, b=2) == "3"
    assert folder.steps()["started"] == 1


async def test_closing_ends_a_server_that_is_still_starting(folder: Folder) -> None:
    connections = McpConnections()
    asked = asyncio.create_task(connections.to(McpServer("sleep", "600")).tools())
    await asyncio.sleep(0.1)
    await connections.close()
    with pytest.raises(McpServerError, match="was left before it answered"):
        await asked


async def test_http_requests_have_the_headers(folder: Folder, connections: McpConnections) -> None:
    port = free_port()
    headers = {"authorization": "Bearer 12345"}
    server = McpServer(url=f"http://127.0.0.1:{port}/mcp", headers=headers)
    with folder.http(port):
        connection = connections.to(server)
        assert await said(connection, "has_header", name="authorization", length=12) == "true"


async def test_an_http_server_that_is_down_is_asked_again_by_the_next_call(
    folder: Folder, connections: McpConnections
) -> None:
    port = free_port()
    connection = connections.to(McpServer(url=f"http://127.0.0.1:{port}/mcp"))
    with pytest.raises(McpServerError, match="cannot be reached: ConnectError"):
        await connection.tools()
    with folder.http(port):
        assert await said(connection, "add", a=1, b=2) == "3"
    with pytest.raises((McpServerError, ToolCallError)):
        await connection.call("add", {"a": 1, "b": 2})
    with folder.http(port):
        assert await said(connection, "add", a=1, b=2) == "3"


@pytest.fixture
def old_server() -> Iterator[OldServer]:
    server = OldServer()
    yield server
    server.shutdown()
    server.server_close()


async def test_a_session_that_an_http_server_has_forgotten_is_begun_again(
    old_server: OldServer, connections: McpConnections
) -> None:
    """It has not run the call, so that is made once more."""
    connection = connections.to(McpServer(url=old_server.url))
    assert await said(connection, "hi") == "hello"
    old_server.forget()
    assert await said(connection, "hi") == "hello"
    assert old_server.initialized == 2


async def test_a_refusal_over_http_is_told_by_its_status(
    old_server: OldServer, connections: McpConnections
) -> None:
    old_server.status = 401
    with pytest.raises(McpServerError, match="HTTP status 401; check its URL and its headers"):
        await connections.to(McpServer(url=old_server.url)).tools()
