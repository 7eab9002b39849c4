"""A model that says what it is told, for tests and demonstrations."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeGuard

from perdure.errors import AgentError, ModelError
from perdure.messages import (
    ContentBlock,
    Message,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from perdure.models.protocol import Delta, ModelRequest, OnDelta
from perdure.usage import Usage

CHARACTERS_PER_TOKEN: Final = 4
WORD: Final = re.compile(r"\s*\S+|\s+")


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call in a script; written with `call`."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""


def call(name: str, /, _id: str = "", **arguments: Any) -> ScriptedCall:
    """A tool call for a script: `call("find_order", order_id="7")`.

    Its ID is made from its place in the conversation, unless `_id` gives one.
    """
    return ScriptedCall(name, arguments, _id)


Parts: TypeAlias = str | ScriptedCall | Sequence[str | ScriptedCall]
Answer: TypeAlias = Parts | Message | BaseException | type[BaseException]
Script: TypeAlias = Callable[[list[Message]], Answer | Awaitable[Answer]]
Item: TypeAlias = Answer | Script


class ScriptedModel:
    """A model whose answers are written down beforehand, one item for each model call.

    An item is text, a `call(...)`, a list of both, a whole `Message`, an exception (to raise), or a
    function that is given the messages and returns one of these, async or not. A function in last
    place serves every later call too. The empty item, `""` or `[]`, is a model that returns
    nothing.

    The model keeps no position, since any worker may serve the next call: the item is the one after
    the assistant messages that it was sent. So an exception is raised at every attempt to make that
    call; let a function raise first and answer later when it should pass. A script for a
    conversation that has assistant messages already is told their number with `start`.

    `delay` is in seconds, before each answer, or spread over its pieces when it is streamed. With
    `stream=True` the answer is passed on word by word to whoever asked for deltas. Token counts are
    made up: one for every four characters, rounded up, of what was sent and of what was said.

    `requests` holds every list of messages that this object was sent.
    """

    def __init__(
        self,
        *items: Item,
        delay: float = 0.0,
        stream: bool = False,
        start: int = 0,
        name: str = "scripted",
    ) -> None:
        for number, item in enumerate(items, start=1):
            if not (_is_answer(item) or (callable(item) and not isinstance(item, type))):
                raise AgentError(
                    f"item {number} of the script is {item!r}; an item is text, call(...), a list "
                    "of both, an assistant Message, an exception, or a function that returns one"
                )
        self.name = name
        self.requests: list[list[Message]] = []
        self._items = items
        self._delay = delay
        self._stream = stream
        self._start = start

    def __repr__(self) -> str:
        return f"<ScriptedModel {self.name!r} of {len(self._items)} items>"

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        """The item for this place in the conversation, as a message.

        Raises a final `ModelError` past the script's end, and whatever exception the item is.
        """
        messages = list(request.messages)
        self.requests.append(messages)
        position = sum(message.role == Role.ASSISTANT for message in messages)
        answer = await self._answer(position, messages)
        if isinstance(answer, (BaseException, type)):
            await asyncio.sleep(self._delay)
            raise answer
        message = (
            answer
            if isinstance(answer, Message)
            else self._message(_content(answer, position, messages), request)
        )
        await self._say(message, on_delta)
        return message

    async def _answer(self, position: int, messages: list[Message]) -> Answer:
        item = self._item(position)
        if _is_answer(item):
            return item
        answer = item(messages)
        if inspect.isawaitable(answer):
            answer = await answer
        if not _is_answer(answer):
            raise ModelError(f"the script's function returned {answer!r}, which is not an answer")
        return answer

    def _item(self, position: int) -> Any:
        place = position - self._start
        if place < 0:
            raise ModelError(
                f"the script starts after {self._start} assistant messages, "
                f"but was sent {position}; lower ScriptedModel(start=...)"
            )
        if place < len(self._items):
            return self._items[place]
        if self._items and not _is_answer(self._items[-1]):
            return self._items[-1]
        raise ModelError(
            f"the script has ended: it has {len(self._items)} items, and this is call {place + 1}"
        )

    def _message(self, content: tuple[ContentBlock, ...], request: ModelRequest) -> Message:
        sent = len(request.instructions) + sum(map(_characters, request.messages))
        said = sum(map(_block_characters, content))
        calls = any(isinstance(block, ToolCallBlock) for block in content)
        return Message(
            role=Role.ASSISTANT,
            content=content,
            api="scripted",
            provider="scripted",
            model=self.name,
            usage=Usage(input=_tokens(sent), output=_tokens(said)),
            stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
        )

    async def _say(self, message: Message, on_delta: OnDelta | None) -> None:
        pieces = list(_pieces(message)) if self._stream and on_delta is not None else []
        if on_delta is None or not pieces:
            await asyncio.sleep(self._delay)
            return
        for piece in pieces:
            await asyncio.sleep(self._delay / len(pieces))
            on_delta(piece)


def _is_answer(item: object) -> TypeGuard[Answer]:
    if isinstance(item, type):
        return issubclass(item, BaseException)
    if isinstance(item, Message):
        return item.role == Role.ASSISTANT
    if isinstance(item, (list, tuple)):
        return all(isinstance(part, (str, ScriptedCall)) for part in item)
    return isinstance(item, (str, ScriptedCall, BaseException))


def _content(answer: Parts, position: int, messages: list[Message]) -> tuple[ContentBlock, ...]:
    parts = [answer] if isinstance(answer, (str, ScriptedCall)) else answer
    ids = _free_ids(position, messages, parts)
    blocks: list[ContentBlock] = []
    for part in parts:
        if isinstance(part, ScriptedCall):
            block_id = part.id or next(ids)
            blocks.append(ToolCallBlock(id=block_id, name=part.name, arguments=part.arguments))
        elif part:
            blocks.append(TextBlock(text=part))
    return tuple(blocks)


def _free_ids(
    position: int, messages: list[Message], parts: Sequence[str | ScriptedCall]
) -> Iterator[str]:
    """IDs for calls, made from their place, and none that the conversation has already: a
    compaction moves places.
    """
    taken = {block.id for message in messages for block in message.tool_calls}
    taken.update(part.id for part in parts if isinstance(part, ScriptedCall))
    for number in itertools.count(1):
        call_id = f"call_{position + 1}_{number}"
        if call_id not in taken:
            yield call_id


def _pieces(message: Message) -> Iterator[Delta]:
    for index, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            yield from (Delta("text", word, index) for word in WORD.findall(block.text))
        elif isinstance(block, ThinkingBlock):
            yield Delta("thinking", block.thinking, index)
        elif isinstance(block, ToolCallBlock):
            arguments = json.dumps(block.arguments, ensure_ascii=False)
            yield Delta("tool_arguments", arguments, index, block.id, block.name)


def _characters(message: Message) -> int:
    return sum(map(_block_characters, message.content))


def _block_characters(block: ContentBlock) -> int:
    if isinstance(block, TextBlock):
        return len(block.text)
    if isinstance(block, ThinkingBlock):
        return len(block.thinking)
    if isinstance(block, ToolCallBlock):
        return len(block.name) + len(json.dumps(block.arguments, ensure_ascii=False))
    return 0


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)
