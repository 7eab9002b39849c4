"""What a tool returns, as content that a model reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from perdure.entries import MessageEntry
from perdure.errors import ToolResultError
from perdure.messages import ContentBlock, FileBlock, ImageBlock, TextBlock

_SHOWN = (TextBlock, ImageBlock, FileBlock)


def content_blocks(result: object) -> tuple[ContentBlock, ...]:
    """The content of a tool's result.

    Text is one text block, None is no content. Blocks, and what `text`, `image` and `file` build,
    are taken as they are, alone or in a list in which anything else becomes text. Everything else
    is compact JSON, written the way pydantic does (models, dataclasses, dates, sets, enums) with
    NaN and infinities by those names.

    Raises `ToolResultError` for what cannot be shown to a model.
    """
    if result is None:
        return ()
    if _is_content(result):
        return _content(result)
    if isinstance(result, (list, tuple)) and any(_is_content(item) for item in result):
        return tuple(block for item in result for block in content_blocks(item))
    return (TextBlock(text=_text(result)),)


def _is_content(result: object) -> bool:
    return isinstance(result, (*_SHOWN, MessageEntry))


def _content(result: Any) -> tuple[ContentBlock, ...]:
    blocks: Sequence[ContentBlock] = (
        result.message.content if isinstance(result, MessageEntry) else (result,)
    )
    for block in blocks:
        if not isinstance(block, _SHOWN):
            raise ToolResultError(
                f"the tool returned a message with a block of type {block.type!r}; "
                "a result holds text, images and files"
            )
    return tuple(blocks)


def _text(result: object) -> str:
    if isinstance(result, str):
        return str.__str__(result)
    if isinstance(result, (bytes, bytearray, memoryview)):
        raise ToolResultError(
            "the tool returned bytes, which a model cannot read; "
            "return text, image(data, mime_type) or file(data=data, mime_type=...)"
        )
    try:
        # Through plain objects and the standard library, because pydantic's own writer refuses lone
        # surrogates.
        plain = to_jsonable_python(result, bytes_mode="base64", by_alias=True)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        reason = str(error).split("\n", 1)[0]
        raise ToolResultError(
            f"the tool returned {type(result).__name__}, which cannot be written as JSON "
            f"({reason}); return text, plain data, a pydantic model, image(...) or file(...)"
        ) from error
