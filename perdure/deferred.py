"""Models that are read from a line and take it apart only when they are first used.

A log of a hundred thousand entries is loaded whole, and few of its messages are looked at: what
is kept of each is its line. Whoever decodes has checked the line, so the first use cannot fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from perdure.wire_model import WireModel

_SLOTS_OF_PYDANTIC: Final = frozenset(
    {"__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"}
)


class Deferred(WireModel):
    """A model that may hold a source in place of some of its fields.

    Until its first use pydantic's own slots are empty; reading any of them, or a field that is
    not there, fills everything from the source.
    """

    __slots__ = ("_source",)

    if TYPE_CHECKING:
        _source: bytes

    def _from_source(self, source: bytes) -> Self:
        """The same model, made at once."""
        raise NotImplementedError

    def source_line(self) -> bytes | None:
        """The line that the model was read from; None when it was not read, or was changed."""
        try:
            source: bytes = object.__getattribute__(self, "_source")
        except AttributeError:
            return None
        return source

    def _is_complete(self) -> bool:
        try:
            object.__getattribute__(self, "__pydantic_fields_set__")
        except AttributeError:
            return False
        return True

    def _complete(self) -> None:
        """Fill what is still only in the source. Twice, by two threads, does no harm."""
        if self._is_complete():
            return
        source = self.source_line()
        if source is None:
            return
        whole = self._from_source(source)
        fields = self.__dict__
        for name, value in whole.__dict__.items():
            fields.setdefault(name, value)
        object.__setattr__(self, "__pydantic_extra__", whole.__pydantic_extra__)
        object.__setattr__(self, "__pydantic_private__", whole.__pydantic_private__)
        # Last, since it says that the rest is there.
        object.__setattr__(self, "__pydantic_fields_set__", whole.__pydantic_fields_set__)

    if not TYPE_CHECKING:  # else any misspelt attribute would pass the type checker

        def __getattr__(self, name: str) -> Any:
            foreign = name.startswith("__") and name not in _SLOTS_OF_PYDANTIC
            if name != "_source" and not foreign and not self._is_complete():
                self._complete()
                try:
                    return object.__getattribute__(self, name)
                except AttributeError:
                    pass
            return super().__getattr__(name)

    def __eq__(self, other: object) -> bool:
        self._complete()
        if isinstance(other, Deferred):
            other._complete()
        return super().__eq__(other)

    def __hash__(self) -> int:
        raise NotImplementedError

    def __repr_args__(self) -> Any:
        self._complete()
        return super().__repr_args__()

    def __iter__(self) -> Any:
        self._complete()
        return super().__iter__()

    def __copy__(self) -> Self:
        self._complete()
        return super().__copy__()

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # Without the source: what is in a deep copy may be changed, and the source would not be.
        self._complete()
        return super().__deepcopy__(memo)

    def __getstate__(self) -> dict[Any, Any]:
        self._complete()
        return super().__getstate__()
