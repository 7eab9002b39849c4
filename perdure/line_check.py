"""Tell plain lines from unusual ones, many times faster than a model is made.

What is found plain here is sure to be read by the models; whatever is not is left to them to
read, or to refuse with a reason. Most lines of a log are plain.
"""

from __future__ import annotations

from math import isfinite, isinf
from typing import Any, Final

from perdure.messages import Outline

_MESSAGE_TEXTS: Final = frozenset(
    {"role", "api", "provider", "model", "stop_reason", "error", "tool_call_id", "tool_name"}
)
_BLOCK_TEXTS: Final[dict[str, frozenset[str]]] = {
    "text": frozenset({"text", "signature"}),
    "thinking": frozenset({"thinking", "signature"}),
    "image": frozenset({"data", "mime_type"}),
    "file": frozenset({"data", "mime_type", "url", "file_id", "filename"}),
    "tool_call": frozenset({"id", "name", "signature"}),
}
_COUNTS: Final = frozenset(
    {"input", "output", "cache_read", "cache_write", "reasoning", "input_audio", "output_audio"}
)
_LARGEST_PLAIN: Final = 2**53

# Most messages have one of a few outlines; sharing them saves the memory of a log.
_outlines: Final[dict[str, Outline]] = {
    role: Outline(role, "", (), False) for role in ("user", "assistant", "tool_result", "")
}


def outline_of_plain(message: dict[str, Any]) -> Outline | None:
    """The outline of a message's wire form, or None if it is not plain."""
    for key, value in message.items():
        if key in _MESSAGE_TEXTS:
            if type(value) is not str:
                return None
        elif (key == "usage" and not _is_plain_usage(value)) or (
            key == "is_error" and type(value) is not bool
        ):
            return None
    call_ids = _plain_content(message.get("content"))
    if call_ids is None:
        return None
    role: str = message.get("role", "")
    tool_call_id: str = message.get("tool_call_id", "")
    if not call_ids and not tool_call_id and role in _outlines:
        return _outlines[role]
    return Outline(role, tool_call_id, call_ids, False)


def _plain_content(content: Any) -> tuple[str, ...] | None:
    """The IDs of the calls in it, or None if it is not plain."""
    call_ids: tuple[str, ...] = ()
    if type(content) is not list:
        return call_ids if content is None else None
    for block in content:
        if type(block) is not dict or type(kind := block.get("type")) is not str:
            return None
        texts = _BLOCK_TEXTS.get(kind)
        if texts is None:
            return None
        for key, value in block.items():
            if key in texts and type(value) is not str:
                return None
        if kind == "tool_call":
            if not _is_plain_call(block):
                return None
            call_ids += (block.get("id", ""),)
    return call_ids


def _is_plain_call(block: dict[str, Any]) -> bool:
    if "server" in block or "output" in block or "server_type" in block:
        return False
    arguments = block.get("arguments", _NO_ARGUMENTS)
    return type(arguments) is dict and not has_infinity(arguments)


def _is_plain_usage(usage: Any) -> bool:
    if type(usage) is not dict:
        return usage is None
    for key, value in usage.items():
        if key in _COUNTS:
            if not _is_plain_count(value):
                return False
        elif key == "cost":
            if type(value) is not dict:
                return False
            for amount in value.values():
                if not (_is_plain_count(amount) or (type(amount) is float and isfinite(amount))):
                    return False
    return True


def _is_plain_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_PLAIN


def has_infinity(value: object) -> bool:
    """Whether one of the numbers in it is beyond the range of a float."""
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, float) and isinf(item):
            return True
        if isinstance(item, dict):
            rest.extend(item.values())
        elif isinstance(item, list):
            rest.extend(item)
    return False


_NO_ARGUMENTS: Final[dict[str, Any]] = {}
