"""Sessions in PostgreSQL, for any number of machines."""

from __future__ import annotations

from perdure.stores.postgres.migration import migrate_database
from perdure.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore", "migrate_database"]
