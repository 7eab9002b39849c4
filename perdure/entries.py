"""Entries, the unit of a session's log, and the record that says that the session exists.

Every entry has a header: its ID, the ID of its parent, and when it was made. `text`, `image` and
`file` build what a person says; `ephemeral` marks an entry that is shown to the model in one run
and never stored.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic import SerializationInfo, SerializerFunctionWrapHandler, model_serializer

from perdure.deferred import Deferred
from perdure.errors import EntryKindError
from perdure.json_reader import loads_json
from perdure.json_splice import splice
from perdure.messages import FileBlock, ImageBlock, Message, Role, TextBlock
from perdure.timestamps import ZERO, Timestamp
from perdure.wire_model import Count, Flag, Text, WireModel

HEADER: Final = ("id", "parent_id", "created_at")


class Entry(Deferred):
    """What all entries share. `Entry.model_validate` of a wire form gives the entry of its type."""

    always_written: ClassVar[frozenset[str]] = frozenset({"type", "id", "created_at"})
    sorts_keys: ClassVar[bool] = False
    """Whether the line's keys are in byte order, as custom entries have them."""

    type: Text = ""
    id: Text = ""
    parent_id: Text = ""
    created_at: Timestamp = ZERO

    def with_header(
        self,
        *,
        id: str | None = None,
        parent_id: str | None = None,
        created_at: Timestamp | None = None,
    ) -> Self:
        """The same entry under another header; all else is kept, token for token."""
        return self._with({"id": id, "parent_id": parent_id, "created_at": created_at})

    def _with(self, wanted: dict[str, Any]) -> Self:
        changes = {
            key: value
            for key, value in wanted.items()
            if value is not None and str(value) != str(getattr(self, key))
        }
        if not changes:
            return self
        source = self.source_line()
        if source is None:
            return self.model_copy(update=changes)
        twin = type(self).__new__(type(self))
        object.__setattr__(twin, "__dict__", {**self.__dict__, **changes})
        wire = {key: str(value) for key, value in changes.items()}
        omit = {"parent_id"} if wire.get("parent_id") == "" else set()
        line = splice(source, wire, omit=omit, sort_keys=self.sorts_keys)
        object.__setattr__(twin, "_source", line)
        return twin

    def _from_source(self, source: bytes) -> Self:
        data = loads_json(source, allow_overflow=True)
        data.pop("ephemeral", None)
        return self.model_validate(data)

    @model_validator(mode="wrap")
    @classmethod
    def _from_wire(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if cls is Entry and isinstance(data, dict) and data.get("type"):
            found: Any = entry_class(data).model_validate(data)
            return found  # type: ignore[no-any-return]
        return super()._from_wire(data, handler)  # type: ignore[misc]

    def model_copy(self, *, update: Any = None, deep: bool = False) -> Self:
        """As pydantic's. A copy that is changed has no line of its own any more."""
        twin = super().model_copy(update=update, deep=deep)
        if update and twin.source_line() is not None:
            object.__delattr__(twin, "_source")
        return twin

    def __copy__(self) -> Self:
        twin = super().__copy__()
        if (source := self.source_line()) is not None:
            object.__setattr__(twin, "_source", source)
        return twin

    def __getstate__(self) -> dict[Any, Any]:
        return {**super().__getstate__(), "source": self.source_line()}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        if (source := state["source"]) is not None:
            object.__setattr__(self, "_source", source)

    def __hash__(self) -> int:
        return hash(self.id)


class MessageEntry(Entry):
    """A message. With `meta` the transcript view hides it; an ephemeral one is never stored."""

    type: Literal["message"] = "message"
    meta: Flag = False
    message: Message = Field(default_factory=Message)
    ephemeral: Flag = Field(default=False, exclude=True)

    always_written: ClassVar[frozenset[str]] = Entry.always_written | {"message"}


class CompactionEntry(Entry):
    """A summary that stands for what lies before the entry `first_kept_id` on its path."""

    type: Literal["compaction"] = "compaction"
    summary: Text = ""
    first_kept_id: Text = ""
    tokens_before: Count = 0

    always_written: ClassVar[frozenset[str]] = Entry.always_written | {
        "summary",
        "first_kept_id",
        "tokens_before",
    }

    def with_first_kept(self, first_kept_id: str) -> Self:
        """The same entry with another first kept one; all else is kept, token for token."""
        return self._with({"first_kept_id": first_kept_id})


class OpaqueEntry(Entry):
    """An entry of a type that this version does not know: kept, shown as such, written on."""


class CustomEntry(Entry):
    """An application's own entry: stored, and never sent to a model.

    `class Artifact(CustomEntry, kind="artifact")` registers the kind, once; a subclass without a
    kind is a base for others. Entries of a kind that is not registered, or whose fields do not
    fit, are read as bare `CustomEntry`: they keep all that they hold as unknown keys.
    """

    model_config = ConfigDict(populate_by_name=True)

    always_written: ClassVar[frozenset[str]] = Entry.always_written | {"kind"}
    sorts_keys: ClassVar[bool] = True
    registered_kind: ClassVar[str | None] = None

    type: Literal["custom"] = "custom"
    kind: Text = ""

    if TYPE_CHECKING:

        def __init_subclass__(cls, *, kind: str | None = None, **kwargs: Any) -> None: ...

    else:

        def __init_subclass__(cls, *, kind=None, **kwargs):
            super().__init_subclass__(**kwargs)

    @classmethod
    def __pydantic_init_subclass__(cls, *, kind: str | None = None, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        _check_fields(cls)
        if kind is not None:
            _register(cls, kind)

    @model_validator(mode="wrap")
    @classmethod
    def _from_wire(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(data, dict) and cls.registered_kind is not None:
            kind = data.get("kind")
            if kind is not None and kind != cls.registered_kind:
                raise ValueError(f"the kind of {cls.__name__} is {cls.registered_kind!r}")
            data = {**data, "kind": cls.registered_kind}
        return super()._from_wire(data, handler)  # type: ignore[misc]

    def to_wire(self) -> dict[str, Any]:
        if set(type(self).model_fields) == set(CustomEntry.model_fields):
            wire = super().to_wire()
        else:
            wire = type(self).__pydantic_serializer__.to_python(
                self, mode="json", by_alias=True, warnings=False
            )
        return dict(sorted(wire.items()))

    @model_serializer(mode="wrap")
    def _serialize(  # type: ignore[override]
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        self._complete()
        wire: dict[str, Any] = handler(self)
        if not wire.get("parent_id"):
            wire.pop("parent_id", None)
        return dict(sorted(wire.items()))


_kinds: Final[dict[str, type[CustomEntry]]] = {}
_OWN_KEYS: Final = frozenset(CustomEntry.model_fields)


def _check_fields(cls: type[CustomEntry]) -> None:
    for name, field in cls.model_fields.items():
        own = CustomEntry.model_fields.get(name)
        taken = {field.alias, field.validation_alias, field.serialization_alias} & _OWN_KEYS
        if taken or (own is not None and field.annotation is not own.annotation):
            raise EntryKindError(
                f"{cls.__name__}.{name} takes a name of the entry's own "
                f"({', '.join(sorted(_OWN_KEYS))}); rename the field"
            )


def _register(cls: type[CustomEntry], kind: str) -> None:
    if not isinstance(kind, str) or not kind:
        raise EntryKindError(f"the kind of {cls.__name__} is empty; name it, as in kind='note'")
    if kind in _kinds:
        raise EntryKindError(
            f"the kind {kind!r} is registered, for {_kinds[kind].__qualname__}; choose another"
        )
    cls.registered_kind = kind
    _kinds[kind] = cls


_TYPES: Final[dict[str, type[Entry]]] = {
    "message": MessageEntry,
    "compaction": CompactionEntry,
    "custom": CustomEntry,
}


def entry_class(data: dict[str, Any]) -> type[Entry]:
    """The class that reads a wire form: by its type, and of custom ones by their kind."""
    cls = _TYPES.get(data["type"], OpaqueEntry)
    if cls is CustomEntry and (custom := _kinds.get(data.get("kind", ""))) is not None:
        try:
            custom.model_validate(data)
        except ValidationError:
            return CustomEntry
        return custom
    return cls


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
