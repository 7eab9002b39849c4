"""Pair tool calls and results as providers demand it. A projection: nothing stored is changed.

Providers refuse a call without its result and a result without its call, and both are what a
crash, a branch or a compaction leaves behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from perdure.messages import Message, Role, TextBlock, ToolCallBlock

INTERRUPTED = "tool execution interrupted"


def repaired(messages: Sequence[Message]) -> list[Message]:
    """The messages with each call of the client answered once, directly after its message.

    Results that stand there already keep their order; calls without one get an error result, in
    call order. A result that stands anywhere else is left out, and so is one more than there are
    calls of its ID. Calls that the provider ran itself have no result messages.
    """
    paired: list[Message] = []
    unanswered: Counter[str] = Counter()
    caller: Message | None = None  # the message whose calls wait for results
    for message in messages:
        role, tool_call_id, call_ids, _ = message.outline
        if role == Role.TOOL_RESULT:
            if unanswered[tool_call_id] > 0:
                unanswered[tool_call_id] -= 1
                paired.append(message)
            continue
        if caller is not None:
            paired.extend(_interrupted(caller.tool_calls, unanswered))
            caller, unanswered = None, Counter()
        paired.append(message)
        if call_ids and role == Role.ASSISTANT:
            caller, unanswered = message, Counter(call_ids)
    if caller is not None:
        paired.extend(_interrupted(caller.tool_calls, unanswered))
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


def _interrupted(calls: Iterable[ToolCallBlock], unanswered: Counter[str]) -> Iterable[Message]:
    # Of several calls with one ID the results that there are answer the first ones.
    answered = Counter(call.id for call in calls) - unanswered
    for call in calls:
        if answered[call.id] > 0:
            answered[call.id] -= 1
        elif unanswered[call.id] > 0:
            yield interrupted_result(call)
