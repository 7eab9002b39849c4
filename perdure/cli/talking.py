"""The commands that talk to a session: `run` and `chat`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from perdure.cli import options
from perdure.cli.place import Place

commands = typer.Typer()


class Busy(StrEnum):
    """What a run does when the session is busy."""

    QUEUE = "queue"
    REJECT = "reject"
    STEER = "steer"


@commands.command()
@options.on_session
def run(
    place: Place,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="[TEXT]",
            help="What to say; - reads it from standard input. Without it the session continues "
            "from its leaf.",
            show_default=False,
        ),
    ] = None,
    agent: options.Agent = None,
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Wait for the end, or print the run's ID and leave."),
    ] = True,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id",
            metavar="ID",
            help="An ID of your own for the run: sent twice, it runs once.",
            show_default=False,
        ),
    ] = None,
    when_busy: Annotated[
        Busy,
        typer.Option(
            help="While the session is busy, wait for a turn, be refused, or join the run in "
            "progress.",
        ),
    ] = Busy.QUEUE,
    otel: options.Otel = None,
    as_json: options.Json = False,
) -> None:
    """Say something to a session, and see what its agent does.

    The session is created when it is not there. The answer goes to standard output; tools and
    tokens go to standard error. Ctrl-C leaves, and the run goes on.

    \b
    perdure run user-42 "Where is order 7?" --agent support
    cat report.txt | perdure run user-42 -
    perdure run user-42 "Look again." --json | jq .type
    """
    from perdure.cli.run import Wanted, run_session

    said = options.given_text(text)
    if said is not None and not said.strip():
        raise typer.BadParameter(
            "the text is empty: say something, or leave TEXT out to continue from the leaf"
        )
    wanted = Wanted(said, agent, run_id, when_busy.value, wait, as_json)
    run_session(replace(place, otel=otel), wanted)


@commands.command()
@options.on_session
def chat(
    place: Place,
    agent: options.Agent = None,
    otel: options.Otel = None,
    as_json: options.Json = False,
) -> None:
    """Talk to a session: type, and see what its agent says and does.

    The session is created when it is not there; a run that is going on is joined. A tool call that
    waits for a person is asked about in place. Lines that begin with a slash are commands, /help
    lists them. Ctrl-C cancels what the agent does and keeps the session, Ctrl-D leaves. From a
    pipe, each line is a message; the answers go to standard output.

    \b
    perdure chat user-42 --agent support
    perdure chat user-42
    perdure chat user-42 < questions.txt
    """
    from perdure.cli.chat import chat as converse

    raise typer.Exit(converse(replace(place, otel=otel), agent=agent, as_json=as_json))
