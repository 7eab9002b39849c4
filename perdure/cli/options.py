"""Arguments and options that several commands have, and what a shell completes them with.

Each is said once. `on_session` and `in_store` give a command those that say which session is meant,
and in which store.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from perdure.cli.place import Place, Where

Command = Callable[..., None]


def where_of(context: typer.Context) -> Where:
    """The store that is on a command line which is being typed."""
    return Where(context.params.get("store"), context.params.get("tenant"))


def complete_session(context: typer.Context, incomplete: str) -> list[str]:
    """The IDs of stored sessions that start so, for the completion of a shell."""
    from perdure.cli.stored import session_ids

    try:
        return session_ids(where_of(context), prefix=incomplete)[:500]
    except Exception:  # noqa: BLE001 - a shell that completes has no use for an error
        return []


def complete_entry(context: typer.Context, incomplete: str) -> list[str]:
    """The IDs of the session's entries that start so, the latest first."""
    from perdure.cli.stored import load

    try:
        # Behind an option without its value nothing is parsed.
        session_id = context.params.get("session_id") or context.args[0]
        _, transcript = load(where_of(context), session_id)
    except Exception:  # noqa: BLE001 - a shell that completes has no use for an error
        return []
    latest_first = reversed(transcript.entries)
    return [entry.id for entry in latest_first if entry.id.startswith(incomplete)][:500]


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

Leaf = Annotated[
    str | None,
    typer.Option(
        "--leaf",
        metavar="ENTRY",
        help="The entry that the path ends with, or the beginning of its ID. Otherwise the last "
        "one appended.",
        show_default=False,
        autocompletion=complete_entry,
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

Tenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        metavar="NAME",
        help="Whose sessions they are, where a store or a namespace is shared. Otherwise "
        "PERDURE_TENANT; nobody's in particular when that is not set either.",
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

Payloads = Annotated[
    str | None,
    typer.Option(
        "--payloads",
        metavar="PLACE",
        help="Where large payloads are kept, for example files:./payloads or postgresql://…. "
        "Otherwise PERDURE_PAYLOADS; in Temporal, where they have to be small, when that is not "
        "set.",
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


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


_WHERE = (_parameter("store", Store), _parameter("tenant", Tenant))
_PLACE = (*_WHERE, _parameter("task_queue", TaskQueue), _parameter("instance", Instance, ""))


def on_session(command: Command) -> Command:
    """Give a command the argument ID, and the options that say where that session is; its first
    parameter is the `Place` that they make.
    """

    def run(session_id: str, store: str | None, tenant: str | None, **given: Any) -> None:
        instance, task_queue = given.pop("instance"), given.pop("task_queue")
        command(Place(session_id, Where(store, tenant), instance, task_queue), **given)

    session_id = _parameter("session_id", SessionId, inspect.Parameter.empty)
    return _declared(run, command, (session_id,), _PLACE)


def in_store(command: Command) -> Command:
    """Give a command the options that say where sessions are kept; its first parameter is the
    `Where` that they make.
    """

    def run(store: str | None, tenant: str | None, **given: Any) -> None:
        command(Where(store, tenant), **given)

    return _declared(run, command, (), _WHERE)


def _declared(
    run: Command,
    command: Command,
    first: tuple[inspect.Parameter, ...],
    last: tuple[inspect.Parameter, ...],
) -> Command:
    """What runs, with the name and the help of the command, and the parameters of both."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    has_json = bool(own) and own[-1].name == "as_json"  # the last one that the help shows
    parameters = [*first, *own[: len(own) - has_json], *last, *own[len(own) - has_json :]]
    declared: Any = run
    declared.__name__, declared.__doc__ = command.__name__, command.__doc__
    declared.__signature__ = inspect.Signature(parameters)
    declared.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def given_text(text: str | None) -> str | None:
    """A text of the command line; - stands for standard input. What is no UTF-8 is U+FFFD."""
    if text is None:
        return None
    if text != "-":
        return text.encode(errors="surrogateescape").decode(errors="replace")
    if sys.stdin is None:
        raise typer.BadParameter("standard input is closed; there is nothing to read from it")
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin.read().removesuffix("\n")
