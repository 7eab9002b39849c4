"""Payloads over the engine's limit, kept outside of it: the SDK's external storage, over files or
PostgreSQL.

With it a result or a command may be as large as MAX_LARGE_BYTES. Temporal's history holds a
reference, and the payload, encrypted if payloads are, is a file or a row that all workers and
clients have to reach.
"""

from __future__ import annotations

import os
from pathlib import Path

from temporalio.client import Client
from temporalio.converter import ExternalStorage
from temporalio.worker import Worker

from perdure.errors import StoreError
from perdure.payload_files import PayloadFiles
from perdure.payload_rows import PayloadRows
from perdure.protocol import MAX_COMMAND_BYTES, MAX_RESULT_BYTES
from perdure.stores.postgres.address import SCHEMES

VARIABLE = "PERDURE_PAYLOADS"
"""The environment variable that says where large payloads are kept."""

MAX_LARGE_BYTES = 32_000_000
"""The largest command, tool result or message of a model when payloads are kept outside, in bytes.
All of it is in memory at once, several times, and a workflow's thread reads and writes it in one
step."""

STEP_SECONDS = 20
"""How long one step of a workflow may take then. The SDK allows two seconds, after which it takes
the workflow for hung; large messages on a busy machine take longer than that."""

THRESHOLD = 128 * 1024
"""Bytes from which a payload is kept outside: smaller ones are quicker in history."""


def external_storage(place: str | ExternalStorage | None = None) -> ExternalStorage | None:
    """The storage of that place, `files:DIR` or `postgresql://…`, or that PERDURE_PAYLOADS names;
    None for neither.

    Raises StoreError when the text names no place. Nothing is connected to.
    """
    if isinstance(place, ExternalStorage):
        return place
    text = os.environ.get(VARIABLE, "") if place is None else place
    if not text:
        return None
    driver = payload_driver(text)
    return ExternalStorage(drivers=[driver], payload_size_threshold=THRESHOLD)


def payload_driver(place: str, *, create_schema: bool = True) -> PayloadFiles | PayloadRows:
    """The driver for the SDK that keeps payloads in that place; in a database without tables it
    may make them, unless `create_schema` is false.

    Raises StoreError when the text names no place.
    """
    kind, _, folder = place.partition(":")
    if kind in SCHEMES:
        return PayloadRows(place, create_schema=create_schema)
    if kind != "files" or not folder:
        # Only its kind is repeated: what follows may be a password.
        raise StoreError(
            f"{kind!r} is no place for payloads; name it as files:DIR or postgresql://…"
        )
    return PayloadFiles(Path(folder).expanduser())


def command_limit(client: Client) -> int:
    """The largest command that the client's messages may hold, in bytes."""
    return MAX_LARGE_BYTES if _is_on(client) else MAX_COMMAND_BYTES


def result_limit(client: Client) -> int:
    """The largest result of a tool, or message of a model, in bytes."""
    return MAX_LARGE_BYTES if _is_on(client) else MAX_RESULT_BYTES


def allow_long_steps(worker: Worker) -> None:
    """Give the worker's workflows the time that large messages take, if they may be large."""
    if _is_on(worker.client):
        # The SDK has no public setting for it but one for debugging, which does more than that.
        inner = worker._workflow_worker
        if inner is not None and inner._deadlock_timeout_seconds is not None:
            inner._deadlock_timeout_seconds = STEP_SECONDS


def _is_on(client: Client) -> bool:
    return client.data_converter.external_storage is not None
