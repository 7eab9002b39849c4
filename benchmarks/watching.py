"""What it costs in history to watch a run, and to have its answer streamed.

Each turn is a plain one. A watcher follows the events of the run from its beginning to its end; a
streamed answer comes in 40 pieces over a second. The yardstick is the same turn unwatched.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress
from functools import partial

from benchmarks.conversation import ANSWER, QUESTION, said
from benchmarks.histories import Spent, spent_by
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
        *_figures("watched", watched, alone),
        Figure("plain turn, watched by two: events", by_two.events, alone.events),
        *_figures("streamed", streamed, alone),
        Figure("plain turn, a watcher of the session: events", followed.events, alone.events),
    ]


def _figures(how: str, spent: Spent, alone: Spent) -> list[Figure]:
    return [
        Figure(f"plain turn, {how}: events", spent.events, alone.events),
        Figure(f"plain turn, {how}: history", spent.size_bytes, alone.size_bytes),
        Figure(f"plain turn, {how}: Temporal actions", spent.actions, alone.actions),
    ]


async def _spent(
    sessions: Sessions, name: str, turn: Turn, turns: int, *, follows: bool = False
) -> Spent:
    """What a turn leaves in history."""
    session = await sessions.open(name, agent="speaker")
    await turn(session)
    follower = asyncio.create_task(_exhaust(session.lifecycle())) if follows else None
    spent = await spent_by(sessions.client, session, partial(turn, session), turns)
    if follower is not None:
        follower.cancel()
        with suppress(asyncio.CancelledError):
            await follower
    return spent


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
