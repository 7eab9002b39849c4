"""Entries, the unit of a session's log, and the record that says that the session exists.

Every entry has a header: its ID, the ID of its parent, and when it was made. `text`, `image` and
`file` build what a person says; `ephemeral` marks an entry that is shown to the model in one run
and never stored.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import Field

from perdure.custom_entry import CustomEntry
from perdure.entry import Entry, OpaqueEntry, readers
from perdure.messages import FileBlock, ImageBlock, Message, Outline, Role, TextBlock
from perdure.timestamps import ZERO, Timestamp
from perdure.wire_model import Count, Flag, Text, WireModel

__all__ = [
    "CompactionEntry",
    "CustomEntry",
    "Entry",
    "MessageEntry",
    "OpaqueEntry",
    "SessionRecord",
    "ephemeral",
    "file",
    "image",
    "text",
]

_set: Final = object.__setattr__


class MessageEntry(Entry):
    """A message. With `meta` the transcript view hides it; an ephemeral one is never stored."""

    __slots__ = ("outline",)  # filled by the codec

    always_written: ClassVar[frozenset[str]] = Entry.always_written | {"message"}

    type: Literal["message"] = "message"
    meta: Flag = False
    message: Message = Field(default_factory=Message)
    ephemeral: Flag = Field(default=False, exclude=True)

    if TYPE_CHECKING:

        @property
        def outline(self) -> Outline:
            """What the projection to a model's view asks of the message."""

    else:

        def __getattr__(self, name: str) -> Any:
            if name == "message" and (source := self.source_line) is not None:
                # Asked for of all entries of a path; its own parts are taken from the line later.
                message = Message.__new__(Message)
                _set(message, "_source", source)
                _set(message, "outline", self.outline)
                self.__dict__["message"] = message
                return message
            return self.message.outline if name == "outline" else super().__getattr__(name)

    def _twin(self, source: bytes, changes: dict[str, Any]) -> Self:
        twin = super()._twin(source, changes)
        _set(twin, "outline", self.outline)
        return twin


class CompactionEntry(Entry):
    """A summary that stands for what lies before the entry `first_kept_id` on its path."""

    always_written: ClassVar[frozenset[str]] = Entry.always_written | {
        "summary",
        "first_kept_id",
        "tokens_before",
    }

    type: Literal["compaction"] = "compaction"
    summary: Text = ""
    first_kept_id: Text = ""
    tokens_before: Count = 0

    def with_first_kept(self, first_kept_id: str) -> Self:
        """The same entry with another first kept one; all else is kept, token for token."""
        return self._with({"first_kept_id": first_kept_id})


readers.update(message=MessageEntry, compaction=CompactionEntry)


class SessionRecord(WireModel):
    """What says that a session exists, and which one it was forked from. Written once."""

    always_written: ClassVar[frozenset[str]] = frozenset({"type", "id", "created_at"})

    type: Literal["session_init"] = "session_init"
    id: Text
    parent_id: Text = ""
    created_at: Timestamp = ZERO


def text(text: str, *, meta: bool = False) -> MessageEntry:
    """What a person wrote."""
    return _said(TextBlock(text=text), meta)


def image(data: bytes | str, mime_type: str, *, meta: bool = False) -> MessageEntry:
    """An image from a person: its bytes, or those in base64."""
    return _said(ImageBlock(data=_base64(data), mime_type=mime_type), meta)


def file(
    *,
    data: bytes | str = "",
    url: str = "",
    file_id: str = "",
    mime_type: str = "",
    filename: str = "",
    meta: bool = False,
) -> MessageEntry:
    """A file from a person: its bytes (or those in base64), a URL, or a provider's ID of it.

    Raises `ValueError` unless exactly one of the three is given.
    """
    if sum(map(bool, (data, url, file_id))) != 1:
        raise ValueError("a file is given by exactly one of data, url and file_id")
    block = FileBlock(
        data=_base64(data), url=url, file_id=file_id, mime_type=mime_type, filename=filename
    )
    return _said(block, meta)


def ephemeral(entry: MessageEntry | str) -> MessageEntry:
    """The entry as one that the model sees in one run and the store never keeps."""
    entry = text(entry) if isinstance(entry, str) else entry
    return entry.model_copy(update={"ephemeral": True})


def _said(block: TextBlock | ImageBlock | FileBlock, meta: bool) -> MessageEntry:
    return MessageEntry(meta=meta, message=Message(role=Role.USER.value, content=[block]))


def _base64(data: bytes | str) -> str:
    return data if isinstance(data, str) else base64.b64encode(data).decode()
