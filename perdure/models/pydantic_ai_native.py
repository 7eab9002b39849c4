"""Calls that a provider runs itself: pydantic-ai has a call and its return, the log has one block
with its output.

Only the provider that ran a call can read it again, in its own form and order; which of them it
wants back is for pydantic-ai to judge. A call from a log that pydantic-ai had no part in is not
sent: its form is another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic_ai import messages as ai
from pydantic_core import to_jsonable_python

from perdure.messages import ToolCallBlock, ToolOutput
from perdure.models.valid_text import valid_json, valid_text

SERVER_TYPES: Final = frozenset(
    {"web_search", "web_fetch", "code_execution", "computer", "bash", "text_editor"}
    | {"file_search", "tool_search", "mcp", "datetime"}
)
"""The log's names for what providers run."""

CALL: Final = "call"
RETURN: Final = "return"


def served_block(
    part: ai.NativeToolCallPart,
    arguments: dict[str, Any],
    returned: ai.NativeToolReturnPart | None,
    place: int,
) -> ToolCallBlock:
    """A call with what came of it; `place` is that of the return among the answer's parts."""
    kept: dict[str, Any] = {
        "part": CALL,
        "id": part.id,
        "kind": part.tool_kind,
        "details": part.provider_details,
    }
    if returned is not None:
        said = {"kind": returned.tool_kind, "details": returned.provider_details}
        kept["return"] = {"place": place, **_held(said)}
    return _block(part, arguments, _output(returned), kept)


def returned_block(part: ai.NativeToolReturnPart) -> ToolCallBlock:
    """What came of a call in an earlier message."""
    kept = {"part": RETURN, "kind": part.tool_kind, "details": part.provider_details}
    return _block(part, {}, _output(part), kept)


def native_part(
    block: ToolCallBlock, data: Mapping[str, Any], provider: str | None
) -> ai.NativeToolCallPart | ai.NativeToolReturnPart | None:
    """The call of a block, or what came of a call in an earlier message."""
    if data.get("part") == RETURN:
        return _return_part(block, data, provider)
    if data.get("part") != CALL:
        return None
    call = ai.NativeToolCallPart(
        tool_name=valid_text(block.name),
        args=valid_json(dict(block.arguments)),
        tool_call_id=valid_text(block.id),
        id=data.get("id"),
        tool_kind=data.get("kind"),
        provider_name=provider,
        provider_details=data.get("details"),
    )
    return ai.NativeToolCallPart.narrow_type(call)


def native_return(
    block: ToolCallBlock, data: Mapping[str, Any], provider: str | None
) -> tuple[int, ai.NativeToolReturnPart] | None:
    """What came of a block's call, and its place among the message's parts."""
    returned = data.get("return")
    if data.get("part") != CALL or not isinstance(returned, Mapping) or block.output is None:
        return None
    return returned.get("place", 0), _return_part(block, returned, provider)


def _return_part(
    block: ToolCallBlock, data: Mapping[str, Any], provider: str | None
) -> ai.NativeToolReturnPart:
    output = block.output or ToolOutput()
    part = ai.NativeToolReturnPart(
        tool_name=valid_text(block.name),
        content=valid_json(output.raw),
        tool_call_id=valid_text(block.id),
        outcome="failed" if output.is_error else "success",
        tool_kind=data.get("kind"),
        provider_name=provider,
        provider_details=data.get("details"),
    )
    return ai.NativeToolReturnPart.narrow_type(part)


def _block(
    part: ai.NativeToolCallPart | ai.NativeToolReturnPart,
    arguments: dict[str, Any],
    output: ToolOutput | None,
    kept: dict[str, Any],
) -> ToolCallBlock:
    name = part.tool_name.partition(":")[0].removesuffix("_server")
    name = name if name in SERVER_TYPES else name.removesuffix("_code_execution")
    return ToolCallBlock.model_validate(
        {
            "id": part.tool_call_id,
            "name": part.tool_name,
            "arguments": arguments,
            "server": True,
            "server_type": name if name in SERVER_TYPES else "",
            "output": output,
            "provider_data": to_jsonable_python(_held(kept), fallback=str),
        }
    )


def _output(returned: ai.NativeToolReturnPart | None) -> ToolOutput | None:
    if returned is None:
        return None
    raw = to_jsonable_python(returned.content, fallback=str, bytes_mode="base64")
    return ToolOutput(raw=raw, is_error=returned.outcome != "success")


def _held(kept: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kept.items() if value}
