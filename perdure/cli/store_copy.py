"""`perdure store copy`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from perdure.cli.failures import FAILED
from perdure.errors import StoreError
from perdure.stores import MemoryStore, open_store
from perdure.stores.copying import Copied, copy_sessions
from perdure.stores.files import FileStore


def copy_store(source: str, target: str, ids: Sequence[str], *, as_json: bool) -> int:
    """Copy, say what was done, and answer with the exit status: 1 when a session was not copied.

    Raises StoreError when a store cannot be reached; what was copied by then stays.
    """
    outcome = asyncio.run(_copy(source, target, ids, is_quiet=as_json))
    failed = [copied for copied in outcome if copied.problem]
    whole = [copied for copied in outcome if not copied.problem]
    sums = {
        "sessions": len(whole),
        "entries": sum(copied.entries for copied in whole),
        "added": sum(copied.added for copied in outcome),
        "extra": sum(copied.extra for copied in whole),
    }
    if as_json:
        problems = [{"id": copied.session_id, "reason": copied.problem} for copied in failed]
        print(json.dumps(sums | {"failed": problems}))
    else:
        for copied in failed:
            print(f"perdure: session {copied.session_id!r}: {copied.problem}", file=sys.stderr)
        print(_sentence(sums, len(failed)))
    return FAILED if failed else 0


def _sentence(sums: dict[str, int], failed: int) -> str:
    said = "checked {sessions:,} session{s} of {entries:,} entries, {added:,} of them new here"
    if sums["extra"]:
        said += "; the target has {extra:,} more"
    if failed:
        said += f"; not copied: {failed:,}"
    return said.format(s="" if sums["sessions"] == 1 else "s", **sums)


async def _copy(source: str, target: str, ids: Sequence[str], *, is_quiet: bool) -> list[Copied]:
    outcome: list[Copied] = []
    async with AsyncExitStack() as stack:
        origin = await _opened(source, stack)
        place, witness = [await _opened(target, stack) for _ in range(2)]
        if isinstance(origin, FileStore) and not origin.root.is_dir():
            raise StoreError(f"there is no folder {str(origin.root)!r} to copy from")
        listed = list(dict.fromkeys(ids)) or await origin.list_sessions()
        with ExitStack() as bars:
            advance = _bar(len(listed), bars, is_hidden=is_quiet)

            def note(copied: Copied) -> None:
                advance()
                # A file without a record is listed, and is no session.
                if ids or not copied.is_missing:
                    outcome.append(copied)

            try:
                await copy_sessions(origin, place, witness, listed, note)
            except StoreError as error:
                raise StoreError(f"{error}; then copy again, it goes on where it stopped") from None
    return outcome


async def _opened(spec: str, stack: AsyncExitStack) -> Any:
    store = open_store(spec)
    if isinstance(store, MemoryStore):
        raise StoreError("memory: ends with its process; copy from and to files: or postgresql://")
    if hasattr(store, "close"):
        stack.push_async_callback(store.close)
    return store


def _bar(total: int, bars: ExitStack, *, is_hidden: bool) -> Callable[[], None]:
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("copying"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=is_hidden or not console.is_terminal,
    )
    task = bars.enter_context(progress).add_task("copying", total=total)
    return lambda: progress.advance(task)
