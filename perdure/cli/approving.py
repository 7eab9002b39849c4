"""`perdure approve`: the answer of a person to a tool call that waits for one."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.cli import options

commands = typer.Typer()


@commands.command()
def approve(
    session_id: options.SessionId,
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
    store: options.Store = None,
    task_queue: options.TaskQueue = None,
    instance: options.Instance = "",
    as_json: options.Json = False,
) -> None:
    """Answer a tool call that waits for a person.

    \b
    perdure approve user-42 call-7
    perdure approve user-42 call-7 --deny --reason "Over the limit."
    """
    import asyncio

    from perdure.cli.approval import send_approval
    from perdure.cli.connection import Place

    place = Place(session_id, instance, store, task_queue)
    asyncio.run(
        send_approval(place, tool_call_id, approved=not deny, reason=reason, as_json=as_json)
    )
