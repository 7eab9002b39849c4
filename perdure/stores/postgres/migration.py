"""How a database gets from one version of the tables to the next."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from perdure.errors import StoreError
from perdure.stores.postgres.address import Address, quoted_schema
from perdure.stores.postgres.connections import connected
from perdure.stores.postgres.schema import STEPS, Found, Step, check_version, find_version

_VERSIONS_TABLE = """
    CREATE TABLE IF NOT EXISTS {schema}.schema_version (
        version integer PRIMARY KEY,
        oldest_code integer NOT NULL,
        migrated_at timestamptz NOT NULL DEFAULT now()
    )
"""


async def migrate_database(
    url: str, schema: str | None = None, steps: Sequence[Step] = STEPS
) -> tuple[str, Found, Found]:
    """Bring the tables of a database to the last version, as `migrate` does.

    Answers with the schema, which the URL may name, with what was there and with what is.

    Raises:
        StoreError: it cannot be reached, or refuses, or has newer tables than this code can use.
    """
    address = Address.of(url)
    name = schema if schema is not None else address.schema
    async with connected(address) as connection:
        before, after = await migrate(connection, name, steps)
    last = steps[-1].version
    check_version(after, name, needs=last, code_version=last)
    return name, before, after


async def migrate(
    connection: Any, schema: str, steps: Sequence[Step] = STEPS
) -> tuple[Found, Found]:
    """Bring the tables to the last version, all or nothing; answer with what was and what is.

    Of several that do so at the same time, one does and the others wait, then find it done. Newer
    tables than this code knows are left alone. It takes the right to create the schema, or one that
    is there and may be used and created in.
    """
    name = quoted_schema(schema)
    # Not the database's own default: what the lock was waited for has to be seen afterwards.
    async with connection.transaction(isolation="read_committed"):
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _lock_key(schema))
        await _check_encoding(connection)
        before = await find_version(connection, schema)
        missing = [step for step in steps if step.version > before.version]
        if not missing:
            return before, before
        # IF NOT EXISTS would ask for the right to create schemas even where it is there.
        if not await connection.fetchval(
            "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1", schema
        ):
            await connection.execute(f"CREATE SCHEMA {name}")
        await connection.execute(_VERSIONS_TABLE.format(schema=name))
        for step in missing:
            for statement in step.statements:
                await connection.execute(statement.format(schema=name))
            await connection.execute(
                f"INSERT INTO {name}.schema_version (version, oldest_code) VALUES ($1, $2)",
                step.version,
                step.oldest_code,
            )
        return before, Found(missing[-1].version, missing[-1].oldest_code)


async def _check_encoding(connection: Any) -> None:
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"the encoding of this database is {encoding}, session IDs are any text;"
            " name a database with the encoding UTF8"
        )


def _lock_key(schema: str) -> int:
    digest = hashlib.sha256(b"perdure schema " + schema.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
