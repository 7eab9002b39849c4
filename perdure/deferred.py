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
_set: Final = object.__setattr__


class Deferred(WireModel):
    """A model that may hold a source in place of some of its fields.

    Until its first use pydantic's own slots are empty; reading one of them, or a field that is
    not there, fills it from the source. To everyone else it is as any other model.
    """

    __slots__ = ("_source",)

    def _from_source(self, source: bytes) -> Self:
        """The same model, made at once."""
        raise NotImplementedError

    @property
    def source_line(self) -> bytes | None:
        """The line that the model was read from; None when it was not read, or was changed."""
        try:
            # Not `self._source`, which may be the name of an unknown key as well.
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

    def _fill(self, name: str) -> None:
        """Make one field readable, and perhaps all others too."""
        self._complete()

    def _complete(self) -> None:
        """Fill what is still only in the source. Twice, by two threads, does no harm."""
        source = self.source_line
        if source is None or self._is_complete():
            return
        whole = self._from_source(source)
        # In the order of the fields; what is there already may be shared, and stays.
        _set(self, "__dict__", {**whole.__dict__, **self.__dict__})
        _set(self, "__pydantic_extra__", whole.__pydantic_extra__)
        _set(self, "__pydantic_private__", whole.__pydantic_private__)
        # Last, since it says that the rest is there.
        _set(self, "__pydantic_fields_set__", whole.__pydantic_fields_set__)

    if not TYPE_CHECKING:  # else the type checker would take any misspelt attribute

        def __getattr__(self, name: str) -> Any:
            if name[0] == "_" and name not in _SLOTS_OF_PYDANTIC:
                return super().__getattr__(name)
            if self._is_complete() or self.source_line is None:
                return super().__getattr__(name)
            self._fill(name)
            return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        self._complete()
        if isinstance(other, Deferred):
            other._complete()
        return super().__eq__(other)

    def __hash__(self) -> int:
        # Equal models have equal dumps; what differs only in values that cannot be hashed collides.
        return hash((type(self), *(v for v in self.to_wire().values() if isinstance(v, str))))

    def __repr_args__(self) -> Any:
        self._complete()
        return super().__repr_args__()

    def __iter__(self) -> Any:
        self._complete()
        return super().__iter__()

    def __dir__(self) -> Any:
        self._complete()
        return super().__dir__()

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
