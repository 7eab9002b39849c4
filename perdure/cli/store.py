"""The commands of `perdure store` and their options; what they do is in the modules that they
name.
"""

from __future__ import annotations

from typing import Annotated

import typer

store_app = typer.Typer(
    help="Look after the place where sessions are kept.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_AsJson = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]


@store_app.command()
def migrate(
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="STORE",
            help="The database, postgresql://…; otherwise PERDURE_STORE.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The schema of the tables. Otherwise the one that the URL names, or perdure.",
            show_default=False,
        ),
    ] = None,
    as_json: _AsJson = False,
) -> None:
    """Make the tables of a PostgreSQL database, or bring them to this version.

    It may be run again, and by several at the same time. Files need no migration.
    """
    from perdure.cli.store_migrate import migrate_store

    raise typer.Exit(migrate_store(url, schema=schema, as_json=as_json))


@store_app.command()
def copy(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="files:DIR or postgresql://…", show_default=False)
    ],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="files:DIR or postgresql://…", show_default=False)
    ],
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID…", help="The sessions to copy. Without any, all.", show_default=False
        ),
    ] = None,
    as_json: _AsJson = False,
) -> None:
    """Copy sessions from one store to another, and check that they are all there.

    What the target has already is not copied again, so that a copy that was interrupted goes on
    when it is started again. Sessions that cannot be copied are named, and the status is 1.
    """
    from perdure.cli.store_copy import copy_store

    raise typer.Exit(copy_store(source, target, ids or [], as_json=as_json))
