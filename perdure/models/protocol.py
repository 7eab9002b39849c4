"""What a language model is to perdure: one call that takes a conversation and gives the next
message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from perdure.codec import dumps_json
from perdure.messages import Message


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters` is the JSON schema of its arguments, an
    object.
    """

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call: the conversation so far, as the model view gives it, and what goes with it.

    Calls of one conversation have the same `cache_key`: a provider that is told it finds what it
    has cached of the conversation. With `output_schema` the text of the answer is to be JSON that
    fits this JSON schema; a model that cannot be told so by other means adds `output_instruction`
    to its instructions.
    """

    messages: Sequence[Message]
    instructions: str = ""
    tools: Sequence[ToolSpec] = ()
    cache_key: str = ""
    output_schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a message that is still being written; `index` is the place of its content block
    in the message. Arguments of a tool call are pieces of JSON, and say which call they belong to,
    as far as it is known.
    """

    kind: Literal["text", "thinking", "tool_arguments"]
    text: str
    index: int
    tool_call_id: str = ""
    tool_name: str = ""


OnDelta: TypeAlias = Callable[[Delta], None]


@runtime_checkable
class LanguageModel(Protocol):
    """A model to bring along: these two members, nothing to inherit."""

    @property
    def name(self) -> str:
        """A label for people: `anthropic:claude-sonnet-5-5`."""
        ...

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        """The next message, of role `assistant`, whole.

        With `on_delta`, pieces of it may be passed on while they arrive. The call may be cancelled.
        It does not retry: a failure is a `ModelError` that says whether another attempt may
        succeed, and the caller decides.
        """
        ...


def output_instruction(schema: dict[str, Any]) -> str:
    """What a model is told that cannot be held to a JSON schema by other means."""
    text = dumps_json(schema).decode("utf-8", "replace")
    return (
        "When you give your answer, give it as JSON that fits this JSON schema, without Markdown "
        f"and without a word before or after it:\n{text}"
    )
