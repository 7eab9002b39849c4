"""The commands that look after stored sessions: `verify`, `export` and `import`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from perdure.cli import options
from perdure.cli.place import Where

commands = typer.Typer()


class Format(StrEnum):
    """What a session is exported as."""

    JSONL = "jsonl"
    MD = "md"
    HTML = "html"


@commands.command()
@options.in_store
def verify(
    where: Where,
    session_ids: options.SessionIds = None,
    everything: Annotated[bool, typer.Option("--all", help="All sessions of the store.")] = False,
    repair_tail: Annotated[
        bool,
        typer.Option(
            "--repair-tail",
            help="Move a torn last line to a file beside the log, as the next append would.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Check stored sessions, and say what a reader does about whatever is wrong.

    An error is damage: the session cannot be read until the line is restored. A warning is about
    something in the log that is not used. A note is about what readers know how to handle. The exit
    status is 1 when there are errors or warnings.

    \b
    perdure verify user-42
    perdure verify user-42 --repair-tail
    perdure verify --all --json | jq -r 'select(.ok | not) | .session_id'
    """
    from perdure.cli.verify import verify_sessions

    if bool(session_ids) == everything:
        raise typer.BadParameter("name the sessions, or ask for --all")
    raise typer.Exit(
        verify_sessions(session_ids or [], where=where, repair_tail=repair_tail, as_json=as_json)
    )


@commands.command()
@options.in_store
def export(
    where: Where,
    session_id: options.SessionId,
    format: Annotated[
        Format,
        typer.Option(
            "--format",
            "-f",
            help="jsonl: the whole log, to be read elsewhere. md: the path to the leaf, as text. "
            "html: the tree, to click through.",
        ),
    ] = Format.JSONL,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to. Otherwise standard output.",
            show_default=False,
        ),
    ] = None,
    leaf: options.Leaf = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --output: print what was written as JSON.")
    ] = False,
) -> None:
    """Write a session to one file: the log, a text, or a page that needs nothing else.

    It is read from the store and needs no server.

    \b
    perdure export user-42 --format html --output user-42.html
    perdure export user-42 --format md | less
    perdure export user-42 > user-42.jsonl
    """
    from perdure.cli.export import export_session

    if as_json and output is None:
        raise typer.BadParameter("--json tells of the file that --output names")
    export_session(
        session_id, where=where, format=format.value, leaf=leaf, output=output, as_json=as_json
    )


@commands.command("import")
@options.in_store
def import_(
    where: Where,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The log: a file of JSON lines; - reads it from standard input.",
            show_default=False,
            allow_dash=True,
        ),
    ],
    session_id: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="ID",
            help="The ID of the new session. Otherwise the one that the log has.",
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Make a session of a log of Claude Code, of pi, or of an export.

    Its tree becomes the session's tree, branches and compactions included. It is written to the
    store and needs no server.

    \b
    perdure import ~/.claude/projects/shop/5f1c.jsonl --session shop-1
    """
    from perdure.cli.importing import import_log

    import_log(file, session_id=session_id, where=where, as_json=as_json)
