"""`perdure setup`: what a namespace of Temporal's needs to know once."""

from __future__ import annotations

import asyncio

from perdure.cli.connection import connect
from perdure.cli.screen import out
from perdure.search_attributes import ATTRIBUTES, register


def set_up(*, as_json: bool) -> None:
    """Register the search attributes of sessions. Raises ServerError."""
    namespace, registered = asyncio.run(_register())
    screen = out()
    if as_json:
        screen.json(
            {
                "namespace": namespace,
                "search_attributes": dict(ATTRIBUTES),
                "registered": registered,
            }
        )
    elif registered:
        screen.line(f"registered in namespace {namespace}: {', '.join(registered)}")
    else:
        screen.line(f"nothing to do: namespace {namespace} knows {', '.join(ATTRIBUTES)}")


async def _register() -> tuple[str, list[str]]:
    client = await connect()
    return client.namespace, await register(client)
