"""`perdure run`: what is said goes to standard output, what is done beside it to standard error."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from perdure.cli.connection import check_store, finish, sessions_of
from perdure.cli.entry_lines import call_line, plural, result_line, tokens_of
from perdure.cli.place import Place
from perdure.cli.screen import Screen, err, out, safe
from perdure.codec import encode_entry, loads_json
from perdure.errors import CommandError, PerdureError
from perdure.messages import Message
from perdure.protocol import WhenBusy
from perdure.run import Run, RunEvent


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to run, and what to print. Without a text the session continues from its leaf."""

    text: str | None
    agent: str | None = None
    run_id: str | None = None
    when_busy: WhenBusy = "queue"
    wait: bool = True
    as_json: bool = False


def run_session(place: Place, wanted: Wanted) -> None:
    """Run the session's agent and show what happens.

    Raises what the run failed with, ServerError, and CommandError when the session refuses.
    """
    watch = shlex.join(["perdure", "log", place.session_id, "--follow"])
    stop = shlex.join(["perdure", "cancel", place.session_id])
    finish(
        _run(place, wanted),
        when_interrupted=f"the run goes on; watch it with `{watch}`, stop it with `{stop}`",
    )


async def _run(place: Place, wanted: Wanted) -> None:
    sessions = await sessions_of(place)
    session = await sessions.open(place.session_id, agent=wanted.agent, instance=place.instance)
    await check_store(sessions, place)
    if wanted.agent is None and (await session.status()).agent is None:
        raise CommandError("the session has no agent yet; name the one to run with --agent")
    run = await session.run(
        *([] if wanted.text is None else [wanted.text]),
        run_id=wanted.run_id,
        when_busy=wanted.when_busy,
    )
    if not wanted.wait:
        _tell_accepted(run, wanted)
    elif wanted.as_json:
        await _tell_programs(run)
    else:
        await _tell_people(run)


def _tell_accepted(run: Run, wanted: Wanted) -> None:
    if wanted.as_json:
        out().json({"session_id": run.session_id, "run_id": run.id})
    else:
        out().line(run.id)


async def _tell_programs(run: Run) -> None:
    screen = out()
    try:
        async for event in run:
            screen.json(event_json(event))
    except PerdureError as error:
        told = {"type": type(error).__name__, "message": str(error)}
        screen.json({"type": "run_failed", "run_id": run.id, "error": told})
        raise


async def _tell_people(run: Run) -> None:
    printer = _Printer(run.session_id, out(), err())
    async for event in run:
        printer.show(event)


class _Printer:
    def __init__(self, session_id: str, answers: Screen, asides: Screen) -> None:
        self._session_id = session_id
        self._answers = answers
        self._asides = asides

    def show(self, event: RunEvent) -> None:
        """Print what is worth seeing of an event."""
        message = event.message
        if event.type == "tool_execution_start":
            self._aside(f"→ {call_line(event.tool_name, event.arguments)}", "yellow")
        elif event.type == "approval_requested":
            answer = shlex.join(["perdure", "approve", self._session_id, event.tool_call_id])
            self._aside(f"{event.tool_name} waits for a person: {answer}", "yellow")
        elif event.type == "message_end" and message is not None:
            self._show_message(message)
        elif event.type == "agent_end":
            told = [plural(event.turn, "turn"), tokens_of(event.usage)]
            self._aside(" · ".join(filter(None, told)), "dim")

    def _show_message(self, message: Message) -> None:
        if message.role == "tool_result":
            self._aside(result_line(message), "red" if message.is_error else "green")
        elif message.role == "assistant" and message.text:
            self._answers.line(safe(message.text))
            self._answers.flush()

    def _aside(self, line: str, style: str) -> None:
        self._asides.line(self._asides.styled(self._asides.fit(line), style))
        self._asides.flush()


def event_json(event: RunEvent) -> dict[str, Any]:
    """An event as `run --json` tells it: every key always there."""
    return {
        "type": event.type,
        "run_id": event.run_id,
        "turn": event.turn,
        "entries": [loads_json(encode_entry(entry)) for entry in event.entries],
        "leaf_id": event.leaf_id,
        "tool_call_id": event.tool_call_id,
        "tool_name": event.tool_name,
        "arguments": event.arguments,
        "is_error": event.is_error,
        "usage": None if event.usage is None else event.usage.to_wire(),
        "is_passing": event.is_passing,
        "approved": event.approved,
    }
