"""Large payloads as rows of PostgreSQL: a driver for the SDK's external storage.

One row for each payload, named as a file would be by `payload_files`: namespace, workflow ID,
digest. A payload that is stored again is the same row, and as new as the last time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from perdure.errors import StoreError
from perdure.payload_files import encoded
from perdure.stores.postgres.address import quoted_schema
from perdure.stores.postgres.connections import RETRY_FOR, Job
from perdure.stores.postgres.database import Database, Result
from perdure.stores.postgres.schema import PAYLOADS_NEED

NAME = "perdure.postgresql"
"""The driver's name, which is written into references: permanent."""

_KEY = "row"

_IS_IT = "namespace = $1 AND workflow_id = $2 AND digest = $3"

# Twice: what is there already is not sent to the server again, and who was quicker is no error.
_RENEW = f"UPDATE {{schema}}.payloads SET stored_at = now() WHERE {_IS_IT} RETURNING true"
_ADD = """
    INSERT INTO {schema}.payloads (namespace, workflow_id, digest, data) VALUES ($1, $2, $3, $4)
    ON CONFLICT (namespace, workflow_id, digest) DO UPDATE SET stored_at = now()
"""
_READ = f"SELECT data FROM {{schema}}.payloads WHERE {_IS_IT}"
_WORKFLOWS = """
    SELECT DISTINCT workflow_id FROM {schema}.payloads WHERE namespace = $1 ORDER BY workflow_id
"""
_LIST = """
    SELECT digest, stored_at, octet_length(data) AS size FROM {schema}.payloads
    WHERE namespace = $1 AND workflow_id = $2 ORDER BY digest
"""
# Stored again a moment ago, it is needed again.
_REMOVE = f"DELETE FROM {{schema}}.payloads WHERE {_IS_IT} AND stored_at = $4"


class PayloadRows(StorageDriver):
    """Keeps payloads in a table beside those of the sessions, `payloads`, since version 2.

    A payload counts as stored when its row is committed, and what is read is checked against its
    digest. The URL is that of a `PostgresStore`, with the same options, and so are what is tried
    again, the thread of the connections, and who makes the tables: see there.
    """

    def __init__(self, url: str, *, schema: str | None = None, create_schema: bool = True) -> None:
        """Raises StoreError when the URL cannot be read, or the driver is not installed."""
        self._database = Database(
            url,
            owner=type(self).__name__,
            needs=PAYLOADS_NEED,
            schema=schema,
            pool_size=None,
            retry_for=RETRY_FOR,
            create_schema=create_schema,
        )
        self._schema = quoted_schema(self._database.schema)

    def __repr__(self) -> str:
        return repr(self._database)

    def name(self) -> str:
        """The name by which references find the driver."""
        return NAME

    def type(self) -> str:
        """What kind of driver this is."""
        return NAME

    async def close(self) -> None:
        """Close its connections. The end of the process does so too."""
        await self._database.close()

    async def store(
        self, context: StorageDriverStoreContext, payloads: Sequence[Payload]
    ) -> list[StorageDriverClaim]:
        """Write payloads. Raises StoreError when the database does not take them."""
        target = context.target
        parts = (target.namespace, target.id or "") if target is not None else ("", "")
        namespace, workflow = map(encoded, parts)
        return [await self._write(namespace, workflow, payload) for payload in payloads]

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """Read payloads. Raises StoreError when one is not there, or is not what was stored."""
        return [await self._read(claim) for claim in claims]

    async def workflows(self, namespace: str) -> list[str]:
        """The workflows of a namespace that have payloads; both are encoded names."""
        rows = await self._call(lambda db: db.fetch(self._of(_WORKFLOWS), namespace))
        return [row["workflow_id"] for row in rows]

    async def listed(self, namespace: str, workflow: str) -> list[tuple[bytes, datetime, int]]:
        """Of each payload of a workflow the digest, when it was last stored, and its bytes."""
        rows = await self._call(lambda db: db.fetch(self._of(_LIST), namespace, workflow))
        return [(row["digest"], row["stored_at"], row["size"]) for row in rows]

    async def remove(
        self, namespace: str, workflow: str, digest: bytes, stored_at: datetime
    ) -> None:
        """Remove a payload, unless it was stored again since then."""
        row = (namespace, workflow, digest, stored_at)
        await self._call(lambda db: db.execute(self._of(_REMOVE), *row))

    async def _write(self, namespace: str, workflow: str, payload: Payload) -> StorageDriverClaim:
        data = payload.SerializeToString(deterministic=True)
        digest = hashlib.sha256(data).digest()
        row = (namespace, workflow, digest)

        async def write(db: Any) -> None:
            if not await db.fetchval(self._of(_RENEW), *row):
                await db.execute(self._of(_ADD), *row, data)

        await self._call(write)
        return StorageDriverClaim(claim_data={_KEY: f"{namespace}/{workflow}/{digest.hex()}"})

    async def _read(self, claim: StorageDriverClaim) -> Payload:
        name = claim.claim_data.get(_KEY, "")
        try:
            namespace, workflow, digits = name.split("/")
            digest = bytes.fromhex(digits)
        except ValueError:
            raise StoreError("a reference to a payload names no row") from None
        row = (namespace, workflow, digest)
        data: bytes | None = await self._call(lambda db: db.fetchval(self._of(_READ), *row))
        where = f"schema {self._database.schema!r} of PostgreSQL at {self._database.place}"
        if data is None:
            raise StoreError(
                f"the payload {name} is not in {where}; all workers and clients need the same"
                " database"
            )
        if hashlib.sha256(data).digest() != digest:
            raise StoreError(f"the payload {name} in {where} is not what was stored")
        return Payload.FromString(data)

    def _of(self, statement: str) -> str:
        return statement.format(schema=self._schema)

    async def _call(self, job: Job[Result]) -> Result:
        return await self._database.run(partial(self._database.call, job))
