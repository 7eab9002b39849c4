"""How an approval is sent."""

from __future__ import annotations

from perdure.cli.connection import Place, running, sessions_of
from perdure.cli.screen import one_line, out
from perdure.protocol import ApproveCommand
from perdure.session import _new_id


async def send_approval(
    place: Place, tool_call_id: str, *, approved: bool, reason: str | None, as_json: bool
) -> None:
    """Answer the call. Raises CommandError when no call of that ID waits."""
    session = await running(await sessions_of(place), place)
    command = ApproveCommand(
        command_id=_new_id(), tool_call_id=tool_call_id, approved=approved, reason=reason
    )
    await session._do(command)
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
