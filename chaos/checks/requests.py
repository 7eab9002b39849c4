"""Whether a provider takes what a model was sent. Written apart from the code that makes it."""

from __future__ import annotations

from chaos.evidence import Evidence, Line, calls_of

_ROLES = frozenset({"user", "assistant", "tool_result"})
_BLOCKS = frozenset({"text", "thinking", "tool_call", "image", "file"})


def model_requests_are_valid(evidence: Evidence) -> tuple[int, list[str]]:
    """Each request begins with a question; each call in it is answered once, right after the
    message that has it; no result is without its call, no message without content.
    """
    wrong: list[str] = []
    requests = evidence.of("model asked")
    for note in requests:
        fault = fault_of(note["messages"])
        if fault:
            wrong.append(f"{note['session']}, request {note['word']}: {fault}")
    return len(requests), wrong


def fault_of(messages: list[Line]) -> str:
    """What a strict provider would say about a conversation; empty when it has nothing to say."""
    if not messages:
        return "it is empty"
    if messages[0].get("role") != "user":
        return "it does not begin with a question"
    open_calls: dict[str, str] = {}
    seen: set[str] = set()
    for number, message in enumerate(messages):
        place = f"message {number}"
        if message.get("role") not in _ROLES:
            return f"{place} is by {message.get('role')!r}"
        if not _has_content(message):
            return f"{place} is empty"
        if message["role"] == "tool_result":
            name = open_calls.pop(message.get("tool_call_id", ""), None)
            if name is None:
                return f"{place} answers no open call: {message.get('tool_call_id')!r}"
            if name != message.get("tool_name"):
                return f"{place} answers a call of {name!r} as {message.get('tool_name')!r}"
            continue
        if open_calls:
            return f"{place} comes before the results of {sorted(open_calls)}"
        fault = _fault_of_calls(message, seen)
        if fault:
            return f"{place} {fault}"
        open_calls = {call["id"]: call["name"] for call in calls_of(message)}
        seen |= open_calls.keys()
    return f"it ends before the results of {sorted(open_calls)}" if open_calls else ""


def _fault_of_calls(message: Line, seen: set[str]) -> str:
    calls = calls_of(message)
    if calls and message["role"] != "assistant":
        return f"has calls, and is by {message['role']}"
    for call in calls:
        if not call.get("id") or not call.get("name"):
            return "has a call without ID or name"
        if not isinstance(call.get("arguments", {}), dict):
            return "has a call whose arguments are no object"
    ids = [call["id"] for call in calls]
    repeated = seen.intersection(ids) or {each for each in ids if ids.count(each) > 1}
    return f"has a call ID for the second time: {sorted(repeated)}" if repeated else ""


def _has_content(message: Line) -> bool:
    content = message.get("content")
    if isinstance(content, str):
        return bool(content)
    if not isinstance(content, list) or not content:
        return False
    return all(
        block.get("type") in _BLOCKS and (block["type"] != "text" or bool(block.get("text")))
        for block in content
    )
