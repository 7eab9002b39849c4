"""The tables, in versions: what each step adds, and which version a database has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perdure.errors import StoreError
from perdure.stores.postgres.address import quoted_schema


@dataclass(frozen=True, slots=True)
class Step:
    """What leads to a version. Steps are only ever added; one that was released never changes."""

    version: int
    statements: tuple[str, ...]
    """Each in the transaction of the migration; `{schema}` is the schema's quoted name."""
    oldest_code: int
    """The lowest version whose code can work with these tables: workers of two versions run side by
    side while a deployment is under way."""


STEPS: tuple[Step, ...] = (
    Step(
        version=1,
        oldest_code=1,
        statements=(
            # `last_seq` changes with each append, which takes the lock on this row; room in the
            # page lets that happen in place.
            """
            CREATE TABLE {schema}.sessions (
                key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                id text COLLATE "C" NOT NULL UNIQUE,
                parent_id text COLLATE "C" NOT NULL,
                record bytea NOT NULL,
                last_seq bigint NOT NULL DEFAULT 0
            ) WITH (fillfactor = 70)
            """,
            # Bytes, because an ID is any text and a line is kept as it is: `text` takes no NUL and
            # no half of a surrogate pair, and `jsonb` rewrites what it is given.
            """
            CREATE TABLE {schema}.entries (
                session_key bigint NOT NULL REFERENCES {schema}.sessions ON DELETE CASCADE,
                seq bigint NOT NULL,
                id bytea NOT NULL,
                parent_id bytea NOT NULL,
                line bytea NOT NULL,
                PRIMARY KEY (session_key, seq),
                UNIQUE (session_key, id)
            )
            """,
        ),
    ),
    Step(
        version=2,
        oldest_code=1,
        statements=(
            # Names are percent-encoded, as those of payload files: no text that a column refuses,
            # and short enough for the index.
            """
            CREATE TABLE {schema}.payloads (
                namespace text COLLATE "C" NOT NULL,
                workflow_id text COLLATE "C" NOT NULL,
                digest bytea NOT NULL,
                data bytea NOT NULL,
                stored_at timestamptz NOT NULL DEFAULT now(),
                PRIMARY KEY (namespace, workflow_id, digest)
            )
            """,
        ),
    ),
)

CODE_VERSION = STEPS[-1].version
"""The version that this code is written for."""

SESSIONS_NEED = 1
"""The lowest version in which sessions can be kept."""

PAYLOADS_NEED = 2
"""The lowest version in which large payloads can be kept."""

# Not `to_regclass`: it may remember from before the lock that there is no such table.
_HAS_VERSIONS = """
    SELECT count(*) FROM pg_catalog.pg_class AS relation
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relation.relnamespace
    WHERE namespace.nspname = $1 AND relation.relname = 'schema_version'
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What a database has."""

    version: int
    """0 when there is nothing."""
    oldest_code: int = 0


async def find_version(connection: Any, schema: str) -> Found:
    """Look at what is there."""
    name = quoted_schema(schema)
    if not await connection.fetchval(_HAS_VERSIONS, schema):
        return Found(0)
    row = await connection.fetchrow(
        f"SELECT version, oldest_code FROM {name}.schema_version ORDER BY version DESC LIMIT 1"
    )
    return Found(row["version"], row["oldest_code"]) if row else Found(0)


def check_version(
    found: Found, schema: str, *, needs: int = CODE_VERSION, code_version: int = CODE_VERSION
) -> None:
    """Raise StoreError, with what to do, unless this code can do with these tables what takes
    version `needs` of them.
    """
    if not found.version:
        raise StoreError(
            f"PostgreSQL has no sessions in schema {schema!r} yet;"
            " run `perdure store migrate` with a role that may create them"
        )
    if found.version < needs:
        raise StoreError(
            f"schema {schema!r} has version {found.version}, this takes version {needs};"
            " run `perdure store migrate`"
        )
    if found.oldest_code > code_version:
        raise StoreError(
            f"schema {schema!r} has version {found.version}, this perdure knows {code_version};"
            " install a newer perdure here"
        )
