"""Session IDs: which strings are one, and the workflow ID that each stands for.

The application chooses the ID and its meaning. Nothing about it is normalized: two IDs that differ
in one code point are two sessions.
"""

from __future__ import annotations

import unicodedata
from urllib.parse import quote, unquote

from perdure.errors import InvalidSessionIdError

WORKFLOW_ID_PREFIX = "session:"

WORKFLOW_ID_LIMIT = 1000
"""Bytes. Temporal takes no longer workflow ID with its default settings."""


def check_session_id(session_id: str) -> str:
    """Return the ID as it is, if it can name a session.

    Any text does, unless it is empty, holds a control character (Unicode category Cc) or a lone
    surrogate (which has no UTF-8 form), or is too long to make a workflow ID of.

    Raises:
        InvalidSessionIdError: the ID cannot name a session; the message says why.
    """
    workflow_id(session_id)
    return session_id


def workflow_id(session_id: str, instance: str = "") -> str:
    """Return the ID of the workflow that runs the session.

    It is `session:` and the session ID; for a second live instance of the same session, `@` and the
    name of the instance follow. Both parts are percent-encoded but for unreserved characters, so
    that the text is plain ASCII and `session_id_of` can take it apart again.

    Raises:
        InvalidSessionIdError: either part cannot name a session, or both are too long together.
    """
    if not isinstance(session_id, str):
        raise InvalidSessionIdError(str(session_id), "is no text")
    name = WORKFLOW_ID_PREFIX + _encoded(session_id)
    if instance:
        name += "@" + _encoded(instance)
    if len(name) > WORKFLOW_ID_LIMIT:
        raise InvalidSessionIdError(
            session_id,
            f"makes a workflow ID of {len(name)} bytes, the limit is {WORKFLOW_ID_LIMIT};"
            " choose a shorter one",
        )
    return name


def session_id_of(workflow_id: str) -> str:
    """Return the session ID that a workflow ID was made from, whichever instance it names.

    Raises:
        InvalidSessionIdError: this is not the ID of a session's workflow.
    """
    encoded, _, instance = workflow_id.removeprefix(WORKFLOW_ID_PREFIX).partition("@")
    session_id = unquote(encoded)
    if not _makes(workflow_id, session_id, unquote(instance)):
        raise InvalidSessionIdError(
            workflow_id, f"is no workflow ID of a session; those start with {WORKFLOW_ID_PREFIX!r}"
        )
    return session_id


def _makes(name: str, session_id: str, instance: str) -> bool:
    try:
        return workflow_id(session_id, instance) == name
    except InvalidSessionIdError:
        return False


def _encoded(part: str) -> str:
    """Percent-encode one part of a workflow ID, after a look at what may not be in it."""
    if not part:
        raise InvalidSessionIdError(part, "is empty; give it at least one character")
    for position, character in enumerate(part):
        category = unicodedata.category(character)
        if category == "Cc":
            raise InvalidSessionIdError(
                part, f"holds a control character at position {position}; leave it out"
            )
        if category == "Cs":
            raise InvalidSessionIdError(
                part, f"holds half a surrogate pair at position {position}; leave it out"
            )
    return quote(part, safe="")
