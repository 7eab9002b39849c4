"""The answers of sub-agents."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeGuard
from urllib.parse import quote

from temporalio import activity

from perdure import names
from perdure.activities.failures import as_failure
from perdure.entries import Entry, MessageEntry
from perdure.errors import PerdureError
from perdure.messages import FileBlock, ImageBlock, Role, TextBlock
from perdure.protocol import Answer, CallModel, ReadAnswer
from perdure.tool_texts import cut_texts
from perdure.tools import MAX_RESULT
from perdure.transcript_cache import Transcripts

_SAID = (TextBlock, ImageBlock, FileBlock)


_LONGEST_ID = 160
"""Bytes of a child's ID. A longer one, of a deep nesting or a long parent, is not built from its
parent's."""


def child_id(request: CallModel, tool_name: str, call_id: str, place: int) -> str:
    """The ID of the session that a sub-agent's call gets: its parent's, and a part of its own. It
    is the same whenever it is computed: of all calls in the session, one is at this place in the
    message after this leaf in this run.
    """
    mark = f"{request.session_id}\0{request.run_id}\0{request.leaf_id}\0{place}\0{call_id}"
    digest = hashlib.sha256(mark.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    own = f"{tool_name}-{digest}"
    whole = f"{request.session_id}.{own}"
    return whole if len(quote(whole, safe="")) <= _LONGEST_ID else own


class SubAgentActivities:
    """Reads what an agent has answered in its session."""

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts

    @activity.defn(name=names.READ_ANSWER)
    async def read_answer(self, request: ReadAnswer) -> Answer:
        """The content of the last message of the model before the leaf."""
        try:
            path = await self._transcripts.path(request.session_id, request.leaf_id, _has_answer)
        except PerdureError as error:
            raise as_failure(error) from None
        for entry in reversed(path):
            if _is_answer(entry):
                said = [block for block in entry.message.content if isinstance(block, _SAID)]
                shown = cut_texts(tuple(_unsigned(block) for block in said), MAX_RESULT)
                return Answer(content=[block.to_wire() for block in shown])
        return Answer()


def _has_answer(path: Sequence[Entry]) -> bool:
    return any(map(_is_answer, path))


def _is_answer(entry: Entry) -> TypeGuard[MessageEntry]:
    return isinstance(entry, MessageEntry) and entry.message.role == Role.ASSISTANT


def _unsigned(
    block: TextBlock | ImageBlock | FileBlock,
) -> TextBlock | ImageBlock | FileBlock:
    # A provider's mark on its own words means nothing in a tool's result.
    return TextBlock(text=block.text) if isinstance(block, TextBlock) else block
