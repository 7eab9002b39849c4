"""`perdure status`: what a session does right now."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from perdure.cli.connection import connect, is_running, remote_of
from perdure.cli.entry_lines import call_line, plural, short_number, tokens_of
from perdure.cli.place import Place
from perdure.cli.screen import STATE_COLOURS, Screen, one_line, out, width_of
from perdure.cli.stored import load_from, opened
from perdure.errors import PerdureError, ServerError
from perdure.protocol import Status
from perdure.remote import RemoteSession
from perdure.stores.contract import Store
from perdure.transcript import Transcript

PAUSE = 1.0
"""Seconds between two looks at a session that is watched."""

ANSWER_TIMEOUT = 10.0
"""Seconds that a worker may take to answer."""


def show_status(place: Place, *, watch: bool, as_json: bool) -> None:
    """Print how the session stands; with `watch`, again whenever it changes.

    Raises SessionNotFoundError for one that neither runs nor is stored, ServerError.
    """
    asyncio.run(_show(place, watch, as_json))


async def _show(place: Place, watch: bool, as_json: bool) -> None:
    place.workflow_id  # noqa: B018 - an ID that is none is refused before anyone is asked
    store = opened(place.where)
    client = await connect()
    screen = out()
    shown: dict[str, Any] = {}
    while True:
        is_live = await is_running(client, place)
        told = await told_of(remote_of(client, place) if is_live else None, store, place)
        if told != shown:
            if as_json:
                screen.json(told)
            else:
                print_status(screen, told, in_place=watch and screen.is_terminal)
        if not watch:
            return
        shown = told
        await asyncio.sleep(PAUSE)
        screen.check_reader()


async def told_of(remote: RemoteSession | None, store: Store, place: Place) -> dict[str, Any]:
    """What is known: from the workflow, if it runs, and from the store, if that is its own."""
    transcript: Transcript | None = None
    try:
        _, transcript = await load_from(store, place.session_id)
    except PerdureError:
        if remote is None:
            raise
    status = await answer_of(remote) if remote is not None else None
    if status is None:
        leaf_id = transcript.leaf_id if transcript else ""
        status = Status(
            session_id=place.session_id, state="closed", leaf_id=leaf_id, tip_id=leaf_id
        )
    told: dict[str, Any] = json.loads(status.to_json())
    told["entries"] = None if transcript is None else len(transcript)
    told["leaves"] = None if transcript is None else transcript.leaves()
    return told


async def answer_of(remote: RemoteSession) -> Status | None:
    """The workflow's own word; None when it has ended meanwhile. Raises ServerError when no
    worker answers in ten seconds.
    """
    from perdure.errors import SessionClosedError

    try:
        async with asyncio.timeout(ANSWER_TIMEOUT):
            return await remote.status()
    except SessionClosedError:
        return None
    except TimeoutError:
        raise ServerError(
            f"the session's workflow runs, but no worker answered within {ANSWER_TIMEOUT:g} "
            "seconds; start one with `perdure worker`"
        ) from None


def print_status(screen: Screen, told: dict[str, Any], *, in_place: bool) -> None:
    """Print how a session stands; `in_place` of what the terminal showed before."""
    if in_place:
        screen.write("\x1b[H\x1b[2J")
    for name, value, style in _rows(told):
        if screen.columns is not None and screen.columns < 40:
            screen.line(screen.styled(screen.fit(name), "dim"))
            screen.line(f"  {screen.styled(screen.fit(value, 2), style)}")
        else:
            start = f"{name:<9}"
            screen.line(
                screen.styled(start, "dim")
                + screen.styled(screen.fit(value, width_of(start)), style)
            )
    if not in_place:
        screen.flush()
        return
    screen.line(screen.styled(screen.fit("Ctrl-C ends the watch."), "dim"))
    screen.flush()


def _rows(told: dict[str, Any]) -> list[tuple[str, str, str]]:
    rows = [
        ("session", one_line(told["session_id"]), "bold"),
        ("state", told["state"], STATE_COLOURS.get(told["state"], "yellow")),
    ]
    if told["agent"]:
        rows.append(("agent", one_line(told["agent"]), "bold"))
    if told["doing"]:
        doing = told["doing"]
        turn = f", turn {doing['turn']}" if doing.get("turn") else ""
        rows.append(("doing", f"{doing['verb']} {one_line(doing['command_id'])}{turn}", "green"))
    if told["waiting"]:
        waiting = ", ".join(one_line(command["verb"]) for command in told["queue"][:5])
        rows.append(("waiting", f"{told['waiting']}: {waiting}", "yellow"))
    rows += [("approval", _approval(call), "yellow") for call in told.get("approvals") or ()]
    rows.append(("leaf", one_line(told["leaf_id"]) or "-", "bold"))
    if told["entries"] is not None:
        size = plural(told["entries"], "entry", "entries")
        rows.append(("log", f"{size}, {plural(len(told['leaves']), 'leaf', 'leaves')}", "bold"))
    if told["runs"]:
        usage = _usage(told)
        context = f", {short_number(told['context_tokens'])} in context"
        done = f"{plural(told['runs'], 'run')}, {plural(told['turns'], 'turn')}"
        rows.append(("done", done, "bold"))
        rows.append(("tokens", usage + (context if told["context_tokens"] else ""), "bold"))
    if told["last_error"]:
        error = told["last_error"]
        rows.append(("error", f"{one_line(error['type'])}: {one_line(error['message'])}", "red"))
    return rows


def _approval(call: dict[str, Any]) -> str:
    asked = call_line(call.get("tool_name", ""), call.get("arguments"))
    return f"{one_line(call.get('tool_call_id', ''))}: {asked}"


def _usage(told: dict[str, Any]) -> str:
    from perdure.usage import Usage

    usage = Usage.model_validate(told["usage"] or {})
    tokens = tokens_of(usage) or "none"
    return f"{tokens}, cost {usage.cost.total:.4f}" if usage.cost.total else tokens
