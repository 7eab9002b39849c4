"""The commands of `perdure` and their options. What a command does is in the module that it names,
which is loaded when the command runs.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated

import typer

from perdure.cli import approving, keeping, options, reading, steering, talking, watching
from perdure.cli.failures import DEBUG_VARIABLE
from perdure.cli.store import store_app

app = typer.Typer(
    name="perdure",
    help="Agent sessions that outlive their process: an append-only log, run by Temporal.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(store_app, name="store")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"perdure {installed_version('perdure')}")
        raise typer.Exit


@app.callback()
def common(
    debug: Annotated[
        bool, typer.Option("--debug", help="Add the traceback to whatever fails.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version, and end."
        ),
    ] = False,
) -> None:
    """Agent sessions that outlive their process: an append-only log, run by Temporal."""
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows another; that is no reason to fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@app.command()
def worker(
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODULE:ATTRIBUTE…",
            help="Where the agents are, for example support:agent. Without any, PERDURE_AGENTS.",
            show_default=False,
        ),
    ] = None,
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
    )
    raise typer.Exit(serve_agents(agents or [], given))


@app.command()
def codec_server(
    port: Annotated[
        int, typer.Option(metavar="PORT", help="The port to listen on; 0 for any.", min=0)
    ] = 8081,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address to listen on. Other than the machine's own loopback needs "
            "PERDURE_CODEC_TOKEN.",
        ),
    ] = "127.0.0.1",
    origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Where the Temporal UI is served, for example http://localhost:8233; may be given "
            "several times.",
            show_default=False,
        ),
    ] = None,
    without_token: Annotated[
        bool,
        typer.Option(
            "--without-token",
            help="Something else keeps strangers away, for example a container whose port is on "
            "the loopback only.",
        ),
    ] = False,
) -> None:
    """Decrypt what the Temporal UI and the Temporal CLI show, with PERDURE_KEYS or
    PERDURE_KEYS_FILE, until told to stop.

    With PERDURE_CODEC_TOKEN set, whoever asks has to send it, as `Authorization: Bearer …`.
    """
    from perdure.cli.codec_server import serve_codec

    raise typer.Exit(serve_codec(host=host, port=port, origins=origin, without_token=without_token))


@app.command()
def clean_payloads(
    payloads: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="The folder of payloads, for example files:./payloads. Otherwise "
            "PERDURE_PAYLOADS.",
            show_default=False,
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            metavar="DAYS",
            help="How much older than the oldest run of its workflow a payload is at least.",
            min=0,
        ),
    ] = 1,
    only_look: Annotated[
        bool, typer.Option("--only-look", help="Say what would be removed, and leave it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Remove large payloads that no history in Temporal refers to any more."""
    from perdure.cli.clean_payloads import clean

    raise typer.Exit(clean(payloads, margin_days=margin, only_look=only_look, as_json=as_json))


@app.command()
def demo(
    folder: Annotated[
        Path,
        typer.Option(
            "--dir",
            metavar="DIR",
            help="Where the demo keeps its log, database and journal.",
        ),
    ] = Path(".perdure/demo"),
    model: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Talk to this model, for example openai:gpt-5.6-luna; `script` talks to none. "
            "Otherwise a model of the provider whose API key is set, or the script.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave the server, its UI and a worker up until Enter or ^C."),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the outcome as JSON; the story goes to stderr."),
    ] = False,
) -> None:
    """Watch a session run, die and resume, on a Temporal server of its own; no API key needed.

    A demo that was interrupted goes on when it is started again; one that ended starts afresh.
    """
    from perdure.cli.demo import show_demo

    raise typer.Exit(show_demo(folder, model=model, keep=keep, as_json=as_json))


for group in (talking, steering, approving, watching, reading, keeping):
    app.add_typer(group.commands)
