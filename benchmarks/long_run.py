"""A long run in a long conversation: 100 tool calls after 209,000 tokens.

Integrations that hand the conversation to every model call have had this killed by the server at
call 53, at 50 MB of history. Here every tool result has 5,000 characters; the history is summed
over all runs of the workflow.
"""

from __future__ import annotations

import itertools
import time
from datetime import UTC, datetime

from benchmarks.conversation import RECORD, researcher, said
from benchmarks.histories import history_total
from benchmarks.report import Figure, Scale, at_least, at_most, run_benchmark
from benchmarks.serving import serving
from perdure import Entry, MessageEntry, Timestamp, text
from perdure.stores.contract import Store

TOKENS = 209_000
CHARACTERS_PER_TOKEN = 4
CALLS = 100


async def measure(scale: Scale) -> list[Figure]:
    """One run; it is the same at every scale."""
    async with serving(researcher(CALLS)) as sessions:
        await _write_conversation(sessions.store, "research")
        session = await sessions.open("research", agent="researcher")
        started = time.perf_counter()
        messages = await (await session.run("Go through all of it."))
        seconds = time.perf_counter() - started
        total = await history_total(sessions.client, session)
    results = sum(message.role == "tool_result" for message in messages)
    return [
        Figure("tool results of the run", results, "", at_least(CALLS)),
        Figure("history in all", total.size_bytes, "bytes", at_most(3_000_000)),
        Figure("events in all", total.events, ""),
        Figure("runs of the workflow", total.runs, ""),
        Figure("time of a model call and its tool", seconds / CALLS, "s"),
    ]


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
