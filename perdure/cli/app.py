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

from perdure.cli import approving, keeping, reading, serving, steering, talking, watching
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
def codec_server(
    port: Annotated[
        int,
        typer.Option(metavar="PORT", help="The port to listen on; 0 for any.", min=0, max=65535),
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
            help="The place of payloads, for example files:./payloads or postgresql://…. "
            "Otherwise PERDURE_PAYLOADS.",
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
def setup(
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Register the search attributes by which the Temporal UI and `perdure ls` find sessions.

    They belong to the namespace that TEMPORAL_NAMESPACE names. Sessions run without them, too. It
    may be run again; workers use them within a minute.
    """
    from perdure.cli.setup import set_up

    set_up(as_json=as_json)


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


for group in (serving, talking, steering, approving, watching, reading, keeping):
    app.add_typer(group.commands)
