"""The tools of an agent for one run: its own, and those that its MCP servers have.

Servers are asked once, when the run begins. Workflow history holds a digest of what they answered;
a worker keeps what it has listed under that digest, so a run sees one list, and its prompt one
prefix. A worker that takes the run over asks the servers itself.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from temporalio import activity

from perdure.agent import Agent
from perdure.codec import dumps_json
from perdure.errors import AgentError, McpServerError
from perdure.mcp_servers import McpServer
from perdure.models.protocol import ToolSpec
from perdure.tools import Tool

if TYPE_CHECKING:
    from perdure.activities.mcp_connections import McpConnections

_MOST_LISTS = 64


class Toolbox:
    """Tools by name, and as a model is told of them."""

    def __init__(self, tools: Iterable[Tool[..., Any]]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.specs = tuple(
            ToolSpec(tool.name, tool.description, tool.parameters) for tool in self._tools.values()
        )

    def find(self, name: str) -> Tool[..., Any] | None:
        """The tool of that name, if there is one."""
        return self._tools.get(name)

    def digest(self) -> str:
        """The list of tools in 16 characters."""
        told = [[spec.name, spec.description, spec.parameters] for spec in self.specs]
        return hashlib.sha256(dumps_json(told)).hexdigest()[:16]


class Toolboxes:
    """The toolboxes of one worker, and its connections to MCP servers. `close` them at its end."""

    def __init__(self) -> None:
        self._lists: OrderedDict[tuple[str, str], Toolbox] = OrderedDict()
        self._latest: dict[str, Toolbox] = {}
        self._connections: McpConnections | None = None

    async def listed(self, agent: Agent) -> tuple[str, Toolbox]:
        """Ask the agent's servers; the digest of their answer is its key from then on.

        Raises McpServerError when one cannot be asked, AgentError when two tools have one name.
        """
        offers = await asyncio.gather(*(self._tools_of(server) for server in agent.mcp))
        tools = [*agent.tools]
        for server, offered in zip(agent.mcp, offers, strict=True):
            for tool in offered:
                _check_new(tool, tools, agent, server)
                tools.append(tool)
        toolbox = Toolbox(tools)
        digest = toolbox.digest()
        self._keep(agent, digest, toolbox)
        return digest, toolbox

    async def of_run(self, agent: Agent, digest: str) -> Toolbox:
        """What was listed under the digest when the run began; without one, the agent's own tools.

        A worker that has not listed it asks the servers now. Raises as `listed` does.
        """
        if not digest:
            return Toolbox(agent.tools)
        known = self._lists.get((agent.name, digest))
        if known is not None:
            self._lists.move_to_end((agent.name, digest))
            return known
        found, toolbox = await self.listed(agent)
        if found != digest:
            activity.logger.warning(
                "the MCP servers of agent %s offer other tools than when the run began; "
                "it goes on with what they offer now",
                agent.name,
            )
            self._keep(agent, digest, toolbox)
        return toolbox

    def latest(self, agent: Agent) -> Toolbox:
        """What was last listed here, without asking anyone; else the agent's own tools."""
        return self._latest.get(agent.name) or Toolbox(agent.tools)

    async def close(self) -> None:
        """Close the connections."""
        if self._connections is not None:
            await self._connections.close()

    def _keep(self, agent: Agent, digest: str, toolbox: Toolbox) -> None:
        self._latest[agent.name] = toolbox
        self._lists[agent.name, digest] = toolbox
        self._lists.move_to_end((agent.name, digest))
        while len(self._lists) > _MOST_LISTS:
            self._lists.popitem(last=False)

    async def _tools_of(self, server: McpServer) -> list[Tool[..., Any]]:
        try:
            from perdure.activities.mcp_connections import McpConnections
            from perdure.activities.mcp_tools import tools_of
        except ImportError as error:
            raise McpServerError(
                f"the MCP server {server.label!r} needs the package mcp ({error.name}): "
                "pip install 'perdure[mcp]'"
            ) from error
        if self._connections is None:
            self._connections = McpConnections()
        connection = self._connections.to(server)
        return [*tools_of(server, connection, await connection.tools())]


def _check_new(
    tool: Tool[..., Any], others: Iterable[Tool[..., Any]], agent: Agent, server: McpServer
) -> None:
    if any(other.name == tool.name for other in others):
        raise AgentError(
            f"agent {agent.name!r} has two tools named {tool.name!r}, "
            f"one of them from the MCP server {server.label!r}; give it a prefix, or leave the "
            "tool out with only=[…]"
        )
