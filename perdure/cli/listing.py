"""`perdure ls`: the sessions that run, and those that are stored."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from perdure.cli.place import Where
from perdure.cli.screen import STATE_COLOURS, Screen, cut, err, one_line, out, width_of
from perdure.cli.stored import list_sessions, opened
from perdure.errors import PerdureError, ServerError
from perdure.stores.contract import Store

STATES = ("running", "waiting", "idle", "opening", "unknown", "stored")

_LEAST_ID = 10
"""Characters of an ID that are shown before other columns are."""

_COLUMNS = ("session", "state", "agent", "runs", "turns", "tokens", "started")


@dataclass(frozen=True, slots=True)
class Filters:
    """Which sessions are listed. `state` is one of those that are shown, `limit` how many are.

    `ask`: each is asked, also where the server tells how it stands.
    """

    prefix: str = ""
    state: str = ""
    agent: str = ""
    limit: int = 50
    only_stored: bool = False
    only_live: bool = False
    ask: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A session as it is listed; what is not known is None or empty.

    `state` is that of its workflow: opening, idle, running, waiting (for a person); `unknown` when
    no worker tells; `stored` when there is none.
    """

    session_id: str
    instance: str = ""
    state: str = "stored"
    agent: str | None = None
    runs: int | None = None
    turns: int | None = None
    tokens: int | None = None
    started_at: datetime | None = None
    error: str | None = None
    workflow_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """The session as `ls --json` tells it."""
        return {
            "session_id": self.session_id,
            "instance": self.instance,
            "state": self.state,
            "agent": self.agent,
            "runs": self.runs,
            "turns": self.turns,
            "tokens": self.tokens,
            "started_at": None if self.started_at is None else self.started_at.isoformat(),
            "error": self.error,
        }


def show_sessions(where: Where, filters: Filters, *, as_json: bool) -> None:
    """Print the sessions. Raises ServerError, unless only stored ones are asked for; StoreError."""
    found, more = asyncio.run(_find(where, filters))
    screen = out()
    if as_json:
        for listed in found:
            screen.json(listed.to_json())
    else:
        _print(screen, found)
    if more:
        told = err()
        told.line(
            told.styled(f"perdure: there are more; --limit {2 * filters.limit} shows them", "dim")
        )


async def _find(where: Where, filters: Filters) -> tuple[list[Listed], bool]:
    live: list[Listed] = []
    if not filters.only_stored:
        from perdure.cli.live_sessions import live_sessions

        try:
            live = await live_sessions(where, filters)
        except ServerError as error:
            raise ServerError(f"{error}. `perdure ls --stored` needs none") from None
    found = [listed for listed in live if _passes(listed, filters)]
    if not filters.only_live and len(found) <= filters.limit:
        running = {listed.session_id for listed in live}
        stored = await _stored(opened(where), filters)
        found += [
            listed
            for session_id in stored
            if session_id not in running and _passes(listed := Listed(session_id), filters)
        ]
    return found[: filters.limit], len(found) > filters.limit


def _passes(listed: Listed, filters: Filters) -> bool:
    return (not filters.state or listed.state == filters.state) and (
        not filters.agent or listed.agent == filters.agent
    )


async def _stored(store: Store, filters: Filters) -> list[str]:
    try:
        return await list_sessions(store, prefix=filters.prefix)
    except PerdureError:
        if filters.only_stored:
            raise
        return []  # a store of one's own need not be able to


def _print(screen: Screen, found: list[Listed]) -> None:
    from perdure.cli.entry_lines import short_number

    if not found:
        screen.line(screen.styled(screen.fit("no sessions"), "dim"))
        return
    table = [
        [
            one_line(listed.session_id)
            + (f" @{one_line(listed.instance)}" if listed.instance else ""),
            listed.state + (" !" if listed.error else ""),
            one_line(listed.agent or ""),
            "" if listed.runs is None else str(listed.runs),
            "" if listed.turns is None else str(listed.turns),
            "" if listed.tokens is None else short_number(listed.tokens),
            "" if listed.started_at is None else f"{listed.started_at.astimezone():%m-%d %H:%M}",
        ]
        for listed in found
    ]
    known = [place for place in range(len(_COLUMNS)) if any(row[place] for row in table)]
    header, *table = [[row[place] for place in known] for row in (_COLUMNS, *table)]
    columns = screen.columns
    widths = [max(map(width_of, cells)) for cells in zip(header, *table, strict=True)]
    shown = _fitting(widths, columns)
    if columns is not None:
        others = sum(widths[column] + 2 for column in shown[1:])
        widths[0] = max(min(widths[0], columns - others), 1)
    screen.line(screen.styled(_row(header, widths, shown), "dim"))
    for cells in table:
        colour = STATE_COLOURS.get(cells[1].split()[0], "dim")
        row = _row(cells, widths, shown)
        screen.line(screen.styled(row, "red" if cells[1].endswith("!") else colour))


def _fitting(widths: list[int], columns: int | None) -> list[int]:
    """The columns of the table that there is room for beside the beginning of an ID."""
    shown = list(range(len(widths)))
    while columns is not None and len(shown) > 1:
        least = _LEAST_ID if len(shown) > 2 else 1
        if min(widths[0], least) + sum(widths[column] + 2 for column in shown[1:]) <= columns:
            break
        shown.pop()
    return shown


def _row(cells: Any, widths: list[int], shown: list[int]) -> str:
    padded = []
    for column in shown:
        text = cut(cells[column], widths[column])
        padded.append(text + " " * (widths[column] - width_of(text)))
    return "  ".join(padded).rstrip()
