"""Tool calls. Whatever goes wrong inside one becomes a result that the model reads; it never
fails the run.
"""

from __future__ import annotations

import asyncio

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry
from perdure.activities.failures import as_failure
from perdure.activities.heartbeats import Heart
from perdure.agent import Agent
from perdure.codec import dumps_json
from perdure.errors import EntryError, PerdureError, ToolArgumentsError
from perdure.large_payloads import result_limit
from perdure.messages import ContentBlock, Message, TextBlock
from perdure.protocol import PlannedCall, RunTool, ToolReply
from perdure.tools import ToolContext


class ToolActivities:
    """Runs an agent's tools."""

    def __init__(self, agents: AgentRegistry, heart: Heart) -> None:
        self._agents = agents
        self._heart = heart

    @activity.defn(name=names.RUN_TOOL)
    async def run_tool(self, request: RunTool) -> ToolReply:
        """The call's result, or its error as a result."""
        try:
            agent = self._agents.find(request.agent)
        except PerdureError as error:
            raise as_failure(error) from None
        async with self._heart.beating():
            return _reply(request.call, await _outcome(agent, request))


class _ToolError(Exception):
    """Something that the model is told instead of a result."""


async def _outcome(agent: Agent, request: RunTool) -> tuple[ContentBlock, ...] | _ToolError:
    call = request.call
    tool = agent.tool(call.name)
    if tool is None:
        known = ", ".join(spec.name for spec in agent.tool_specs) or "none"
        return _ToolError(f"there is no tool {call.name!r}; the tools are: {known}")
    context = ToolContext(
        session_id=request.session_id,
        run_id=request.run_id,
        tool_call_id=call.id,
        attempt=activity.info().attempt,
    )
    deadline = asyncio.timeout(call.timeout)
    try:
        async with deadline:
            return await tool.call(call.arguments, context)
    except ToolArgumentsError as error:
        return _ToolError(str(error))
    except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the model reads it
        if deadline.expired():
            return _ToolError(
                f"the tool {call.name} did not finish within {call.timeout:g} seconds"
            )
        activity.logger.warning("the tool %s raised", call.name, exc_info=True)
        return _ToolError(f"{type(error).__name__}: {error}")


def _reply(call: PlannedCall, outcome: tuple[ContentBlock, ...] | _ToolError) -> ToolReply:
    is_error = isinstance(outcome, _ToolError)
    content = (TextBlock(text=str(outcome)),) if isinstance(outcome, _ToolError) else outcome
    try:
        reply = _as_result(call, content, is_error=is_error)
        size = len(dumps_json(reply.message))
    except EntryError as error:
        return _as_result(call, (TextBlock(text=f"unusable result: {error}"),), is_error=True)
    limit = result_limit(activity.client())
    if size > limit:
        note = (
            f"the result is {size:,} bytes and cannot be passed on; "
            f"ask for less than {limit:,} bytes"
        )
        return _as_result(call, (TextBlock(text=note),), is_error=True)
    return reply


def _as_result(
    call: PlannedCall, content: tuple[ContentBlock, ...], *, is_error: bool
) -> ToolReply:
    message = Message(
        role="tool_result",
        content=content,
        tool_call_id=call.id,
        tool_name=call.name,
        is_error=is_error,
    )
    return ToolReply(message=message.model_dump(mode="json", by_alias=True))
