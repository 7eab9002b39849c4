"""The names that OpenTelemetry's conventions for generative AI give to things, and perdure's own
where they have none.
"""

from __future__ import annotations

import os
from typing import Any, Final

from perdure.codec import dumps_json
from perdure.messages import ContentBlock, Message, TextBlock, ToolCallBlock
from perdure.usage import Usage

Attributes = dict[str, Any]

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
STREAM: Final = "gen_ai.request.stream"
OUTPUT_TYPE: Final = "gen_ai.output.type"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
TOOL: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOKEN_TYPE: Final = "gen_ai.token.type"
ERROR: Final = "error.type"

RUN: Final = "perdure.run.id"
RUN_STATUS: Final = "perdure.run.status"
TURN: Final = "perdure.turn"
TURNS: Final = "perdure.run.turns"
RESTARTS: Final = "perdure.run.restarts"
ATTEMPT: Final = "perdure.attempt"
TENANT: Final = "perdure.tenant"
COMMAND: Final = "perdure.command"
COMMAND_ID: Final = "perdure.command.id"
ENTRIES: Final = "perdure.entries"
APPROVED: Final = "perdure.approved"
STORE_OPERATION: Final = "perdure.store.operation"
WORKFLOW: Final = "temporal.workflow.id"

MODEL_SECONDS: Final = "gen_ai.client.operation.duration"
TOKENS: Final = "gen_ai.client.token.usage"
RUN_SECONDS: Final = "gen_ai.invoke_agent.duration"
TOOL_SECONDS: Final = "gen_ai.execute_tool.duration"
TOOL_ERRORS: Final = "perdure.tool.errors"
TURN_SECONDS: Final = "perdure.turn.duration"
STORE_SECONDS: Final = "perdure.store.duration"
INBOX_DEPTH: Final = "perdure.inbox.depth"
INBOX_SECONDS: Final = "perdure.inbox.wait"

TOKEN_BUCKETS: Final = [4.0**power for power in range(14)]
DURATION_BUCKETS: Final = [0.01 * 2**power for power in range(14)]
LONG_BUCKETS: Final = [0.1 * 2**power for power in range(16)]
STORE_BUCKETS: Final = [0.0005 * 2**power for power in range(16)]
COUNT_BUCKETS: Final = [1.0, 2.0, 3.0, 5.0, 10.0, 25.0, 50.0, 100.0, 500.0, 1_000.0, 5_000.0]

_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "grok": "x_ai",
    "mistral": "mistral_ai",
    "moonshotai": "moonshot_ai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "xai": "x_ai",
}
"""What the conventions call a provider, where a model's spec calls it otherwise."""

TOOL_ERROR: Final = "tool_error"
"""A tool that gave an error as its result."""

OTHER: Final = "_OTHER"
"""A provider that is not known, for example that of a model of the application's own."""


def model_attributes(name: str) -> Attributes:
    """The provider and the model of a name such as `anthropic:claude-sonnet-5-5`."""
    provider, colon, model = name.partition(":")
    if not colon:
        return {PROVIDER: OTHER, REQUEST_MODEL: name}
    return {PROVIDER: _PROVIDERS.get(provider, provider), REQUEST_MODEL: model}


def usage_attributes(usage: Usage) -> Attributes:
    """Tokens as the conventions count them: those from and for a cache are part of the input."""
    counts = {
        "gen_ai.usage.input_tokens": input_tokens(usage),
        "gen_ai.usage.output_tokens": int(usage.output),
        "gen_ai.usage.cache_read.input_tokens": int(usage.cache_read),
        "gen_ai.usage.cache_creation.input_tokens": int(usage.cache_write),
        "gen_ai.usage.reasoning.output_tokens": int(usage.reasoning),
    }
    return {name: count for name, count in counts.items() if count}


def input_tokens(usage: Usage) -> int:
    """All that a model was sent, in tokens."""
    return int(usage.input + usage.cache_read + usage.cache_write)


def captures_content() -> bool:
    """Whether the application wants messages in its spans. It has to say so."""
    wanted = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "")
    return wanted.strip().lower() in ("true", "1", "span_only", "span_and_event")


def answer_attributes(message: Message) -> Attributes:
    """What is told of a model's answer; what it says only to those who ask for it."""
    found: Attributes = {FINISH_REASONS: [_finish_reason(message)]}
    if message.model:
        found[RESPONSE_MODEL] = str(message.model)
    if message.usage is not None:
        found |= usage_attributes(message.usage)
    if captures_content():
        parts = [part for block in message.content if (part := _part(block)) is not None]
        answer = {"role": "assistant", "parts": parts, "finish_reason": _finish_reason(message)}
        found[OUTPUT_MESSAGES] = dumps_json([answer]).decode()
    return found


def _finish_reason(message: Message) -> str:
    reason = str(message.stop_reason or "stop")
    return {"tool_use": "tool_call"}.get(reason, reason)


def _part(block: ContentBlock) -> dict[str, Any] | None:
    if isinstance(block, TextBlock):
        return {"type": "text", "content": block.text}
    if isinstance(block, ToolCallBlock):
        return {
            "type": "tool_call",
            "id": block.id,
            "name": block.name,
            "arguments": block.arguments,
        }
    return None
