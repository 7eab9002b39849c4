"""`perdure clean-payloads`."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path

import typer

from perdure.client import connect_client
from perdure.errors import StoreError
from perdure.large_payloads import VARIABLE
from perdure.payload_cleaning import Cleaning, clean_payloads


def clean(place: str | None, *, margin_days: float, only_look: bool, as_json: bool) -> int:
    """Remove what no history needs, and say how much that was; answer with the exit status.

    Raises StoreError when no folder is named, or it is none, ServerError.
    """
    spec = place or os.environ.get(VARIABLE, "")
    kind, _, folder = spec.partition(":")
    if kind != "files" or not folder:
        raise StoreError(f"name the folder of payloads as files:DIR, or set {VARIABLE}")
    done = asyncio.run(_clean(Path(folder).expanduser(), timedelta(days=margin_days), only_look))
    if as_json:
        typer.echo(json.dumps({"removed": done.files, "bytes": done.bytes, "kept": done.kept}))
    else:
        verb = "would remove" if only_look else "removed"
        typer.echo(f"{verb} {done.files:,} files, {done.bytes:,} bytes; {done.kept:,} are needed")
    return 0


async def _clean(folder: Path, margin: timedelta, only_look: bool) -> Cleaning:
    client = await connect_client(payloads=f"files:{folder}")
    return await clean_payloads(client, folder, margin=margin, only_look=only_look)
