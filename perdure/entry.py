"""What all entries share: a header, and the line that they were read from."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from pydantic import ModelWrapValidatorHandler

from perdure.deferred import Deferred
from perdure.json_reader import loads_json
from perdure.json_splice import splice
from perdure.timestamps import ZERO, Timestamp
from perdure.wire_model import Text

_set: Final = object.__setattr__


class Entry(Deferred):
    """One entry of a session's log.

    `Entry.model_validate` of a line's JSON object gives the entry of its type, and of its kind if
    it is a custom one.
    """

    always_written: ClassVar[frozenset[str]] = frozenset({"type", "id", "created_at"})
    sorts_keys: ClassVar[bool] = False
    """Whether the keys of the line are in byte order, as custom entries have them."""

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
        source = self.source_line
        if source is None:
            return self.model_copy(update=changes)
        texts = {key: str(value) for key, value in changes.items()}
        omit = ("parent_id",) if texts.get("parent_id") == "" else ()
        return self._twin(splice(source, texts, omit=omit, sort_keys=self.sorts_keys), changes)

    def _twin(self, source: bytes, changes: dict[str, Any]) -> Self:
        if self._is_complete():
            twin = self.__copy__()
            twin.__dict__.update(changes)
        else:
            twin = type(self).__new__(type(self))
            _set(twin, "__dict__", {**self.__dict__, **changes})
        _set(twin, "_source", source)
        return twin

    @classmethod
    def reader_of(cls, data: dict[str, Any]) -> Self:
        """The entry of a line's JSON object, whose type this class reads."""
        return cls.model_validate(data)

    def _from_source(self, source: bytes) -> Self:
        data = loads_json(source, allow_overflow=True)
        data.pop("ephemeral", None)  # as the codec does
        return self.model_validate(data)

    def _fill(self, name: str) -> None:
        source = self.source_line
        if source is None or name not in ("type", "created_at"):
            self._complete()
            return
        # Asked for of many entries, in trees and listings, whose messages nobody looks at.
        data = loads_json(source, allow_overflow=True)
        created_at = data.get("created_at")
        self.__dict__["type"] = data["type"]
        self.__dict__["created_at"] = ZERO if created_at is None else Timestamp.parse(created_at)

    @classmethod
    def _from_wire(cls, data: dict[str, Any], handler: ModelWrapValidatorHandler[Self]) -> Self:
        kind = data.get("type")
        if cls is Entry and kind and isinstance(kind, str):
            entry: Any = readers.get(kind, OpaqueEntry).reader_of(data)
            return entry  # type: ignore[no-any-return]
        return super()._from_wire(data, handler)

    def model_copy(self, *, update: Any = None, deep: bool = False) -> Self:
        """As pydantic's. A copy that is changed has no line of its own any more."""
        copied = super().model_copy(update=update, deep=deep)
        if update and copied.source_line is not None:
            object.__delattr__(copied, "_source")
        return copied

    def __copy__(self) -> Self:
        copied = super().__copy__()
        if (source := self.source_line) is not None:
            _set(copied, "_source", source)
        return copied

    def __getstate__(self) -> dict[Any, Any]:
        return {**super().__getstate__(), "source": self.source_line}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        if (source := state["source"]) is not None:
            _set(self, "_source", source)

    def __hash__(self) -> int:
        return hash(self.id)


class OpaqueEntry(Entry):
    """An entry of a type that this version does not know: kept, shown as such, written on."""


readers: Final[dict[str, type[Entry]]] = {}
"""The classes that read the lines of each type; an `OpaqueEntry` is what no other reads."""
