"""`perdure run`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from perdure.cli.connection import check_store, finish, sessions_of
from perdure.cli.place import Place
from perdure.cli.run_lines import RunPrinter, event_json, failure_json
from perdure.cli.screen import err, out
from perdure.errors import CommandError, PerdureError
from perdure.protocol import WhenBusy
from perdure.run import Run


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
        stream=wanted.wait and not wanted.as_json and out().is_terminal,
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
        screen.json(failure_json(run.id, error))
        raise


async def _tell_people(run: Run) -> None:
    printer = RunPrinter(run.session_id, out(), err())
    try:
        async for event in run:
            printer.show(event)
    finally:
        printer.end_line()
