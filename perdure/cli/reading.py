"""The commands that read a session from its store: `log` and `tree`."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.cli import options
from perdure.cli.place import Where

commands = typer.Typer()


@commands.command()
@options.in_store
def log(
    where: Where,
    session_id: options.SessionId,
    leaf: options.Leaf = None,
    whole: Annotated[
        bool,
        typer.Option("--all", help="The whole log as it was appended, branches and all."),
    ] = False,
    last: Annotated[
        int | None,
        typer.Option(
            "--last", "-n", metavar="N", min=0, help="Only the last N entries.", show_default=False
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is appended, until Ctrl-C.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten results of tools.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the lines of the log, byte for byte.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Read a conversation: who said what, when, for how many tokens.

    It is read from the store and needs no server. Shown is the path to the last entry.

    \b
    perdure log user-42
    perdure log user-42 --last 5 --follow
    perdure log user-42 --all --json | jq -r .text
    """
    from perdure.cli.log import Choice, show_log

    if raw and as_json:
        raise typer.BadParameter("one of --raw and --json, not both")
    if whole and leaf is not None:
        raise typer.BadParameter("one of --all and --leaf, not both")
    choice = Choice(leaf, whole, last, follow, full, raw, as_json)
    show_log(session_id, where=where, choice=choice)


@commands.command()
@options.in_store
def tree(
    where: Where,
    session_id: options.SessionId,
    leaf: options.Leaf = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Fold nothing, however large the tree is.")
    ] = False,
    forks: Annotated[
        bool | None,
        typer.Option(
            "--forks/--no-forks",
            help="Look for the sessions that were forked from this one. Done unasked in a store of "
            "up to 2,000 sessions.",
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Draw the branches of a session.

    It is read from the store and needs no server. The path to the leaf (▶) runs down the left edge;
    ○ was abandoned, ◆ is a compaction, ⑂ a fork. Entries are named by the beginning of their ID,
    which is enough for `branch` and `--leaf`.

    \b
    perdure tree user-42
    perdure tree user-42 --all | less
    """
    from perdure.cli.tree import show_tree

    show_tree(session_id, where=where, leaf=leaf, show_all=show_all, forks=forks, as_json=as_json)
