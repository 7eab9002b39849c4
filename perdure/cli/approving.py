"""`perdure approve`: the answer of a person to a tool call that waits for one."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from perdure.cli import options
from perdure.cli.place import Place

commands = typer.Typer()


@commands.command()
@options.on_session
def approve(
    place: Place,
    tool_call_id: Annotated[
        str,
        typer.Argument(
            metavar="CALL", help="The ID of the call; `perdure status` has it.", show_default=False
        ),
    ],
    deny: Annotated[bool, typer.Option("--deny", help="Say no.")] = False,
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason", metavar="TEXT", help="Why; the model reads it.", show_default=False
        ),
    ] = None,
    arguments: Annotated[
        str | None,
        typer.Option(
            "--arguments",
            metavar="JSON",
            help="Run it with these arguments; the model is told.",
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Answer a tool call that waits for a person.

    \b
    perdure approve user-42 call-7
    perdure approve user-42 call-7 --deny --reason "Over the limit."
    perdure approve user-42 call-7 --arguments '{"cents": 500}'
    """
    import asyncio

    if deny and arguments is not None:
        raise typer.BadParameter("a call that is denied does not run; leave --arguments out")
    from perdure.cli.approval import send_approval

    asyncio.run(
        send_approval(
            place,
            tool_call_id,
            approved=not deny,
            reason=reason,
            arguments=_object(arguments),
            as_json=as_json,
        )
    )


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise typer.BadParameter("give one JSON object", param_hint="--arguments")
    return value
