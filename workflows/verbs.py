"""The verbs, each as a signal and as an update with the same meaning.

A message is taken as its raw payload and read here, so that whatever someone types (malformed
JSON, unknown fields, a verb that there is none of) is refused: an update is answered with the
reason, a signal leaves it in `status` and on the stream. Neither can fail the workflow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from perdure import names
from perdure.protocol import (
    AppendCommand,
    ApproveCommand,
    BranchCommand,
    CancelCommand,
    CloseCommand,
    CompactCommand,
    ErrorInfo,
    ForkCommand,
    Outcome,
    QueuedCommand,
    RunCommand,
)
from perdure.wire import BAD_MESSAGE, Wire
from perdure.workflows.tracing import note_trace

VERBS: dict[str, type[QueuedCommand]] = {
    names.RUN: RunCommand,
    names.APPEND: AppendCommand,
    names.BRANCH: BranchCommand,
    names.FORK: ForkCommand,
    names.COMPACT: CompactCommand,
    names.CANCEL: CancelCommand,
    names.APPROVE: ApproveCommand,
    names.CLOSE: CloseCommand,
}

_NOTHING = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b"null"))


class Receiver(Protocol):
    """Whoever does the commands."""

    def refusal(self, command: QueuedCommand) -> ErrorInfo | None:
        """Why the command cannot be taken, if it cannot."""

    def take(self, command: QueuedCommand) -> None:
        """Do the command, now or in its turn."""

    async def outcome_of(self, command_id: str, verb: str) -> Outcome:
        """What became of it; raises ApplicationError when it failed."""

    def note_failure(self, verb: str, error: ErrorInfo) -> None:
        """A signal was refused."""


def receive_verbs(receiver: Receiver) -> None:
    """Register every verb. To be called while the workflow is constructed.

    One handler takes all signals: a handler of one name is only called as declared when there is
    one input, and with two the SDK would fail the workflow task, again and again.
    """
    workflow.set_dynamic_signal_handler(_signal_handler(receiver))
    for verb, kind in VERBS.items():
        workflow.set_update_handler(
            verb, _update_handler(receiver, kind), validator=_validator(receiver, kind)
        )


def refused(error: ErrorInfo, *details: Wire) -> ApplicationError:
    """The failure that tells a client "no"; any other would stall the workflow."""
    return ApplicationError(error.message, *details, type=error.type, non_retryable=True)


def _signal_handler(receiver: Receiver) -> Callable[[str, Sequence[RawValue]], None]:
    def on_signal(verb: str, messages: Sequence[RawValue]) -> None:
        try:
            command = _signalled(verb, messages)
        except ApplicationError as error:
            receiver.note_failure(verb, ErrorInfo(type=error.type or "", message=error.message))
            return
        command.command_id = command.command_id or workflow.uuid4().hex
        refusal = receiver.refusal(command)
        if refusal is not None:
            receiver.note_failure(verb, refusal)
        else:
            note_trace(command)
            receiver.take(command)

    return on_signal


def _signalled(verb: str, messages: Sequence[RawValue]) -> QueuedCommand:
    if verb not in VERBS:
        raise _bad(f"no verb {verb[:80]!r}; the verbs are: {', '.join(VERBS)}")
    if len(messages) > 1:
        raise _bad(f"{len(messages)} inputs for {verb}; send one JSON value")
    return _read(VERBS[verb], messages[0] if messages else _NOTHING)


def _bad(reason: str) -> ApplicationError:
    return ApplicationError(reason, type=BAD_MESSAGE, non_retryable=True)


def _update_handler(
    receiver: Receiver, kind: type[QueuedCommand]
) -> Callable[[RawValue], Awaitable[Outcome]]:
    async def on_update(message: RawValue = _NOTHING) -> Outcome:
        command = _identified(_read(kind, message))
        note_trace(command)
        receiver.take(command)
        return await receiver.outcome_of(command.command_id, command.verb)

    return on_update


def _validator(receiver: Receiver, kind: type[QueuedCommand]) -> Callable[[RawValue], None]:
    def validate(message: RawValue = _NOTHING) -> None:
        refusal = receiver.refusal(_identified(_read(kind, message)))
        if refusal is not None:
            raise refused(refusal)

    return validate


def _identified(command: QueuedCommand) -> QueuedCommand:
    """A command without an ID goes by that of its update."""
    if not command.command_id:
        info = workflow.current_update_info()
        command.command_id = info.id if info is not None else ""
    return command


def _read(kind: type[QueuedCommand], message: RawValue) -> QueuedCommand:
    return kind.from_payload(message.payload)
