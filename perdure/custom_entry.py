"""Entries of an application's own kinds."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal, Self

from pydantic import (
    AliasChoices,
    ConfigDict,
    ModelWrapValidatorHandler,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic.fields import FieldInfo

from perdure.entry import Entry, readers
from perdure.errors import EntryKindError
from perdure.wire_model import Text

_kinds: Final[dict[str, type[CustomEntry]]] = {}


class CustomEntry(Entry):
    """An application's own entry: stored, and never sent to a model.

    `class Artifact(CustomEntry, kind="artifact")` registers the kind, once; a subclass without a
    kind is a base for others. An entry of a kind that is not registered, or whose fields do not
    fit, is read as bare `CustomEntry`, which keeps all that it holds as unknown keys.
    """

    model_config = ConfigDict(populate_by_name=True)

    always_written: ClassVar[frozenset[str]] = Entry.always_written | {"kind"}
    sorts_keys: ClassVar[bool] = True
    registered_kind: ClassVar[str | None] = None

    type: Literal["custom"] = "custom"
    kind: Text = ""

    def __init_subclass__(cls, *, kind: str | None = None, **kwargs: Any) -> None:
        # The kind is registered by `__pydantic_init_subclass__`, when the fields are known.
        super().__init_subclass__(**kwargs)

    @classmethod
    def __pydantic_init_subclass__(cls, *, kind: str | None = None, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.absent_when_null = CustomEntry.absent_when_null
        _check_fields(cls)
        if kind is not None:
            _register(cls, kind)

    @classmethod
    def reader_of(cls, data: dict[str, Any]) -> Self:
        """The entry of a line's JSON object, by its kind."""
        kind = data.get("kind")
        registered: Any = _kinds.get(kind) if isinstance(kind, str) else None
        if registered is not None:
            try:
                return registered.model_validate(data)  # type: ignore[no-any-return]
            except Exception:  # noqa: BLE001 - whatever an application's own validators raise:
                pass  # one program's idea of a kind must not make a session unreadable
        return cls.model_validate(data)

    @classmethod
    def _from_wire(cls, data: dict[str, Any], handler: ModelWrapValidatorHandler[Self]) -> Self:
        if cls.registered_kind is not None:
            kind = data.get("kind")
            if kind is not None and kind != cls.registered_kind:
                raise ValueError(f"the kind of {cls.__name__} is {cls.registered_kind!r}")
            data = {**data, "kind": cls.registered_kind}
        return super()._from_wire(data, handler)

    def to_wire(self) -> dict[str, Any]:
        """The wire form; the application's fields as pydantic dumps them."""
        if type(self).model_fields.keys() == CustomEntry.model_fields.keys():
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
        for name in _OWN_KEYS:
            # An alias generator of the application's is not meant for the header.
            alias = type(self).model_fields[name].serialization_alias
            if info.by_alias and alias in wire:
                wire[name] = wire.pop(alias)
        if not wire.get("parent_id"):
            wire.pop("parent_id", None)
        return dict(sorted(wire.items()))


readers["custom"] = CustomEntry
_OWN_KEYS: Final = frozenset(CustomEntry.model_fields)


def _check_fields(cls: type[CustomEntry]) -> None:
    for name, field in cls.model_fields.items():
        own = CustomEntry.model_fields.get(name)
        if own is None:
            takes = bool(_aliases(field) & _OWN_KEYS)
        else:
            takes = field.annotation is not own.annotation
        if takes:
            raise EntryKindError(
                f"{cls.__name__}.{name} takes a name of the entry's own "
                f"({', '.join(sorted(_OWN_KEYS))}); rename the field"
            )


def _aliases(field: FieldInfo) -> set[object]:
    aliases: list[object] = [field.alias, field.serialization_alias]
    read = field.validation_alias
    aliases += read.choices if isinstance(read, AliasChoices) else [read]
    return {alias for alias in aliases if isinstance(alias, str)}


def _register(cls: type[CustomEntry], kind: str) -> None:
    if not kind:
        raise EntryKindError(f"the kind of {cls.__name__} is empty; name it, as in kind='note'")
    if kind in _kinds:
        raise EntryKindError(
            f"the kind {kind!r} is registered, for {_kinds[kind].__qualname__}; choose another"
        )
    cls.registered_kind = kind
    _kinds[kind] = cls
