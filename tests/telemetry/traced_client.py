"""A client in a process of its own: `python -m tests.telemetry.traced_client ID`. It runs the agent
`clerk`, has the workflow continue as new at each turn, and prints the run's ID.
"""

from __future__ import annotations

import asyncio
import sys

from perdure import Sessions
from perdure.stores import FileStore
from tests.telemetry.shop import SECRET


async def main(session_id: str, folder: str) -> None:
    async with Sessions.connect(
        store=FileStore(folder), max_history_events=1, max_history_events_in_run=1
    ) as sessions:
        session = await sessions.open(session_id, agent="clerk")
        run = await session.run(f"Charge me. My key is {SECRET}.")
        await run
        print(run.id)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
