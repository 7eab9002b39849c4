"""What the Temporal UI shows of a session as it stands: a page of Markdown.

It is written when somebody asks, and only then: the SDK keeps a text that has to be set beforehand,
in every workflow task, so its answer is completed here instead. None of it is in history.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from temporalio import workflow

from perdure import names
from perdure.codec import dumps_json
from perdure.protocol import PendingApproval, SessionState, Status
from perdure.protocol.said import call_line, one_line
from perdure.usage import Usage
from perdure.workflows.summaries import short_number

SHOWN_CALLS = 5
"""How many of the calls that wait are shown. The Temporal UI has its server render this page, and
sends it as a part of a URL; what stands in between may take few thousand characters of that."""

_WAITING = "waiting for a person"
_CALL = 300
_ERROR = 500

_HELP = {
    names.RUN: 'Take a turn. Input: "the question"',
    names.APPEND: 'Store a message without a run. Input: "the message"',
    names.BRANCH: 'Move the leaf to an entry. Input: its ID, "9f2c…"',
    names.FORK: 'Copy the path into another session. Input: its ID, "user-42-b"',
    names.COMPACT: "Have the conversation summarized. Input: 2, the turns to keep, or none",
    names.CANCEL: "Stop the run in progress.",
    names.APPROVE: 'Let a call run that waits. Input: its ID; or {"tool_call_id": "…", '
    '"approved": false, "reason": "…"}',
    names.CLOSE: "End the workflow; the store keeps the session.",
}


def tell_details(compose: Callable[[], str]) -> None:
    """Answer whoever asks what this workflow is with what `compose` writes, and with the verbs
    that it takes as signals. To be called while the workflow is constructed.
    """
    ask: Any = workflow.get_query_handler(names.METADATA)

    def metadata() -> Any:
        told = ask()
        told.current_details = compose()
        # One handler of no name takes all signals, so they are named here.
        signals = told.definition.signal_definitions
        del signals[:]
        for verb, description in _HELP.items():
            signals.add(name=verb, description=description)
        for update in told.definition.update_definitions:
            update.description = _HELP.get(update.name, update.description)
        return told

    workflow.set_query_handler(names.METADATA, metadata)


def details(status: Status, state: SessionState) -> str:
    """How the session stands, as Markdown. With `hides_text` nothing that was said is in it."""
    text = "\n\n".join(_parts(status, state))
    return text.encode("utf-8", "replace").decode()


def _parts(status: Status, state: SessionState) -> Iterator[str]:
    # The static summary is lost at the first continue-as-new: the SDK cannot give it again.
    name = _code(state.session_id) + (f" @ {_code(state.instance)}" if state.instance else "")
    yield f"**{_headline(status)}** · session {name}"
    yield " · ".join(_counts(status))
    if status.approvals:
        yield f"### {status.awaiting} {'call waits' if status.awaiting == 1 else 'calls wait'}"
        for approval in status.approvals[:SHOWN_CALLS]:
            yield _approval(approval, state)
    if status.last_error is not None:
        yield "### Last error"
        told = "" if state.hides_text else f": {_plain(status.last_error.message, _ERROR)}"
        yield f"{_plain(status.last_error.type)}{told}"
    if state.said:
        yield "### Last messages"
        yield "\n".join(f"- **{_plain(said.role)}** {_plain(said.text)}" for said in state.said)
    yield "### Place"
    yield "\n".join(f"- {line}" for line in _place(status, state))


def _headline(status: Status) -> str:
    doing = status.doing
    what = status.state if not status.approvals else _WAITING
    turn = f", turn {doing.turn}" if doing is not None and doing.turn else ""
    if doing is not None and doing.verb != names.RUN:
        turn = f", {doing.verb}"
    queue = f", {status.waiting} in the queue" if status.waiting else ""
    return f"{what}{turn}{queue}"


def _counts(status: Status) -> Iterator[str]:
    yield f"agent {_code(status.agent)}" if status.agent else "no agent"
    yield f"{_counted(status.turns, 'turn')} in {_counted(status.runs, 'run')}"
    usage = status.usage
    if usage != Usage():
        read = usage.input + usage.cache_read + usage.cache_write
        yield f"{short_number(read)} tokens in, {short_number(usage.output)} out"
    if usage.cost.total:
        yield f"cost {usage.cost.total:.4f}"
    if status.context_tokens:
        yield f"{short_number(status.context_tokens)} tokens of context"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _approval(approval: PendingApproval, state: SessionState) -> str:
    call = f"{approval.tool_name}(…)"
    if not state.hides_text:
        call = call_line(approval.tool_name, approval.arguments, _CALL, _CALL // 2)
    command = f"perdure approve {shlex.quote(state.session_id)}"
    if state.instance:
        command += f" --instance {shlex.quote(state.instance)}"
    command += f" {shlex.quote(approval.tool_call_id)}"
    signal = dumps_json(approval.tool_call_id).decode("utf-8", "replace")
    return "\n".join(
        [
            _block(call),
            "",
            f"since {_plain(approval.since[:16].replace('T', ' '))} UTC · yes: {_code(command)}"
            f" · no: {_code('… --deny')} · from here: signal `approve` with {_code(signal)}",
        ]
    )


def _place(status: Status, state: SessionState) -> Iterator[str]:
    if state.parent_id:
        yield f"child of {_code(state.parent_id)}"
    yield f"leaf {_code(status.leaf_id)}" if status.leaf_id else "no entry yet"
    if status.tip_id != status.leaf_id:
        yield f"last appended {_code(status.tip_id)}, on another branch"
    if state.forks:
        yield "forks " + ", ".join(map(_code, state.forks))
    asked = [call.call.child_id for call in state.active.calls] if state.active else []
    if any(asked):
        yield "sub-agents at work in " + ", ".join(_code(child) for child in asked if child)


_MARKS = re.compile(r"([\\`*_{}\[\]()#+.!|<>~&$:-])")


def _plain(text: str, limit: int = 1_000) -> str:
    """Text that is shown as it is, whatever it would mean as Markdown: no link, no image, no
    HTML of whoever said it.
    """
    return _MARKS.sub(r"\\\1", one_line(text, limit))


def _code(text: str) -> str:
    """Text in a line, as code."""
    text = one_line(text, 1_000)
    ticks = _fence(text, 1)
    space = " " if "`" in text else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _block(text: str) -> str:
    ticks = _fence(text, 3)
    return f"{ticks}\n{one_line(text, _CALL)}\n{ticks}"


def _fence(text: str, shortest: int) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(shortest, longest + 1)
