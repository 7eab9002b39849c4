"""Tool calls that wait for a person: what is asked, and which answer means what.

An answer is bound to its call. It is never queued: there is a call that waits when it comes, or it
is refused, so it cannot reach a call of the same ID in a later turn. Whoever states the digest of
the call that they saw is also safe from such a call that waits by now in its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from perdure.codec import dumps_json
from perdure.errors import JsonError
from perdure.protocol import (
    MAX_APPROVAL_BYTES,
    ActiveRun,
    ApproveCommand,
    ErrorInfo,
    OpenCall,
    PendingApproval,
    PlannedCall,
)

SHOWN_APPROVALS = 50
"""How many of the calls that wait `status` shows."""

_SHOWN_ARGUMENTS = 2_000
_SHOWN_VALUE = 200
_SHOWN_VALUES = 20


def opened(run: ActiveRun, calls: Sequence[PlannedCall], since: str) -> list[OpenCall]:
    """The calls of a message, as they stand before any of them runs."""
    if not any(call.needs_approval for call in calls):
        return [OpenCall(call=call) for call in calls]
    size = sum(len(dumps_json(call.arguments)) for call in calls)
    return [_opened(run, call, since, size) for call in calls]


def _opened(run: ActiveRun, call: PlannedCall, since: str, size: int) -> OpenCall:
    if not call.needs_approval:
        return OpenCall(call=call)
    digest = _digest(run, call)
    if size > MAX_APPROVAL_BYTES:
        return OpenCall(call=call, call_digest=digest, is_answered=True, refusal=_too_large(size))
    return OpenCall(call=call, since=since, call_digest=digest)


def pending(run: ActiveRun | None) -> list[PendingApproval]:
    """What waits for a person, in the order of the calls."""
    if run is None or run.is_cancelled:
        return []
    return [_shown(run, call) for call in run.calls if call.is_awaited and call.proposal is None]


def take_answer(run: ActiveRun | None, command: ApproveCommand) -> OpenCall | ErrorInfo:
    """The call that is answered, with the answer written down; or why it is not, and then nothing
    has changed.

    An answer with other arguments is a proposal until these have been checked.
    """
    calls = [] if run is None or run.is_cancelled else run.calls
    same_id = [call for call in calls if call.call.id == command.tool_call_id]
    waiting = [call for call in same_id if call.is_awaited and call.proposal is None]
    if not waiting:
        return nothing_waits(command.tool_call_id, was_asked=any(c.call_digest for c in same_id))
    if command.call_digest is not None:
        waiting = [call for call in waiting if call.call_digest == command.call_digest]
        if not waiting:
            return _refused(f"the call {command.tool_call_id!r} that waits is not the one seen")
    elif len({call.call_digest for call in waiting}) > 1:
        return _refused(f"{len(waiting)} calls {command.tool_call_id!r} wait; state a call_digest")
    call = waiting[0]
    if not command.approved:
        call.is_answered, call.refusal = True, _denial(command.reason)
    elif command.arguments is None or _is_same(command.arguments, call.call.arguments):
        call.is_answered = True
    elif (fault := _unusable(command.arguments)) is not None:
        return fault
    else:
        call.proposal = command
    return call


def accept_proposal(call: OpenCall) -> None:
    """The arguments that a person gave fit: the call runs with them."""
    assert call.proposal is not None
    call.call = call.call.model_copy(update={"arguments": call.proposal.arguments})
    call.is_answered = call.is_edited = True
    call.proposal = None


def edited_note(call: PlannedCall) -> str:
    """What the model is told of a call that ran with other arguments than its own. It is in the
    log, and nothing else there tells what was really run.
    """
    arguments = dumps_json(call.arguments).decode()
    return f"A person changed the arguments of this call. It ran with: {arguments}"


def carried_bytes(run: ActiveRun) -> int:
    """How much of the answers that came is still to be carried, in bytes."""
    proposals = [len(call.proposal.to_json()) for call in run.calls if call.proposal is not None]
    edited = [len(dumps_json(call.call.arguments)) for call in run.calls if call.is_edited]
    return sum(proposals) + sum(edited)


def _shown(run: ActiveRun, call: OpenCall) -> PendingApproval:
    arguments, is_cut = _shortened(call.call.arguments)
    return PendingApproval(
        tool_call_id=call.call.id,
        tool_name=call.call.name,
        arguments=arguments,
        is_cut=is_cut,
        run_id=run.run_id,
        turn=run.turn,
        since=call.since,
        call_digest=call.call_digest,
    )


def _shortened(arguments: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    if len(dumps_json(arguments)) <= _SHOWN_ARGUMENTS:
        return arguments, False
    names = list(arguments)[:_SHOWN_VALUES]
    return {name[:_SHOWN_VALUE]: _shortened_value(arguments[name]) for name in names}, True


def _shortened_value(value: Any) -> Any:
    text = value if isinstance(value, str) else dumps_json(value).decode()
    if len(text) <= _SHOWN_VALUE:
        return value
    return f"{text[:_SHOWN_VALUE]}… ({len(text):,} characters)"


def _digest(run: ActiveRun, call: PlannedCall) -> str:
    seen = [run.run_id, run.turn, call.id, call.name, call.arguments]
    return hashlib.sha256(dumps_json(seen)).hexdigest()[:16]


def _unusable(arguments: dict[str, Any]) -> ErrorInfo | None:
    """Whether changed arguments are more than can be carried, deep inside of a state."""
    try:
        size = len(dumps_json([[[[[[[[arguments]]]]]]]]))
    except JsonError as error:
        return _refused(f"the changed arguments cannot be carried: {error}")
    if size > MAX_APPROVAL_BYTES:
        return _refused(f"changed arguments may hold {MAX_APPROVAL_BYTES:,} bytes at most")
    return None


def _is_same(given: dict[str, Any], own: dict[str, Any]) -> bool:
    return dumps_json(given) == dumps_json(own)


def _denial(reason: str | None) -> str:
    denied = "A person denied this call; it did not run."
    return f"{denied} Their reason: {reason}" if reason else denied


def _too_large(size: int) -> str:
    return (
        f"This call needs an approval, and the calls of this message have arguments of {size:,} "
        f"bytes; a person can be asked about {MAX_APPROVAL_BYTES:,}. Call again with less."
    )


def nothing_waits(tool_call_id: str, *, was_asked: bool = False) -> ErrorInfo:
    """Why an answer to the call is refused."""
    if was_asked:
        return _refused(f"the tool call {tool_call_id!r} was answered already")
    return _refused(f"no tool call {tool_call_id!r} waits for an approval")


def _refused(reason: str) -> ErrorInfo:
    return ErrorInfo(type="CommandError", message=f"{reason}; see the approvals in the status")
