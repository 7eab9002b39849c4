"""The IDs of tool calls: each call of a conversation has one of its own, which the model that reads
it takes.

Everything that happens to a call (its result, an approval, a repair) finds it by its ID. Providers
differ in what they give and take: some servers give none, or `call_0` in each message, and some
refuse the IDs of others. New IDs are made from what is there, so that the same conversation always
gets the same ones: a prefix that changed would not be found in the provider's cache.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final

from perdure.json_writer import dumps_json
from perdure.messages import ContentBlock, Message, ToolCallBlock

MADE_UP: Final = re.compile(r"pyd_ai_[0-9a-f]{32}")
"""What pydantic-ai puts where a provider gave no ID: different each time."""

TAKEN_BY: Final = {
    "anthropic-messages": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "bedrock-converse-stream": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "google-generative-ai": re.compile(r".+", re.DOTALL),
    "openai-responses": re.compile(r"[A-Za-z0-9_-]{1,64}"),
}
"""The IDs of other providers that a protocol takes."""
TAKEN_BY_ALL: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""Those that any protocol takes; OpenAI's Chat Completions takes no longer ones."""


def with_unique_ids(answer: Message, before: Sequence[Message]) -> Message:
    """The answer to a conversation, in which each call of the client has an ID that no other call
    has: calls without one, and all but the first of those that share one, get an ID that is made
    from the call and its place.
    """
    taken = _ids_in(before)
    taken.update(
        block.id for block in answer.content if isinstance(block, ToolCallBlock) and block.server
    )
    place = f"{len(before)} {dumps_json(before[-1].to_wire()).decode()}" if before else ""
    content: list[ContentBlock] = []
    for index, block in enumerate(answer.content):
        if isinstance(block, ToolCallBlock) and not block.server:
            if not block.id or block.id in taken or MADE_UP.fullmatch(block.id):
                call = dumps_json(block.model_copy(update={"id": ""}).to_wire()).decode()
                block = block.model_copy(update={"id": _free_id(f"{place} {index} {call}", taken)})
            taken.add(block.id)
        content.append(block)
    if all(new is old for new, old in zip(content, answer.content, strict=True)):
        return answer
    return answer.model_copy(update={"content": tuple(content)})


class CallIds:
    """The IDs under which one conversation's calls and results are sent, told in their order.

    `system` is the provider that reads it, `api` its protocol. Its own IDs stay as they are; those
    of others stay where it takes them. One that is missing, or was there before, is replaced.
    """

    def __init__(self, system: str, api: str) -> None:
        self._system = system
        self._pattern = TAKEN_BY.get(api, TAKEN_BY_ALL)
        self._taken: set[str] = set()
        self._unanswered: dict[str, deque[str]] = {}
        self._count = 0

    def of_calls(self, message: Message) -> list[str]:
        """The IDs of the client's calls in an assistant message, in their order."""
        pattern = None if message.provider == self._system else self._pattern
        self._unanswered = defaultdict(deque)
        sent: list[str] = []
        for call in message.tool_calls:
            self._count += 1
            sent_id = call.id
            if not sent_id or sent_id in self._taken:
                sent_id = _free_id(f"{self._count} {call.id}", self._taken)
            elif pattern is not None and not pattern.fullmatch(sent_id):
                sent_id = _free_id(sent_id, self._taken)
            self._taken.add(sent_id)
            self._unanswered[call.id].append(sent_id)
            sent.append(sent_id)
        return sent

    def of_result(self, call_id: str) -> str:
        """The ID of the call that a result answers; of several calls with one ID, the results
        answer the first ones first.
        """
        waiting = self._unanswered.get(call_id)
        return waiting.popleft() if waiting else call_id


def _ids_in(messages: Iterable[Message]) -> set[str]:
    return {call_id for message in messages for call_id in message.outline.call_ids}


def _free_id(seed: str, taken: set[str]) -> str:
    while True:
        digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
        made = f"call_{digest[:24]}"
        if made not in taken:
            return made
        seed = digest
