"""Appends to a file system until it is full, then with room again: `-m tests.stores.full_disk DIR`.

DIR is a small one with nothing else in it. What happened is printed as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from perdure.errors import StoreError
from perdure.stores import FileStore
from tests.stores.logs import ids, note


async def main(folder: Path) -> None:
    filler = folder / "filler"
    filler.write_bytes(b"x" * 16_000)
    store = FileStore(folder / "sessions")
    await store.create_session("s")
    appended: list[str] = []
    said = ""
    while not said:
        name = f"e{len(appended)}"
        try:
            await store.append_entries("s", [note(name, "word " * 1000)])
        except StoreError as error:
            said = str(error)
        else:
            appended.append(name)
    log = folder / "sessions/s.jsonl"
    whole = log.read_bytes().endswith(b"\n")
    kept = ids(await FileStore(folder / "sessions").load_entries("s"))
    filler.unlink()
    await store.append_entries("s", [note("after")])
    report = {
        "said": said.replace(str(log), "LOG"),
        "is_whole": whole,
        "kept": kept == appended,
        "then": ids(await FileStore(folder / "sessions").load_entries("s")) == [*kept, "after"],
    }
    print(json.dumps(report))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
