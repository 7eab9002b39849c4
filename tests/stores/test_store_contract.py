"""The kit that runs the contract of a store, against stores that keep it and stores that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.stores import FileStore, MemoryStore, Store
from perdure.testing import StoreContractError, check_store
from perdure.testing.store_promises import PROMISES
from tests.stores import broken_stores


async def test_the_memory_store_keeps_the_contract() -> None:
    """2.1: three operations, and what they promise."""
    await check_store(MemoryStore)


async def test_the_file_store_keeps_the_contract(tmp_path: Path) -> None:
    """2.1: three operations, and what they promise."""
    roots = (tmp_path / str(number) for number in range(len(PROMISES)))
    await check_store(lambda: FileStore(next(roots)))


async def test_the_file_store_keeps_the_contract_without_a_cache(tmp_path: Path) -> None:
    """2.1: three operations, and what they promise."""
    roots = (tmp_path / str(number) for number in range(len(PROMISES)))
    await check_store(lambda: FileStore(next(roots), cache_size=0))


@pytest.mark.parametrize(
    "store,promises",
    [
        (broken_stores.ReplacesASession, {"creates_once", "creates_for_one_caller"}),
        (broken_stores.LetsEveryCreatorWin, {"creates_for_one_caller"}),
        (broken_stores.CreatesOnAppend, {"knows_what_it_does_not_have"}),
        (broken_stores.FindsNothingForTheUnknown, {"knows_what_it_does_not_have"}),
        (broken_stores.IgnoresCase, {"takes_any_id"}),
        (
            broken_stores.SortsByTime,
            {
                "keeps_order",
                "keeps_every_kind",
                "keeps_any_text",
                "keeps_what_it_does_not_know",
            },
        ),
        (broken_stores.LeavesOutWhatItDoesNotKnow, {"keeps_what_it_does_not_know"}),
        (broken_stores.ForgetsMeta, {"keeps_every_kind"}),
        (broken_stores.CutsTextAtNul, {"keeps_any_text"}),
        (broken_stores.RoundsNumbers, {"keeps_numbers"}),
        (
            broken_stores.AppendsOneByOne,
            {
                "appends_all_or_nothing",
                "refuses_entries_without_id",
                "refuses_ephemeral_entries",
                "loses_nothing_to_others",
            },
        ),
        (broken_stores.StoresWithoutId, {"refuses_entries_without_id"}),
        (broken_stores.StoresEphemeral, {"refuses_ephemeral_entries"}),
        (broken_stores.RefusesToAppendNothing, {"appends_nothing"}),
        (
            broken_stores.DoublesARetry,
            {
                "repeats_without_effect",
                "completes_half_an_append",
                "keeps_the_first_of_an_id",
                "repeats_at_the_same_time_without_effect",
            },
        ),
        (broken_stores.DropsAKnownCall, {"completes_half_an_append", "keeps_the_first_of_an_id"}),
        (broken_stores.KeepsTheLast, {"keeps_the_first_of_an_id"}),
        (broken_stores.KeepsTheObjects, {"shares_nothing_with_its_callers"}),
        (broken_stores.ForgetsTheLimit, {"loads_paths"}),
        (broken_stores.ReturnsItsOwnList, {"shares_nothing_with_its_callers"}),
        (broken_stores.LosesAnAppendToAnother, {"loses_nothing_to_others"}),
        (broken_stores.ReturnsAThousand, {"grows_long"}),
        (broken_stores.ForgetsTheParent, {"keeps_the_record"}),
        (
            broken_stores.CannotBeReached,
            {promise.__name__ for promise in PROMISES},
        ),
    ],
)
async def test_the_kit_names_the_promises_that_a_store_breaks(
    store: type[Store], promises: set[str]
) -> None:
    with pytest.raises(StoreContractError) as caught:
        await check_store(store)
    assert {broken.name for broken in caught.value.broken} == promises


async def test_the_kit_says_what_was_promised_and_what_was_seen() -> None:
    with pytest.raises(StoreContractError) as caught:
        await check_store(broken_stores.ForgetsTheParent)
    [broken] = caught.value.broken
    assert broken.promise.startswith("`load_session`, where there is one, gives the ID")
    assert "the record of 'child/1' is " in broken.reason
    assert str(broken) in str(caught.value)


async def test_every_promise_is_broken_by_a_store_of_its_own() -> None:
    assert len({promise.__doc__ for promise in PROMISES}) == len(PROMISES)


async def test_a_factory_may_be_asynchronous() -> None:
    async def make() -> Store:
        return MemoryStore()

    await check_store(make)
