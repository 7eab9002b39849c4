"""What a store may have beside the contract.

A store that wraps another has of these what the other has: `below` in a property makes the rest as
absent as it is there.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

from perdure.entries import Entry, SessionRecord
from perdure.errors import StoreError
from perdure.stores.contract import Store


class LoadPath(Protocol):
    """What `LoadsPaths.load_path` is."""

    async def __call__(
        self, session_id: str, leaf_id: str | None = None, *, limit: int | None = None
    ) -> list[Entry]:
        """See `LoadsPaths.load_path`."""
        ...


class LoadsPaths(Protocol):
    """A store that finds an entry by its ID, and so need not read a log to follow one path of it.

    Workers and clients that have nothing of a session in memory then load what they need: the end
    of the path that a model is shown, the last messages of a run.
    """

    @property
    def load_path(self) -> LoadPath:
        """Return the entries from the root to the leaf, or the last `limit` of them.

        It is what `Transcript.path` makes of the whole log. Without a leaf, the path to the entry
        that was appended last. Empty when the log has no such entry. Fewer than `limit` means that
        the path goes no further.

        Raises:
            SessionNotFoundError: nobody created the session.
        """
        ...


class RestoreSession(Protocol):
    """What `restore_session` is."""

    async def __call__(self, record: SessionRecord) -> None:
        """Register a session with the record that it had in another store. Raises
        SessionExistsError when the ID is taken.
        """
        ...


def path_loader(store: Store) -> LoadsPaths | None:
    """The store, if it loads paths."""
    return cast("LoadsPaths", store) if hasattr(store, "load_path") else None


def loads_what_is_new(store: Store) -> bool:
    """Whether to load a log again costs no more than what was appended since: the store says so."""
    return getattr(store, "loads_what_is_new", False) is True


def extension(store: Store, method: str, ability: str) -> object:
    """A method that is not part of the contract. Raises StoreError when the store lacks it."""
    found = getattr(store, method, None)
    if found is None:
        raise StoreError(f"{store!r} cannot {ability}")
    return found


def below(wrapper: Store, store: Store, method: str) -> Any:
    """A method of the store that is wrapped. Raises AttributeError, so that the wrapper lacks what
    the store lacks.
    """
    found = getattr(store, method, None)
    if found is None:
        raise AttributeError(f"{wrapper!r} has no {method}, as what it wraps has none")
    return found
