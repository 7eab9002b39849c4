"""`perdure store migrate`."""

from __future__ import annotations

import asyncio
import json
import os

from perdure.errors import StoreError
from perdure.stores import open_store
from perdure.stores.postgres import PostgresStore, migrate_database


def migrate_store(url: str | None, *, schema: str | None, as_json: bool) -> int:
    """Migrate, say what was done, and answer with the exit status.

    Raises StoreError when the database cannot be reached or refuses.
    """
    spec = url or os.environ.get("PERDURE_STORE", "")
    if not spec:
        raise StoreError(
            "no store; name it (perdure store migrate postgresql://…) or set PERDURE_STORE"
        )
    # The tables are the same, and whoever makes them needs no keys.
    while spec.startswith("encrypted:"):
        spec = spec.removeprefix("encrypted:")
    if not isinstance(open_store(spec), PostgresStore):
        outcome: dict[str, object] = {"schema": None, "before": None, "after": None}
        said = "nothing to do: only PostgreSQL has tables"
    else:
        name, before, after = asyncio.run(migrate_database(spec, schema))
        outcome = {"schema": name, "before": before.version, "after": after.version}
        done = "is at version {after} already" if before == after else "version {before} → {after}"
        said = f"schema {name!r}: " + done.format(before=before.version, after=after.version)
    print(json.dumps(outcome) if as_json else said)
    return 0
