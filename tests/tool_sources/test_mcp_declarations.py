"""What can be said of an MCP server, and what of it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure import Agent, AgentError, McpServer
from perdure.activities.mcp_tools import tool_name


@pytest.mark.parametrize(
    "words, options, message",
    [
        ((), {}, "is a command or a URL"),
        (("a",), {"url": "https://b"}, "is a command or a URL"),
        ((7,), {}, "command of an MCP server must be text, not int"),
        (("a", None), {}, "arguments of an MCP server must be text, not NoneType"),
        (("a",), {"headers": {"x": "y"}}, "'a' is a command; it has no headers"),
        (("a",), {"env": {"KEY": 7}}, "env of an MCP server must be text: 'KEY' is not"),
        (("a",), {"env": ["KEY"]}, "env of an MCP server must be a dict of texts"),
        (("a",), {"only": "tool"}, "only of an MCP server must be a list of tool names"),
        (("a",), {"idempotent": [1]}, "idempotent of an MCP server must be a list of tool names"),
        (("a",), {"only": 7}, "only of an MCP server must be a list of tool names, not 7"),
        (("a",), {"idempotent": None}, "must be True, False or a list of tool names, not None"),
        (("a",), {"needs_approval": print}, "must be True, False or a list of tool names, not <"),
        (("a",), {"timeout": 0}, "timeout of an MCP server must be above 0 seconds"),
        (("a",), {"start_timeout": True}, "start_timeout of an MCP server must be above 0"),
        ((), {"url": "ftp://b"}, "starts with https://"),
        ((), {"url": "https://b", "cwd": "/"}, "is a URL; it has no env, cwd or words"),
    ],
)
def test_a_wrong_declaration_is_an_error_at_once(words: Any, options: Any, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        McpServer(*words, **options)


def test_only_servers_are_servers() -> None:
    server: Any = "uvx some-server"
    with pytest.raises(AgentError, match="mcp of agent 'a' must be a list"):
        Agent("a", model=None, mcp=server)
    with pytest.raises(AgentError, match=r"lists McpServer\(…\)s, not str"):
        Agent("a", model=None, mcp=[server])


def test_a_server_is_shown_without_its_secrets() -> None:
    command = McpServer(Path("/usr/bin/serve"), "--key", "k3y", env={"TOKEN": "t0ken"})
    url = McpServer(url="https://user:p4ss@host:8/mcp?key=k3y", headers={"Authorization": "s3cret"})
    assert repr(command) == "<McpServer serve>"
    assert repr(url) == "<McpServer https://host:8/mcp>"
    assert repr(McpServer("uvx", "x", name="clock")) == "<McpServer clock>"


@pytest.mark.parametrize(
    "prefix, name, called",
    [
        ("", "add", "add"),
        ("shop", "add", "shop_add"),
        ("", "shop.find/order", "shop_find_order"),
        ("", "x" * 64, "x" * 64),
    ],
)
def test_tools_have_names_that_every_provider_takes(prefix: str, name: str, called: str) -> None:
    assert tool_name(prefix, name) == called


def test_long_names_are_cut_and_stay_apart() -> None:
    names = [tool_name("", "x" * 100), tool_name("", "x" * 101)]
    assert [len(name) for name in names] == [64, 64]
    assert names[0] != names[1]
    assert names[0] == tool_name("", "x" * 100)
