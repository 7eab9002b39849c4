"""A long run in a long conversation: 100 tool calls after 209,000 tokens.

Integrations that hand the conversation to every model call have had this killed by the server at
call 53, at 50 MB of history. Here every tool result has 5,000 characters; the history is summed
over all runs of the workflow. The yardstick is one turn of a bare workflow with as many activities
and as large results, without a conversation.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Awaitable
from datetime import UTC, datetime

from benchmarks.bare import BareSession
from benchmarks.conversation import RECORD, researcher, said
from benchmarks.histories import chain_total, history_total
from benchmarks.report import Figure, Scale, run_benchmark
from benchmarks.serving import TASK_QUEUE, serving
from perdure import Entry, MessageEntry, Timestamp, text
from perdure.stores.contract import Store

TOKENS = 209_000
CHARACTERS_PER_TOKEN = 4
CALLS = 100


async def measure(scale: Scale) -> list[Figure]:
    """Several runs, each in a session of its own; they are the same at every scale."""
    times: list[float] = []
    bare_times: list[float] = []
    async with serving(researcher(CALLS, size=len(RECORD))) as sessions:
        for number in range(scale.pick(1, 3)):
            await _write_conversation(sessions.store, f"research-{number}")
            session = await sessions.open(f"research-{number}", agent="researcher")
            run = await session.run("Go through all of it.")
            started = time.perf_counter()
            messages = await run
            times.append((time.perf_counter() - started) / CALLS)
            total = await history_total(sessions.client, session)
            bare = await BareSession.open(sessions.client, f"research-{number}", TASK_QUEUE)
            bare_times.append(await _seconds(bare.turn(*[len(RECORD)] * CALLS)) / CALLS)
            bare_total = await chain_total(sessions.client, bare.workflow_id)
    results = sum(message.role == "tool_result" for message in messages)
    what = "100 tool calls after 209,000 tokens"
    return [
        Figure(f"{what}: results", results),
        Figure(f"{what}: history", total.size_bytes, bare_total.size_bytes),
        Figure(f"{what}: events", total.events, bare_total.events),
        Figure(f"{what}: workflow runs", total.runs),
        Figure(f"{what}: time of a step", statistics.median(times), statistics.median(bare_times)),
    ]


async def _seconds(work: Awaitable[None]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


async def _write_conversation(store: Store, session_id: str) -> None:
    """Questions and long answers, straight into the store."""
    now = Timestamp.of(datetime.now(UTC))
    entries: list[Entry] = []
    size = 0
    for number in itertools.count():
        if size >= TOKENS * CHARACTERS_PER_TOKEN:
            break
        entry: Entry = text(RECORD) if number % 2 == 0 else MessageEntry(message=said(RECORD))
        parent_id = entries[-1].id if entries else ""
        entries.append(
            entry.with_header(id=f"earlier-{number}", parent_id=parent_id, created_at=now)
        )
        size += len(RECORD)
    await store.create_session(session_id)
    await store.append_entries(session_id, entries)


if __name__ == "__main__":
    run_benchmark(measure, __doc__)
