"""Arguments and options that several commands have, and what a shell completes them with."""

from __future__ import annotations

import os
from typing import Annotated

import typer

STORE_VARIABLE = "PERDURE_STORE"


def complete_session(context: typer.Context, incomplete: str) -> list[str]:
    """The IDs of stored sessions that start so, for the completion of a shell."""
    from perdure.cli.stored import session_ids

    try:
        return session_ids(context.params.get("store"), prefix=incomplete)[:500]
    except Exception:  # noqa: BLE001 - a shell that completes has no use for an error
        return []


SessionId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The ID of the session.",
        show_default=False,
        autocompletion=complete_session,
    ),
]

SessionIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID…",
        help="The IDs of the sessions.",
        show_default=False,
        autocompletion=complete_session,
    ),
]

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help="Where sessions are kept, for example files:./sessions. Otherwise PERDURE_STORE; "
        "files:./sessions when that is not set either.",
        show_default=False,
    ),
]

TaskQueue = Annotated[
    str | None,
    typer.Option(
        "--task-queue",
        metavar="NAME",
        help="The task queue of the worker. Otherwise PERDURE_TASK_QUEUE; perdure when that is "
        "not set either.",
        show_default=False,
    ),
]

Instance = Annotated[
    str,
    typer.Option(
        "--instance",
        metavar="NAME",
        help="A second live instance of the session, by its name.",
        show_default=False,
    ),
]

Agent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="The agent that serves the session from now on. Otherwise PERDURE_AGENT, or the one "
        "that it has.",
        envvar="PERDURE_AGENT",
        show_envvar=False,
        show_default=False,
    ),
]

Otel = Annotated[
    bool | None,
    typer.Option(
        "--otel",
        help="Send traces, metrics and logs to OpenTelemetry, as its own variables say "
        "(OTEL_EXPORTER_OTLP_ENDPOINT). Otherwise PERDURE_OTEL.",
        show_default=False,
    ),
]

Json = Annotated[
    bool, typer.Option("--json", help="Print JSON, one object a line.", show_default=False)
]


def store_spec(given: str | None) -> str:
    """The store that a command line names, or the environment."""
    from perdure.stores import DEFAULT_STORE

    return given or os.environ.get(STORE_VARIABLE) or DEFAULT_STORE
