"""The search attributes of a session, by which the Temporal UI and `perdure ls` find it.

Each change is an event of history, so there are few: a run costs two. What decides on one is in
history, and never how far messages have come in meanwhile, which a replay may see otherwise.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from perdure import names
from perdure.protocol import SeenOutside, SessionState

AttributeStatus: TypeAlias = Literal["idle", "running", "waiting", "closed"]
"""`waiting` is for a person, who has to answer a call."""

_STATUS = SearchAttributeKey.for_keyword(names.SESSION_STATUS)
_TURNS = SearchAttributeKey.for_int(names.SESSION_TURNS)
_PARENT = SearchAttributeKey.for_keyword(names.SESSION_PARENT)
_AGENT = SearchAttributeKey.for_keyword(names.SESSION_AGENT)

_LONGEST = 255
"""Characters of a keyword that every database of Temporal's takes."""


def see_as(state: SessionState, seen: SeenOutside) -> None:
    """From now on the session is seen as its worker says."""
    state.has_attributes = seen.has_attributes
    state.hides_text = seen.hides_text
    if seen.hides_text:
        state.said = []


def show_status(state: SessionState, status: AttributeStatus) -> None:
    """Let the session be found by its status and by whatever else has changed; by nothing where the
    server does not know the attributes, because it would refuse the whole workflow task.
    """
    if not state.has_attributes:
        return
    known = workflow.info().typed_search_attributes
    updates: list[SearchAttributeUpdate[Any]] = []
    for key, value in ((_STATUS, status), (_AGENT, state.agent), (_PARENT, state.parent_id)):
        if value and len(value) <= _LONGEST and known.get(key) != value:
            updates.append(key.value_set(value))
    if known.get(_TURNS) != state.turns:
        updates.append(_TURNS.value_set(state.turns))
    if updates:
        workflow.upsert_search_attributes(updates)
