"""Connections to MCP servers: opened when they are needed, shared by all calls of a worker, opened
again when their server went away.

This is the only module that knows the package `mcp`; it is loaded when an agent has servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TextIO

import httpx2
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
    Tool,
)

from perdure.errors import McpServerError, ToolCallError
from perdure.mcp_servers import McpServer

logger = logging.getLogger("perdure.activities")

_UNREADABLE = "Failed to parse JSONRPC message from server"


def _briefly(record: logging.LogRecord) -> bool:
    """Let what a server prints beside the protocol be a line in the log: the library makes it a
    traceback for each.
    """
    if record.msg == _UNREADABLE:
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    return True


logging.getLogger("mcp.client.stdio").addFilter(_briefly)

_CLOSING = 8.0
"""Seconds that a connection may take to close. A server that does not end by itself is killed
before that, with its whole process group."""

_SILENCE = 300.0
"""Seconds without a byte after which a response over HTTP is given up. A server that works
on a call sends a comment now and then."""

_CONNECTING = 30.0
_MOST_PAGES = 100


class McpConnections:
    """The connections of one worker. `close` them when it is shut down."""

    def __init__(self) -> None:
        self._connections: dict[McpServer, McpConnection] = {}

    def to(self, server: McpServer) -> McpConnection:
        """The connection to a server; it is opened when it is used."""
        return self._connections.setdefault(server, McpConnection(server))

    async def close(self) -> None:
        """Close what is open. No process stays behind."""
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))


class McpConnection:
    """A server, connected while there is something to ask."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._open: _Open | None = None
        self._not_closed: set[_Open] = set()

    async def tools(self) -> list[Tool]:
        """What the server offers. Raises McpServerError when it cannot be asked."""
        try:
            return await self._listed()
        except TimeoutError:
            self._leave()
            raise McpServerError(_silent(self._server)) from None
        except MCPError as error:
            self._leave()
            raise McpServerError(
                f"the MCP server {self._server.label!r} did not list its tools: {error.message}"
            ) from None

    async def _listed(self) -> list[Tool]:
        found: list[Tool] = []
        async with self._client() as client:
            if client.server_capabilities.tools is None:
                return []
            cursor: str | None = None
            async with asyncio.timeout(self._server.start_timeout):
                for _ in range(_MOST_PAGES):
                    asked = PaginatedRequestParams(cursor=cursor)
                    page = await client.session.list_tools(params=asked)
                    found += page.tools
                    cursor = page.next_cursor
                    if not cursor:
                        return found
        raise McpServerError(f"the list of tools of {self._server.label!r} does not end")

    async def call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Have the server run a tool. Raises ToolCallError when it gave no result, McpServerError
        when it could not be asked.
        """
        try:
            return await self._call(name, arguments)
        except _Forgotten:
            # It knows nothing of us, so it has not run anything either.
            self._leave()
        try:
            return await self._call(name, arguments)
        except _Forgotten:
            raise ToolCallError(
                f"the MCP server {self._server.label!r} ended the session"
            ) from None

    async def _call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        label = self._server.label
        try:
            async with self._client() as client:
                return await client.call_tool(name, arguments)
        except MCPError as error:
            if self._open is not None and self._open.is_forgotten:
                raise _Forgotten from None
            if error.code == CONNECTION_CLOSED:
                self._leave()
                raise ToolCallError(f"the MCP server {label!r} went away during the call") from None
            raise ToolCallError(f"the MCP server {label!r} answered: {error.message}") from None

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        if self._open is None or self._open.is_over:
            self._open = _Open(self._server)
            self._not_closed.add(self._open)
            self._open.when_closed(self._not_closed.discard)
        connection = self._open
        with connection.in_use():
            yield await connection.client()

    def _leave(self) -> None:
        """The next call opens another connection. Calls that are on the way may end."""
        if self._open is not None:
            self._open.retire()
            self._open = None

    async def close(self) -> None:
        """Close the connection, if there is one, and wait for those that are closing."""
        await asyncio.gather(*(connection.close() for connection in self._not_closed))


class _Forgotten(Exception):
    """The server does not know the session any more."""


@dataclass(slots=True)
class _Answers:
    """What a server said over HTTP, beside its messages."""

    bad_status: int = 0
    is_forgotten: bool = False

    async def note(self, response: httpx2.Response) -> None:
        """Look at a response before the package `mcp` does."""
        if not response.is_error:
            return
        self.bad_status = response.status_code
        if response.status_code == 404 and _SESSION in response.request.headers:
            self.is_forgotten = True


_SESSION = "mcp-session-id"


class _Open:
    """An open connection. A task of its own keeps it, because a connection has to be closed by
    whoever opened it, and the call that happens to be first ends before others do.
    """

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._answers = _Answers()
        self._users = 0
        self._is_retired = False
        self._end = asyncio.Event()
        self._start: asyncio.Timeout | None = None
        # Without the context of the activity that happens to open it.
        self._keeper = asyncio.create_task(self._keep(), context=contextvars.Context())

    @property
    def is_over(self) -> bool:
        """Whether it cannot be used any more."""
        return self._end.is_set() or self._is_retired or self._keeper.done()

    @property
    def is_forgotten(self) -> bool:
        """Whether the server has said that it does not know the session."""
        return self._answers.is_forgotten

    def when_closed(self, tell: Callable[[_Open], None]) -> None:
        """Tell when it is closed."""
        self._keeper.add_done_callback(lambda _: tell(self))

    async def client(self) -> Client:
        """The client, as soon as the server has answered. Raises McpServerError."""
        return await asyncio.shield(self._client)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Stay open for the block."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._end_if_unused()

    def retire(self) -> None:
        """Close when nobody uses it any more."""
        self._is_retired = True
        self._end_if_unused()

    def _end_if_unused(self) -> None:
        if self._is_retired and not self._users:
            self._end.set()

    async def close(self) -> None:
        """Close now."""
        self._is_retired = True
        self._end.set()
        if self._start is not None:
            # Its time is up. The keeper is not cancelled from here: a second cancellation, while it
            # closes what it has opened, would leave the server's process behind.
            with contextlib.suppress(RuntimeError):
                self._start.reschedule(0)
        _, late = await asyncio.wait([self._keeper], timeout=_CLOSING)
        for keeper in late:
            logger.warning("the connection to %r does not close", self._server.label)
            keeper.cancel()

    async def _keep(self) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                transport = _watched(_transport(self._server, self._answers), self._end)
                if self._end.is_set():
                    return
                async with asyncio.timeout(self._server.start_timeout) as self._start:
                    client = await stack.enter_async_context(
                        Client(transport, client_info=Implementation(name="perdure", version="1"))
                    )
                self._client.set_result(client)
                await self._end.wait()
        except Exception as error:  # noqa: BLE001 - of whatever may go wrong there, its kind is told
            if not self._is_retired:
                self._fail(_why(self._server, error, self._answers))
        finally:
            self._end.set()
            self._fail(f"the MCP server {self._server.label!r} was left before it answered")

    def _fail(self, reason: str) -> None:
        if self._client.done():
            return
        self._client.set_exception(McpServerError(reason))
        self._client.exception()  # so that nobody complains when nobody waits for it


@contextlib.asynccontextmanager
async def _transport(server: McpServer, answers: _Answers) -> AsyncIterator[Any]:
    if server.command:
        parameters = StdioServerParameters(
            command=server.command, args=list(server.arguments), env=server.env, cwd=server.cwd
        )
        with _error_output() as errors:
            async with stdio_client(parameters, errlog=errors) as streams:
                yield streams
        return

    silence = max(_SILENCE, server.timeout or 0)
    async with (
        httpx2.AsyncClient(
            headers=server.headers,
            timeout=httpx2.Timeout(_CONNECTING, read=silence),
            event_hooks={"response": [answers.note]},
        ) as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams


@contextlib.contextmanager
def _error_output() -> Iterator[TextIO]:
    """Where a server's complaints go: to the worker's own, if that is a file."""
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        with open(os.devnull, "w") as nowhere:
            yield nowhere
    else:
        yield sys.stderr


@contextlib.asynccontextmanager
async def _watched(transport: Any, ended: asyncio.Event) -> AsyncIterator[Any]:
    """The transport; the event is set as soon as the server closes it."""
    async with transport as (read, write):
        yield _Watched(read, ended), write


class _Watched:
    """A stream to read from that tells of its end."""

    def __init__(self, stream: Any, ended: asyncio.Event) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:
        """What the package `mcp` looks for beside the messages."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """The next message."""
        try:
            return await self._stream.receive()
        except Exception:
            self._ended.set()
            raise

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except Exception:
            self._ended.set()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        ended: bool | None = await self._stream.__aexit__(kind, error, traceback)
        return ended


def _silent(server: McpServer) -> str:
    return f"the MCP server {server.label!r} did not answer within {server.start_timeout:g} seconds"


def _why(server: McpServer, error: Exception, answers: _Answers) -> str:
    """Why a server cannot be reached. Not in the words of the error, which may quote a secret."""
    label = repr(server.label)
    cause: BaseException = error
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, TimeoutError):
        return _silent(server)
    if answers.bad_status:
        return (
            f"the MCP server {label} answered with HTTP status {answers.bad_status}; "
            "check its URL and its headers"
        )
    if server.command and isinstance(cause, OSError):
        return f"the MCP server {label} cannot be started: {cause.strerror or type(cause).__name__}"
    if isinstance(cause, MCPError):
        if cause.code == CONNECTION_CLOSED:
            return f"the MCP server {label} ended before it answered; see the worker's error output"
        return f"the MCP server {label} refused to begin: {cause.message}"
    return f"the MCP server {label} cannot be reached: {type(cause).__name__}"
