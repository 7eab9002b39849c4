"""The commands that show what sessions do: `status` and `ls`."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.cli import options
from perdure.cli.place import Place, Where

commands = typer.Typer()


@commands.command()
@options.on_session
def status(
    place: Place,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again whenever it changes, until Ctrl-C.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Tell what a session does right now, what waits, and what it has used so far.

    \b
    perdure status user-42
    perdure status user-42 --watch
    perdure status user-42 --json | jq -r .state
    """
    from perdure.cli.status import show_status

    show_status(place, watch=watch, as_json=as_json)


@commands.command("ls")
@options.in_store
def list_sessions(
    where: Where,
    prefix: Annotated[
        str,
        typer.Argument(
            metavar="[PREFIX]",
            help="Only sessions whose IDs begin so.",
            show_default=False,
            autocompletion=options.complete_session,
        ),
    ] = "",
    state: Annotated[
        str,
        typer.Option(
            "--state",
            metavar="STATE",
            help="Only those that are: running, waiting (for a person), idle, opening, unknown (no "
            "worker tells), stored (no workflow runs).",
            show_default=False,
        ),
    ] = "",
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="Only running ones that this agent serves.",
            show_default=False,
        ),
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many.")
    ] = 50,
    only_live: Annotated[
        bool, typer.Option("--live", help="Only those with a workflow that runs.")
    ] = False,
    only_stored: Annotated[
        bool, typer.Option("--stored", help="Only what the store has; that needs no server.")
    ] = False,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="Ask each one, also where the server tells: for runs, tokens, errors."
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """List sessions: those that run, from Temporal, then all others in the store.

    After `perdure setup` the server tells how they stand. Others are asked, each by itself, and a
    `!` behind the state is then: what it did last failed; `perdure status` has the error.

    \b
    perdure ls
    perdure ls user- --state waiting
    perdure ls --stored --json | jq -r .session_id
    """
    from perdure.cli.listing import STATES, Filters, show_sessions

    if only_live and only_stored:
        raise typer.BadParameter("one of --live and --stored, not both")
    if state and state not in STATES:
        raise typer.BadParameter(f"{state!r} is no state; they are {', '.join(STATES)}")
    filters = Filters(prefix, state, agent, limit, only_stored, only_live, ask)
    show_sessions(where, filters, as_json=as_json)
