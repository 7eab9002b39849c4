"""What is asked of the tables."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from perdure.stores.postgres.address import quoted_schema

ID_LIMIT = 512
"""Bytes. Of a longer ID, which an index may not take, its digest is kept beside the line."""

# One statement does it all, so that nothing is left to others between its parts and a connection
# that is lost holds no lock. The UPDATE waits for whoever appends to the same session and takes the
# row as they left it; from there on the order is ours until the commit.
_APPEND = """
    WITH session AS (
        UPDATE {schema}.sessions SET last_seq = last_seq + cardinality($2::bytea[])
        WHERE id = $1 RETURNING key, last_seq
    ), added AS (
        INSERT INTO {schema}.entries (session_key, seq, id, parent_id, line)
        SELECT key, last_seq - cardinality($2::bytea[]) + given.place,
            given.id, given.parent_id, given.line
        FROM session,
            unnest($2::bytea[], $3::bytea[], $4::bytea[])
            WITH ORDINALITY AS given (id, parent_id, line, place)
        ON CONFLICT (session_key, id) DO NOTHING
        RETURNING seq
    )
    SELECT key, last_seq, (SELECT array_agg(seq ORDER BY seq) FROM added) AS added FROM session
"""

# The same for several sessions. It waits for nobody's lock, and so can neither hold up the appends
# that come with it nor get into a deadlock: sessions that are locked are not among its rows.
_APPENDS = """
    WITH given AS (
        SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::bytea[])
            WITH ORDINALITY AS given (session_id, id, parent_id, line, place)
    ), counted AS (
        SELECT session_id, count(*) AS lines FROM given GROUP BY session_id
    ), free AS MATERIALIZED (
        SELECT key FROM {schema}.sessions WHERE id IN (SELECT session_id FROM counted)
        FOR NO KEY UPDATE SKIP LOCKED
    ), session AS (
        UPDATE {schema}.sessions AS updated SET last_seq = updated.last_seq + counted.lines
        FROM free, counted WHERE updated.key = free.key AND updated.id = counted.session_id
        RETURNING updated.key, updated.id, updated.last_seq, counted.lines
    ), added AS (
        INSERT INTO {schema}.entries (session_key, seq, id, parent_id, line)
        SELECT key, last_seq - lines + row_number() OVER (PARTITION BY key ORDER BY place),
            given.id, given.parent_id, given.line
        FROM session JOIN given ON given.session_id = session.id
        ON CONFLICT (session_key, id) DO NOTHING
        RETURNING session_key, seq
    )
    SELECT id, key, last_seq, added.added FROM session LEFT JOIN (
        SELECT session_key, array_agg(seq ORDER BY seq) AS added FROM added GROUP BY session_key
    ) AS added ON session_key = key
"""

# Sequence numbers are given out in the order of commits, so what is above a known one is all that
# is new. The entry at the known number comes along, without its line, to tell that it is the same.
_LOAD = """
    SELECT session.key, session.last_seq, entry.seq,
        CASE WHEN entry.seq = $2 THEN entry.id END AS id,
        CASE WHEN entry.seq > $2 THEN entry.line END AS line
    FROM {schema}.sessions AS session
    LEFT JOIN LATERAL (
        SELECT seq, id, line FROM {schema}.entries
        WHERE session_key = session.key AND seq >= $2 ORDER BY seq LIMIT $3
    ) AS entry ON true
    WHERE session.id = $1
    ORDER BY entry.seq
"""

# From child to parent, so that what it costs is the length of the path and not that of the log. The
# depth ends it where parents go round in a circle.
_PATH = """
    WITH RECURSIVE session AS (
        SELECT key FROM {schema}.sessions WHERE id = $1
    ), path AS (
        SELECT 1 AS depth, entry.* FROM session CROSS JOIN LATERAL (
            SELECT session_key, seq, parent_id, line FROM {schema}.entries AS entry
            WHERE session_key = session.key {leaf}
        ) AS entry
        UNION ALL
        SELECT depth + 1, entry.session_key, entry.seq, entry.parent_id, entry.line
        FROM path JOIN {schema}.entries AS entry USING (session_key)
        WHERE entry.id = path.parent_id AND depth < $2
    )
    SELECT seq, path.parent_id, line FROM session LEFT JOIN path ON true ORDER BY depth DESC
"""

_LEAF, _LAST = "AND id = $3", "ORDER BY seq DESC LIMIT 1"

_CREATE = """
    INSERT INTO {schema}.sessions (id, parent_id, record) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO NOTHING RETURNING key
"""

_RECORD = "SELECT record FROM {schema}.sessions WHERE id = $1"

_LIST = "SELECT key, id FROM {schema}.sessions WHERE key > $1 ORDER BY key LIMIT $2"


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements for one schema."""

    append: str
    """Session ID, IDs, parents' IDs and lines; the session's key and last number, and the numbers
    that were added. No row without the session."""
    appends: str
    """A session ID for each line, IDs, parents' IDs and lines; the same and its ID for each session
    that is there and that nobody has locked."""
    load: str
    """Session ID, number of the last known entry or 0, how many rows."""
    path: str
    """Session ID, how many, ID of the leaf; lines, the leaf's last. No row without the session,
    one of nothing without the leaf."""
    last_path: str
    """The same for the last entry, without an ID."""
    create: str
    """Session ID, parent's ID, record; a row if it did."""
    record: str
    """Session ID; the record."""
    list: str
    """The last known key or 0, how many; keys and IDs."""

    @classmethod
    def of(cls, schema: str) -> Statements:
        """Return them; the name of the schema is quoted here."""
        name = quoted_schema(schema)
        paths = (_PATH.replace("{leaf}", leaf) for leaf in (_LEAF, _LAST))
        texts = (_APPEND, _APPENDS, _LOAD, *paths, _CREATE, _RECORD, _LIST)
        return cls(*(text.format(schema=name) for text in texts))


def id_bytes(entry_id: str) -> bytes:
    """Return what stands for an entry's ID in its column; no two IDs have the same.

    It is the ID in UTF-8, also of halves of surrogate pairs; of a long one it is a byte that UTF-8
    never has, and a digest.
    """
    whole = entry_id.encode("utf-8", "surrogatepass")
    return whole if len(whole) <= ID_LIMIT else b"\xff" + hashlib.sha256(whole).digest()
