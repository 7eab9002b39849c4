"""How an approval is sent."""

from __future__ import annotations

from typing import Any

from perdure.cli.connection import running, sessions_of
from perdure.cli.place import Place
from perdure.cli.screen import one_line, out


async def send_approval(
    place: Place,
    tool_call_id: str,
    *,
    approved: bool,
    reason: str | None,
    arguments: dict[str, Any] | None,
    as_json: bool,
) -> None:
    """Answer the call. Raises CommandError when no call of that ID waits, ToolArgumentsError when
    the arguments do not fit the tool; then it still waits.
    """
    session = await running(await sessions_of(place), place)
    await session.approve(tool_call_id, approved, reason=reason, arguments=arguments)
    told = {
        "session_id": session.id,
        "tool_call_id": tool_call_id,
        "approved": approved,
        "reason": reason,
    }
    screen = out()
    if as_json:
        screen.json(told)
    else:
        screen.line(f"{'approved' if approved else 'denied'}: {one_line(tool_call_id)}")
