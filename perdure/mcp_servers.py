"""MCP servers: where one is, and how the tools are treated that it brings."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from os import PathLike, fspath
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlsplit

from perdure.errors import AgentError

START_TIMEOUT: Final = 30.0
"""Seconds that an MCP server has until it answers, unless told otherwise."""


class McpServer:
    """A server that speaks the Model Context Protocol, whose tools an agent may call.

    Either a command (`McpServer("uvx", "mcp-server-time")`), which each worker starts once and
    speaks with over its pipes, or an address (`McpServer(url="https://…/mcp")`, streamable HTTP)
    with `headers` for each request. `env` is added to the few variables that a command gets anyway
    (`PATH`, `HOME` and the like), `cwd` is the folder that it runs in.

    `name` is what messages call the server. With a `prefix` its tools are called `<prefix>_<tool>`.
    `only` are the tools that the agent gets; without it, all. `idempotent` says of all tools, or of
    those that are named, that they may run again when their worker died half-way;
    `needs_approval` that their calls wait for a person. `timeout` is in seconds, for one call;
    `start_timeout` for the server to be there. Where tools are named, it is by the server's own
    names.

    Raises `AgentError` when something is declared wrongly. Nothing is started or asked here.
    """

    def __init__(
        self,
        command: str | PathLike[str] | None = None,
        *arguments: str | PathLike[str],
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        name: str = "",
        prefix: str = "",
        only: Collection[str] | None = None,
        idempotent: bool | Collection[str] = False,
        needs_approval: bool | Collection[str] = False,
        timeout: float | None = None,
        start_timeout: float = START_TIMEOUT,
    ) -> None:
        if (command is None) == (url is None):
            raise AgentError(
                'an MCP server is a command or a URL: McpServer("uvx", "mcp-server-time") '
                'or McpServer(url="https://…/mcp")'
            )
        self.command = "" if command is None else _text(command, "command")
        self.arguments = tuple(_text(argument, "arguments") for argument in arguments)
        self.env = _texts(env, "env")
        self.cwd = None if cwd is None else _text(cwd, "cwd")
        self.url = "" if url is None else _checked_url(url)
        self.headers = _texts(headers, "headers")
        self.label = name or (PurePath(self.command).name if self.command else _address(self.url))
        if self.command and self.headers:
            raise AgentError(f"the MCP server {self.label!r} is a command; it has no headers")
        if self.url and (self.env or self.cwd or self.arguments):
            raise AgentError(f"the MCP server {self.label!r} is a URL; it has no env, cwd or words")
        self.prefix = prefix
        self.only = None if only is None else _names(only, "only")
        self.idempotent = _which(idempotent, "idempotent")
        self.needs_approval = _which(needs_approval, "needs_approval")
        self.timeout = None if timeout is None else _seconds(timeout, "timeout")
        self.start_timeout = _seconds(start_timeout, "start_timeout")

    def __repr__(self) -> str:
        # The arguments, variables and headers may hold secrets.
        return f"<McpServer {self.label}>"

    def is_idempotent(self, tool_name: str) -> bool:
        """Whether the server's tool of that name may run again."""
        return _holds(self.idempotent, tool_name)

    def wants_approval(self, tool_name: str) -> bool:
        """Whether a call of the server's tool of that name waits for a person."""
        return _holds(self.needs_approval, tool_name)


def _text(value: object, what: str) -> str:
    text = fspath(value) if isinstance(value, PathLike) else value
    if not isinstance(text, str) or "\0" in text:
        raise AgentError(f"{what} of an MCP server must be text, not {type(value).__name__}")
    return text


def _texts(values: Mapping[str, str] | None, what: str) -> dict[str, str]:
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise AgentError(f"{what} of an MCP server must be a dict of texts")
    given: Mapping[Any, Any] = values
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            # Not the value: it may be a secret.
            raise AgentError(f"{what} of an MCP server must be text: {name!r} is not")
    return dict(values)


def _names(names: Collection[str], what: str) -> frozenset[str]:
    given: Any = names
    is_list = isinstance(given, Collection) and not isinstance(given, str | bytes | Mapping)
    if not is_list or not all(isinstance(name, str) for name in given):
        raise AgentError(f"{what} of an MCP server must be a list of tool names, not {names!r}")
    return frozenset(given)


def _which(which: bool | Collection[str], what: str) -> bool | frozenset[str]:
    if isinstance(which, bool):
        return which
    given: Any = which
    if not isinstance(given, Collection) or isinstance(given, str | bytes | Mapping):
        raise AgentError(
            f"{what} of an MCP server must be True, False or a list of tool names, not {which!r}"
        )
    return _names(which, what)


def _holds(which: bool | frozenset[str], tool_name: str) -> bool:
    return which if isinstance(which, bool) else tool_name in which


def _seconds(value: float, what: str) -> float:
    given: Any = value
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not is_number or not math.isfinite(given) or given <= 0:
        raise AgentError(f"{what} of an MCP server must be above 0 seconds, not {value!r}")
    return float(value)


def _checked_url(url: object) -> str:
    text = _text(url, "url")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AgentError("the url of an MCP server starts with https:// or http:// and a host")
    return text


def _address(url: str) -> str:
    """The URL without what may be secret in it: user, password and query."""
    parts = urlsplit(url)
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"
