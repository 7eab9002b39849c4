"""The commands that serve agents: `worker` and `dev`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perdure.cli import options
from perdure.cli.place import Where

commands = typer.Typer()

Agents = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODULE:ATTRIBUTE…",
        help="Where the agents are, for example support:agent. Without any, PERDURE_AGENTS.",
        show_default=False,
    ),
]


@commands.command()
@options.in_store
def dev(
    where: Where,
    agents: Agents = None,
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", help="Where Temporal answers.", min=1, max=65535),
    ] = 7233,
    ui_port: Annotated[
        int,
        typer.Option("--ui-port", metavar="PORT", help="Where its UI is served.", min=1, max=65535),
    ] = 8233,
    database: Annotated[
        Path | None,
        typer.Option(
            "--db",
            metavar="FILE",
            help="Where Temporal remembers its workflows. Otherwise it forgets them at the end; "
            "the sessions are in the store, and are resumed.",
            show_default=False,
        ),
    ] = None,
    watch: Annotated[
        list[Path] | None,
        typer.Option(
            "--watch",
            metavar="PATH",
            help="Another folder of Python sources to watch, beside this one and that of the "
            "agents. May be repeated.",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            metavar="SECONDS",
            help="How long running steps may take when the worker begins anew.",
            min=0,
        ),
    ] = 2.0,
    task_queue: options.TaskQueue = None,
) -> None:
    """Develop agents: a Temporal server with its UI, and a worker that begins anew whenever a
    source changes. One command; Ctrl-C ends it.

    Sessions outlive it all: a run that a change interrupts goes on with the new sources. A source
    that cannot be imported is shown, and served again when it is mended.

    \b
    perdure dev support:agent
    perdure dev support:agent --db .perdure/temporal.db
    perdure chat demo --agent support          # in another terminal
    """
    from perdure.cli.dev import Development, develop
    from perdure.cli.place import Place

    given = Development(
        agents or [],
        where,
        Place("", where, task_queue=task_queue).task_queue_name,
        port,
        ui_port,
        database=database,
        grace=grace,
        watched=watch or [],
    )
    raise typer.Exit(develop(given))


@commands.command()
def worker(
    agents: Agents = None,
    store: options.Store = None,
    task_queue: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The task queue to poll. Otherwise PERDURE_TASK_QUEUE; perdure when that is not "
            "set either.",
            show_default=False,
        ),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Serve the sessions of this tenant only. Otherwise PERDURE_TENANT.",
            show_default=False,
        ),
    ] = None,
    payloads: options.Payloads = None,
    ui_text: Annotated[
        bool | None,
        typer.Option(
            "--ui-text/--no-ui-text",
            help="Whether the Temporal UI shows what is said in sessions, beside what they do. "
            "Otherwise as PERDURE_UI_TEXT says, on or off; on when that is not set.",
            show_default=False,
        ),
    ] = None,
    deployment: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The deployment that the worker is a version of. Otherwise "
            "TEMPORAL_DEPLOYMENT_NAME.",
            show_default=False,
        ),
    ] = None,
    build_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Which version of the deployment it is. Otherwise TEMPORAL_WORKER_BUILD_ID.",
            show_default=False,
        ),
    ] = None,
    versioning: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="When sessions move to a new version: auto-upgrade (at the next step) or pinned "
            "(when their workflow continues as new). Otherwise PERDURE_VERSIONING; auto-upgrade.",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long running steps may take when the worker is told to stop. Otherwise "
            "PERDURE_GRACE; 30.",
            show_default=False,
        ),
    ] = None,
    otel: options.Otel = None,
) -> None:
    """Serve agents until told to stop.

    Where Temporal is comes from the SDK's environment configuration (TEMPORAL_ADDRESS,
    TEMPORAL_NAMESPACE, a profile, TLS, an API key). PERDURE_KEYS or PERDURE_KEYS_FILE turns on
    encryption. SIGTERM and Ctrl-C let running steps finish, for up to half a minute; a second one
    does not.
    """
    from perdure.cli.worker import Serving, serve_agents

    given = Serving(
        store=store,
        task_queue=task_queue,
        tenant=tenant,
        payloads=payloads,
        deployment=deployment,
        build_id=build_id,
        versioning=versioning,
        grace=grace,
        otel=otel,
        ui_text=ui_text,
    )
    raise typer.Exit(serve_agents(agents or [], given))
