"""Pair tool calls and results as providers demand it. A projection: nothing stored is changed.

Providers refuse a call without its result and a result without its call, and both are what a
crash, a branch or a compaction leaves behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from perdure.messages import Message, Role, TextBlock, ToolCallBlock

INTERRUPTED = "tool execution interrupted"


def repaired(messages: Sequence[Message]) -> list[Message]:
    """The messages with each call of the client answered once, directly after its message.

    Results that stand there already keep their order; calls without one get an error result, in
    call order. A result that stands anywhere else is left out, and so is one more than there are
    calls of its ID. Calls that the provider ran itself have no result messages.
    """
    paired: list[Message] = []
    caller: Message | None = None  # the message whose calls the next results may answer
    unanswered: list[str] = []
    for message in messages:
        role, tool_call_id, call_ids, _ = message.outline
        if role == "tool_result":
            if tool_call_id in unanswered:
                unanswered.remove(tool_call_id)
                paired.append(message)
            continue
        if caller is not None and unanswered:
            paired += _interrupted(caller, unanswered)
        paired.append(message)
        caller, unanswered = None, []
        if call_ids and role == "assistant":
            caller, unanswered = message, list(call_ids)
    if caller is not None and unanswered:
        paired += _interrupted(caller, unanswered)
    return paired


def interrupted_result(call: ToolCallBlock) -> Message:
    """What stands for the result of a call that nobody finished."""
    return Message(
        role=Role.TOOL_RESULT.value,
        content=[TextBlock(text=INTERRUPTED)],
        tool_call_id=call.id,
        tool_name=call.name,
        is_error=True,
    )


def _interrupted(caller: Message, unanswered: Sequence[str]) -> list[Message]:
    # Of several calls with one ID, the results that there are answer the first ones.
    results: list[Message] = []
    missing = Counter(unanswered)
    for call in reversed(caller.tool_calls):
        if missing[call.id]:
            missing[call.id] -= 1
            results.append(interrupted_result(call))
    return results[::-1]
