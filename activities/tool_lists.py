"""What tools an agent has in a run that begins."""

from __future__ import annotations

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry
from perdure.activities.failures import as_failure
from perdure.activities.heartbeats import Heart
from perdure.activities.toolboxes import Toolboxes
from perdure.errors import PerdureError
from perdure.protocol import ListTools, ToolList


class ToolListActivities:
    """Asks the MCP servers of an agent for their tools."""

    def __init__(self, agents: AgentRegistry, toolboxes: Toolboxes, heart: Heart) -> None:
        self._agents = agents
        self._toolboxes = toolboxes
        self._heart = heart

    @activity.defn(name=names.LIST_TOOLS)
    async def list_tools(self, request: ListTools) -> ToolList:
        """List them, and answer with the key under which this worker keeps the list."""
        try:
            async with self._heart.beating():
                agent = self._agents.find(request.agent)
                digest, toolbox = await self._toolboxes.listed(agent)
        except PerdureError as error:
            raise as_failure(error, is_final=True) from None
        return ToolList(digest=digest, count=len(toolbox.specs))
