"""Tool calls. Whatever goes wrong inside one becomes a result that the model reads; it never
fails the run.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import activity

from perdure import names
from perdure.activities.agents import AgentRegistry
from perdure.activities.failures import as_failure
from perdure.activities.heartbeats import Heart
from perdure.activities.tool_progress import ToolProgress
from perdure.activities.toolboxes import Toolbox, Toolboxes
from perdure.codec import dumps_json
from perdure.errors import (
    EntryError,
    McpServerError,
    PerdureError,
    ToolArgumentsError,
    ToolCallError,
)
from perdure.large_payloads import result_limit
from perdure.messages import ContentBlock, Message, TextBlock
from perdure.protocol import (
    CheckArguments,
    CheckedArguments,
    PlannedCall,
    RunTool,
    ToolReply,
)
from perdure.tool_texts import cut_texts
from perdure.tools import MAX_RESULT, Tool, ToolContext


class ToolActivities:
    """Runs an agent's tools."""

    def __init__(self, agents: AgentRegistry, toolboxes: Toolboxes, heart: Heart) -> None:
        self._agents = agents
        self._toolboxes = toolboxes
        self._heart = heart

    @activity.defn(name=names.RUN_TOOL)
    async def run_tool(self, request: RunTool) -> ToolReply:
        """The call's result, or its error as a result."""
        try:
            agent = self._agents.find(request.agent)
        except PerdureError as error:
            raise as_failure(error) from None
        progress = ToolProgress(request.call, request.place)
        async with self._heart.beating(), progress.live:
            try:
                toolbox = await self._toolboxes.of_run(agent, request.tools)
            except PerdureError as error:
                reply = _reply(request.call, _ToolError(str(error)), MAX_RESULT)
            else:
                reply = await _answer(toolbox, request, progress)
        return reply.model_copy(update={"batches": progress.live.batches})

    @activity.defn(name=names.CHECK_ARGUMENTS)
    async def check_arguments(self, request: CheckArguments) -> CheckedArguments:
        """What is wrong with the arguments that a person gave for a call, if anything is."""
        try:
            agent = self._agents.find(request.agent)
            async with self._heart.beating():
                toolbox = await self._toolboxes.of_run(agent, request.tools)
        except PerdureError as error:
            raise as_failure(error) from None
        tool = toolbox.find(request.tool_name)
        if tool is None:
            return CheckedArguments(fault=_no_tool(toolbox, request.tool_name))
        try:
            tool.check(request.arguments)
        except ToolArgumentsError as error:
            return CheckedArguments(fault=str(error))
        except Exception as error:  # noqa: BLE001 - a validator of the application raised
            return CheckedArguments(fault=_told(error))
        return CheckedArguments()


class _ToolError(Exception):
    """Something that the model is told instead of a result."""


async def _answer(toolbox: Toolbox, request: RunTool, progress: ToolProgress) -> ToolReply:
    """What the model reads of a call."""
    call = request.call
    tool = toolbox.find(call.name)
    if tool is None:
        return _reply(call, _ToolError(_no_tool(toolbox, call.name)), MAX_RESULT)
    try:
        return _reply(call, await _outcome(tool, request, progress), tool.max_result)
    finally:
        progress.end()


def _no_tool(toolbox: Toolbox, name: str) -> str:
    known = ", ".join(spec.name for spec in toolbox.specs) or "none"
    return f"there is no tool {name!r}; the tools are: {known}"


async def _outcome(
    tool: Tool[..., Any], request: RunTool, progress: ToolProgress
) -> tuple[ContentBlock, ...] | _ToolError:
    call = request.call
    context = ToolContext(
        session_id=request.session_id,
        run_id=request.run_id,
        tool_call_id=call.id,
        attempt=activity.info().attempt,
        _call=progress,
    )
    deadline = asyncio.timeout(call.timeout)
    try:
        async with deadline:
            return await tool.call(call.arguments, context)
    except (ToolArgumentsError, ToolCallError, McpServerError) as error:
        return _ToolError(str(error))
    except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the model reads it
        if deadline.expired():
            return _ToolError(
                f"the tool {call.name} did not finish within {call.timeout:g} seconds"
            )
        activity.logger.warning(f"the tool {call.name} raised", exc_info=True)
        return _ToolError(_told(error))


def _told(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its text is the application's, and may raise what it likes
        return f"{type(error).__name__}, whose text cannot be read"


def _reply(
    call: PlannedCall, outcome: tuple[ContentBlock, ...] | _ToolError, max_result: int | None
) -> ToolReply:
    is_error = isinstance(outcome, _ToolError)
    content = (TextBlock(text=str(outcome)),) if isinstance(outcome, _ToolError) else outcome
    try:
        reply = _as_result(call, cut_texts(content, max_result), is_error=is_error)
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
