"""The file that a session ID names, and why no two IDs name the same one.

A safe ID keeps its plain name, so that the logs of other programs are found. An ID that would
leave the folder, or that reads like the encoded name of another ID, is percent-encoded as a whole.
That makes the mapping one to one: decoding a plain name changes nothing, decoding an encoded one
gives its ID.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, unquote

from perdure.errors import InvalidSessionIdError
from perdure.session_id import check_session_id

LOG_SUFFIX = ".jsonl"

NAME_LIMIT = 255
"""Bytes. The longest file name that common file systems take."""


@lru_cache(1024)
def log_file_name(session_id: str) -> str:
    """Return the name of the session's log, without its folder.

    Raises:
        InvalidSessionIdError: the ID cannot name a session, or its file name would be too long.
    """
    check_session_id(session_id)
    stem = session_id if _is_plain(session_id) else _encoded(session_id)
    size = len((stem + LOG_SUFFIX).encode())
    if size > NAME_LIMIT:
        raise InvalidSessionIdError(
            session_id,
            f"makes a file name of {size} bytes, the limit is {NAME_LIMIT}; choose a shorter one",
        )
    return stem + LOG_SUFFIX


def session_id_of_name(name: str) -> str | None:
    """Return the ID whose log has this name; nothing for a file that no ID names."""
    if not name.endswith(LOG_SUFFIX):
        return None
    session_id = unquote(name.removesuffix(LOG_SUFFIX))
    try:
        return session_id if log_file_name(session_id) == name else None
    except InvalidSessionIdError:
        return None


def _is_plain(session_id: str) -> bool:
    return (
        "/" not in session_id
        and "\\" not in session_id
        and session_id not in (".", "..")
        and unquote(session_id) == session_id
    )


def _encoded(session_id: str) -> str:
    # `quote` leaves dots alone, and an ID of nothing but dots is encoded because of them.
    return quote(session_id, safe="") if session_id.strip(".") else "%2E" * len(session_id)
