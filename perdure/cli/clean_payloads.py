"""`perdure clean-payloads`."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta

import typer
from temporalio.converter import ExternalStorage

from perdure.client import connect_client
from perdure.errors import StoreError
from perdure.large_payloads import VARIABLE, payload_driver
from perdure.payload_cleaning import Cleaning, clean_payloads
from perdure.payload_files import PayloadFiles
from perdure.payload_rows import PayloadRows


def clean(place: str | None, *, margin_days: float, only_look: bool, as_json: bool) -> int:
    """Remove what no history needs, and say how much that was; answer with the exit status.

    Raises StoreError when no place is named, or there is none, ServerError.
    """
    spec = place or os.environ.get(VARIABLE, "")
    if not spec:
        raise StoreError(
            f"name the place of payloads as files:DIR or postgresql://…, or set {VARIABLE}"
        )
    driver = payload_driver(spec, create_schema=False)
    done = asyncio.run(_clean(driver, timedelta(days=margin_days), only_look))
    if as_json:
        typer.echo(json.dumps({"removed": done.removed, "bytes": done.bytes, "kept": done.kept}))
    else:
        verb = "would remove" if only_look else "removed"
        what = "files" if isinstance(driver, PayloadFiles) else "rows"
        typer.echo(
            f"{verb} {done.removed:,} {what}, {done.bytes:,} bytes; {done.kept:,} are needed"
        )
    return 0


async def _clean(
    driver: PayloadFiles | PayloadRows, margin: timedelta, only_look: bool
) -> Cleaning:
    client = await connect_client(payloads=ExternalStorage(drivers=[driver]))
    return await clean_payloads(client, driver, margin=margin, only_look=only_look)
