"""Models whose dump is the wire form: known keys in the written order, empty ones left out.

What a model does not know it keeps, after what it knows. An explicit null of a known key means
that the key is absent. Text may hold lone surrogates, which pydantic's own `str` refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    SerializationInfo,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from perdure.timestamps import Timestamp


class _AnyText:
    """A schema for text that takes every `str`."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.json_or_python_schema(
            json_schema=core_schema.str_schema(strict=True),
            python_schema=core_schema.is_instance_schema(str),
        )


Text = Annotated[str, _AnyText]
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
"""An integer of 64 bits: the log's other readers refuse a file that holds a larger one."""
Amount = Annotated[float, Field(strict=True, allow_inf_nan=False)]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# What makes no difference to the wire form.
_NEUTRAL_OPTIONS: Final = frozenset({"mode", "by_alias", "warnings", "round_trip"})


class WireModel(BaseModel):
    """A frozen model that keeps unknown keys and dumps itself as the wire form."""

    model_config = ConfigDict(frozen=True, extra="allow")

    always_written: ClassVar[frozenset[str]] = frozenset({"type"})
    """Keys that are written even when they are empty."""

    absent_when_null: ClassVar[frozenset[str]] = frozenset()
    """Keys for which a null means that they are not there."""

    has_no_aliases: ClassVar[bool] = True

    known_keys: ClassVar[tuple[str, ...]] = ()
    """The keys that perdure gives a meaning, in the order in which they are written."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.known_keys = tuple(
            name for name, field in cls.model_fields.items() if not field.exclude
        )
        cls.absent_when_null = frozenset(cls.known_keys)
        cls.has_no_aliases = not any(
            field.serialization_alias for field in cls.model_fields.values()
        )

    def to_wire(self) -> dict[str, Any]:
        """The wire form, of plain JSON values; those that were given as such are not copied."""
        wire: dict[str, Any] = {}
        always = self.always_written
        for key in self.known_keys:
            value = wire_value(getattr(self, key))
            if value or key in always:
                wire[key] = value
        if extra := self.__pydantic_extra__:
            wire.update(extra)
        return wire

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """As pydantic's; with `mode="json", by_alias=True` also for any depth and any text."""
        plain = options.get("mode") == "json" and options.keys() <= _NEUTRAL_OPTIONS
        if plain and (options.get("by_alias") or self.has_no_aliases):
            return self.to_wire()
        return super().model_dump(**options)

    @model_serializer(mode="plain")
    def _serialize(self, info: SerializationInfo) -> dict[str, Any]:
        wire = self.to_wire()
        if info.include is not None:
            wire = {key: value for key, value in wire.items() if key in info.include}
        if info.exclude is not None:
            wire = {key: value for key, value in wire.items() if not _excluded(key, info.exclude)}
        return wire

    @model_validator(mode="wrap")
    @classmethod
    def _validate(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return cls._from_wire(data, handler) if isinstance(data, dict) else handler(data)

    @classmethod
    def _from_wire(cls, data: dict[str, Any], handler: ModelWrapValidatorHandler[Self]) -> Self:
        """The model of a wire form, or of what a constructor was given."""
        if None in data.values():
            absent = cls.absent_when_null
            data = {
                key: item for key, item in data.items() if item is not None or key not in absent
            }
        if _are_plain(data):
            return handler(data)
        unreadable = {key: item for key, item in data.items() if _has_surrogate(key)}
        # pydantic refuses such keys; no known key is one.
        model = handler({key: item for key, item in data.items() if key not in unreadable})
        extra = {**(model.__pydantic_extra__ or {}), **unreadable}
        object.__setattr__(model, "__pydantic_extra__", extra)
        return model


def wire_value(value: Any) -> Any:
    """The wire form of one value of a model."""
    if isinstance(value, WireModel):
        return value.to_wire()
    if isinstance(value, tuple):
        return [wire_value(item) for item in value]
    if isinstance(value, Timestamp):
        return str(value)
    return value


def _are_plain(keys: Iterable[Any]) -> bool:
    try:
        return "".join(keys).isascii()
    except TypeError:
        return False


def _has_surrogate(key: object) -> bool:
    return isinstance(key, str) and _SURROGATE.search(key) is not None


def _excluded(key: str, exclude: Any) -> bool:
    return exclude.get(key) in (True, ...) if isinstance(exclude, Mapping) else key in exclude
