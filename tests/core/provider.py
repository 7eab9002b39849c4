"""A provider's eye on a conversation, written apart from the code that makes one."""

from __future__ import annotations

from collections import Counter

from perdure.messages import Message, OpaqueBlock


def check_as_a_provider(messages: list[Message]) -> None:
    """Every call is answered at once, by exactly one result, and every result answers a call."""
    open_calls: Counter[str] = Counter()
    for message in messages:
        assert message.role in ("user", "assistant", "tool_result")
        assert not any(isinstance(block, OpaqueBlock) for block in message.content)
        if message.role == "tool_result":
            assert open_calls[message.tool_call_id] > 0
            open_calls[message.tool_call_id] -= 1
            continue
        assert open_calls.total() == 0
        if message.role == "assistant":
            open_calls = Counter(call.id for call in message.tool_calls)
    assert open_calls.total() == 0
