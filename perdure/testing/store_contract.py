"""The contract of a store, run against any store.

    async def test_my_store_keeps_the_contract():
        await check_store(MyStore)

Every promise is tried on a fresh store of its own, and all that are broken are named at the end.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from perdure.stores.contract import Store
from perdure.testing.store_promises import PROMISES, Broken, Promise

TIME_LIMIT = 60.0
"""Seconds that a promise may take; a store that takes longer hangs, or is of no use."""


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """One thing that a store does not do, and what it did."""

    name: str
    promise: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.promise}\n    {self.reason}"


class StoreContractError(AssertionError):
    """A store that does not keep the contract; `broken` lists every promise that it breaks."""

    def __init__(self, broken: list[BrokenPromise]) -> None:
        lines = "\n".join(f"- {promise}" for promise in broken)
        super().__init__(f"the store breaks {len(broken)} of {len(PROMISES)} promises:\n{lines}")
        self.broken = tuple(broken)


async def check_store(factory: Callable[[], Store | Awaitable[Store]]) -> None:
    """Try every promise of the contract on stores that `factory` makes.

    `factory` is called once for each promise and returns an empty store, at once or when awaited.
    The stores must not share what they hold.

    Raises:
        StoreContractError: promises are broken; the message names them all.
    """
    broken = [failure for promise in PROMISES if (failure := await _failure(promise, factory))]
    if broken:
        raise StoreContractError(broken)


async def _failure(
    promise: Promise, factory: Callable[[], Store | Awaitable[Store]]
) -> BrokenPromise | None:
    made = factory()
    store = await made if inspect.isawaitable(made) else made
    try:
        await asyncio.wait_for(promise(store), TIME_LIMIT)
    except Broken as broken:
        reason = str(broken)
    except TimeoutError:
        reason = f"it did not finish in {TIME_LIMIT:.0f} seconds"
    except Exception as error:  # noqa: BLE001 - whatever a store raises unasked breaks a promise
        reason = f"it raised {type(error).__name__}: {error}"
    else:
        return None
    return BrokenPromise(promise.__name__, (promise.__doc__ or "").strip(), reason)
