"""Cancelling a run whose answer is streaming: how long until the session is ready for the next.

From `cancel` to the moment when the cancelled run has its outcome and a run that was sent right
after it has been taken up.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time

import perdure
from benchmarks.report import Figure, Scale, run_benchmark
from perdure import Agent, Message, RunCancelledError, Session
from perdure.models import Delta, ModelRequest, OnDelta


class Streaming:
    """Says a word every 20 ms, for ever; to `short` it answers at once."""

    name = "streaming"

    def __init__(self) -> None:
        self.is_speaking = asyncio.Event()

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        if request.messages[-1].text == "short":
            return Message(role="assistant", content="ready")
        while on_delta is not None:
            on_delta(Delta("text", "word ", 0))
            self.is_speaking.set()
            await asyncio.sleep(0.02)
        raise AssertionError("the run did not ask for a stream")


async def measure(scale: Scale) -> list[Figure]:
    """Several cancellations in one session, one after the other."""
    model = Streaming()
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        agents = [Agent("streaming", model=model)]
        async with perdure.local(agents=agents, store=f"files:{folder}") as sessions:
            session = await sessions.open("cancelled", agent="streaming")
            seconds = [await _cancelled(session, model) for _ in range(scale.pick(5, 20))]
    return [
        Figure("from cancel to ready", statistics.median(seconds)),
        Figure("from cancel to ready, worst", max(seconds)),
    ]


async def _cancelled(session: Session, model: Streaming) -> float:
    model.is_speaking.clear()
    run = await session.run("a long story", stream=True)
    await model.is_speaking.wait()
    started = time.perf_counter()
    await session.cancel(run.id)
    following = await session.run("short")
    try:
        await run
    except RunCancelledError:
        await following
    return time.perf_counter() - started


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
