"""What the driver and the server say when a call fails: in one line, and whether to try again.

No message holds a password: of errors that may quote what they were given only the kind is told.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from perdure.errors import StoreError

_TRY_AGAIN = "what was acknowledged is kept; try again"

_POOLER = "behind PgBouncer, set max_prepared_statements there (1.21 or later)"

_ADVICE = {
    "28P01": "put the right one into the URL, PGPASSWORD or a password file",
    "28000": "name a role that may connect from here",
    "3D000": "create it (createdb), or name another in the URL",
    "3F000": "run `perdure store migrate`",
    "42P01": "run `perdure store migrate`",
    "42703": "run `perdure store migrate`",
    "42501": "grant this role what docs/postgres.md lists",
    "26000": _POOLER,
    "42P05": _POOLER,
    "25006": "connect to the primary, for example with target_session_attrs=read-write in the URL",
    "53100": "nothing was added; make room on the server and try again",
    "53300": "raise max_connections of the server, or lower pool_size",
    "57014": "raise statement_timeout of this role",
}

_TRANSIENT_CLASSES = ("08", "40", "57P")
_TRANSIENT = ("25006", "53000", "53200", "53300", "55P03", "57014")
_NO_TLS = "rejected SSL upgrade"
"""What the driver says of a server that refuses TLS, in a mere ConnectionError."""
_TABLES_ARE_GONE = ("3F000", "42P01", "42703")
_REFUSALS = ("42501", "25006")
_QUOTES_DATA = ("22", "23")


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt."""

    error: StoreError
    is_transient: bool
    """Whether the same call may succeed in a moment."""


def misses_tables(error: Exception) -> bool:
    """Whether the error says that the tables are not there, or are not those that were expected."""
    return getattr(error, "sqlstate", None) in _TABLES_ARE_GONE


def is_refusal(error: Exception) -> bool:
    """Whether the error says that this role, or this server, may not write."""
    return getattr(error, "sqlstate", None) in _REFUSALS


class BusyError(Exception):
    """All connections of the pool were in use for too long."""


def explained(error: Exception, place: str) -> Failure | None:
    """Return what an error of a call means; nothing when it is not the database's."""
    if isinstance(error, BusyError):
        return _failure(place, str(error), "raise pool_size", is_transient=False)
    sqlstate = getattr(error, "sqlstate", None)
    if isinstance(sqlstate, str):
        return _from_server(error, sqlstate, place)
    if isinstance(error, OSError):
        return _from_system(error, place)
    if type(error).__module__.partition(".")[0] != "asyncpg":
        return None
    if isinstance(error, ValueError):
        # An option that makes no sense, or a value of the wrong kind.
        kind = type(error).__name__
        return _failure(place, f"the driver refused it ({kind})", "look at the options of its URL")
    return _failure(place, "the connection was lost", _TRY_AGAIN, is_transient=True)


def _from_server(error: Exception, sqlstate: str, place: str) -> Failure:
    reason = str(getattr(error, "message", None) or "")
    if sqlstate.startswith(_QUOTES_DATA):
        reason = type(error).__name__
    elif not reason:  # it is the driver's own
        reason = "the connection was lost"
    is_transient = sqlstate in _TRANSIENT or sqlstate.startswith(_TRANSIENT_CLASSES)
    fallback = _TRY_AGAIN if is_transient else f"look at the log of the server ({sqlstate})"
    advice = _ADVICE.get(sqlstate, fallback)
    return _failure(place, reason, advice, is_transient=is_transient)


def _from_system(error: OSError, place: str) -> Failure:
    if isinstance(error, TimeoutError):
        return _failure(place, "no answer in time", _TRY_AGAIN, is_transient=True)
    if isinstance(error, ssl.SSLError):
        reason = f"TLS failed ({error.reason or type(error).__name__})"
        return _failure(place, reason, "look at sslmode and sslrootcert in the URL")
    if isinstance(error, socket.gaierror):
        is_transient = error.errno == socket.EAI_AGAIN
        return _failure(
            place, "the host is unknown", "look at its name in the URL", is_transient=is_transient
        )
    if _NO_TLS in str(error):
        return _failure(place, "the server does not speak TLS", "look at sslmode in the URL")
    reason = error.strerror or str(error.errno or "") or type(error).__name__
    if "Multiple exceptions" in reason or "Connect call failed" in reason or error.errno is None:
        reason = "nobody answers there"
    advice = "start the server, or look at host and port in the URL"
    return _failure(place, reason, advice, is_transient=True)


def _failure(place: str, reason: str, advice: str, *, is_transient: bool = False) -> Failure:
    return Failure(StoreError(f"PostgreSQL at {place}: {reason}; {advice}"), is_transient)
