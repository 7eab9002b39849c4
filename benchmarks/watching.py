"""What it costs in history to watch a run, and to have its answer streamed.

Each turn is a plain one. A watcher follows the events of the run from its beginning to its end; a
streamed answer comes in 40 pieces over a second. The yardstick is the same turn unwatched.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress

from benchmarks.conversation import ANSWER, QUESTION, said
from benchmarks.histories import HistoryTotal, history_total
from benchmarks.report import Figure, Scale, run_benchmark
from benchmarks.serving import serving
from perdure import Agent, Message, Session, Sessions
from perdure.models import Delta, ModelRequest, OnDelta

PIECES = 40
SECONDS = 1.0

Turn = Callable[[Session], Awaitable[None]]


class Speaking:
    """A model that says its answer in pieces, to whoever asked for a stream."""

    name = "speaking"

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        """See `LanguageModel`."""
        if on_delta is not None:
            size = len(ANSWER) // PIECES
            for start in range(0, len(ANSWER), size):
                on_delta(Delta("text", ANSWER[start : start + size], 0))
                await asyncio.sleep(SECONDS / PIECES)
        return said(ANSWER)


async def measure(scale: Scale) -> list[Figure]:
    """Sessions whose turns are watched in different ways."""
    turns = scale.pick(8, 40)
    async with serving(Agent("speaker", model=Speaking())) as sessions:
        alone = await _spent(sessions, "alone", _unwatched, turns)
        watched = await _spent(sessions, "watched", _watched, turns)
        by_two = await _spent(sessions, "by-two", _watched_by_two, turns)
        streamed = await _spent(sessions, "streamed", _streamed, scale.pick(4, 15))
        followed = await _spent(sessions, "followed", _unwatched, turns, follows=True)
    return [
        Figure("plain turn, watched: events", watched[0], alone[0]),
        Figure("plain turn, watched: history", watched[1], alone[1]),
        Figure("plain turn, watched by two: events", by_two[0], alone[0]),
        Figure("plain turn, streamed: events", streamed[0], alone[0]),
        Figure("plain turn, streamed: history", streamed[1], alone[1]),
        Figure("plain turn, a watcher of the session: events", followed[0], alone[0]),
    ]


async def _spent(
    sessions: Sessions, name: str, turn: Turn, turns: int, *, follows: bool = False
) -> tuple[float, float]:
    """Events and bytes of history for a turn."""
    session = await sessions.open(name, agent="speaker")
    await turn(session)
    follower = asyncio.create_task(_exhaust(session.lifecycle())) if follows else None
    before = await history_total(sessions.client, session)
    for _ in range(turns):
        await turn(session)
    spent: HistoryTotal = (await history_total(sessions.client, session)).since(before)
    if follower is not None:
        follower.cancel()
        with suppress(asyncio.CancelledError):
            await follower
    return spent.events / turns, spent.size_bytes / turns


async def _unwatched(session: Session) -> None:
    await (await session.run(QUESTION))


async def _watched(session: Session) -> None:
    await _exhaust(await session.run(QUESTION))


async def _watched_by_two(session: Session) -> None:
    run = await session.run(QUESTION)
    await asyncio.gather(_exhaust(run), _exhaust(session.attach(run.id)))


async def _streamed(session: Session) -> None:
    await _exhaust(await session.run(QUESTION, stream=True))


async def _exhaust(events: AsyncIterable[object]) -> None:
    async for _ in events:
        pass


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
