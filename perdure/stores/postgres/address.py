"""Where a database is: the URL that the driver gets, and the part of it that may be shown."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from perdure.errors import StoreError

SCHEMES = ("postgresql", "postgres")

DEFAULT_SCHEMA = "perdure"

NAME_LIMIT = 63
"""Bytes. PostgreSQL cuts longer names short."""

_POOL_SIZES = (1, 1000)

_OWN_OPTIONS = ("schema", "pool_size")


@dataclass(frozen=True, slots=True)
class Address:
    """A database, and what its URL asks for besides. Neither `repr` nor `place` holds a secret."""

    place: str
    """Hosts, ports and database, for messages."""
    schema: str
    """The schema that the URL names, or the usual one."""
    pool_size: int | None
    """The number of connections that the URL names."""
    url: str = field(repr=False)
    """For the driver; it may hold a password."""

    @classmethod
    def of(cls, url: str) -> Address:
        """Take a URL apart: `postgresql://user:password@host:port/database?option=value`.

        Of the options, `schema` and `pool_size` are perdure's; all others are the driver's.

        Raises:
            StoreError: this is no such URL. Nothing of it is repeated.
        """
        parts = None
        with contextlib.suppress(ValueError):
            parts = urlsplit(url)
        if parts is None:  # the error repeats what it could not read, so it does not come along
            _refuse("its host cannot be read")
        if parts.scheme not in SCHEMES or not url.startswith(f"{parts.scheme}://"):
            _refuse("it does not start with postgresql://")
        # What comes of a password with raw slashes and the like would be shown as a host.
        if "@" in parts.path + parts.query or parts.fragment or "#" in url:
            _refuse("a special character in it is not percent-encoded")
        hosts = parts.netloc.rpartition("@")[2]
        if not all(map(_has_sound_port, hosts.split(","))):
            _refuse("a port is no number, or a special character in it is not percent-encoded")
        options = parse_qsl(parts.query, keep_blank_values=True)
        own = {name: value for name, value in options if name in _OWN_OPTIONS}
        others = [option for option in options if option[0] not in _OWN_OPTIONS]
        hosts = hosts or dict(others).get("host", "")
        return cls(
            place=f"{unquote(hosts) or 'localhost'}{unquote(parts.path)}",
            schema=own.get("schema", DEFAULT_SCHEMA),
            pool_size=_number(own["pool_size"]) if "pool_size" in own else None,
            url=f"{parts.scheme}://{parts.netloc}{parts.path}?{urlencode(others, quote_via=quote)}",
        )


def quoted_schema(name: str) -> str:
    """Return the name as it stands in a statement.

    Raises:
        StoreError: PostgreSQL takes no such name.
    """
    if not name or "\0" in name or len(name.encode("utf-8", "replace")) > NAME_LIMIT:
        raise StoreError(
            f"{name[:80]!r} cannot name a schema; give it 1 to {NAME_LIMIT} bytes, such as"
            f" {DEFAULT_SCHEMA!r}"
        )
    return '"' + name.replace('"', '""') + '"'


def check_pool_size(size: int) -> int:
    """Return the number of connections.

    Raises:
        StoreError: it is none, or too many.
    """
    if not _POOL_SIZES[0] <= size <= _POOL_SIZES[1]:
        raise StoreError(
            "pool_size, as an argument or in the URL of PostgreSQL, is a number from"
            " {} to {}".format(*_POOL_SIZES)
        )
    return size


def _has_sound_port(host: str) -> bool:
    _, colon, port = host.rpartition("]")[2].rpartition(":")
    return not colon or port == "" or (port.isascii() and port.isdigit() and int(port) < 65536)


def _number(text: str) -> int:
    # Of more digits than four it is too much, and of very many `int` is an error.
    return check_pool_size(int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0)


def _refuse(reason: str) -> NoReturn:
    raise StoreError(
        f"the URL of PostgreSQL cannot be read: {reason};"
        " write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @ and %2F for /"
    )
