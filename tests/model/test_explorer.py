"""The explorer finds nothing in perdure, and everything in a perdure without its safeguards."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.model import scenarios, weakened
from tests.model.explorer import explore
from tests.model.weakened import Weakened
from tests.model.world import Client, Scenario


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The SDK logs a warning for each task that fails, and a thousand states have some."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("scenario", scenarios.SMALL, ids=lambda scenario: scenario.name)
def test_no_order_of_things_breaks_a_promise(scenario: Scenario) -> None:
    """1.5, 2.8, 5.3, 6.3: acknowledged is stored once, receipts are in the order of the path,
    nothing is made up, one child per fork, a tool that may run once does, and nobody waits for
    ever.
    """
    explored = explore(scenario)
    assert explored.counterexample is None, f"\n{explored.counterexample}"
    assert explored.states > 20
    assert explored.ends > 3


COPY, WORKER, SLOW = scenarios.COPY, scenarios.WORKER, scenarios.SLOW
ANN = Client("Ann", (scenarios.append("a1"),))


@pytest.mark.parametrize(
    "weaken, scenario, promise",
    [
        pytest.param(
            weakened.without_dedupe,
            Scenario("an append that comes twice", (ANN,), (COPY,)),
            "'note a1' was sent once and is in the store 2 times",
            id="dedupe",
        ),
        pytest.param(
            weakened.forwarding_before_the_append,
            Scenario("a tool, and a slow store", scenarios.CHARGE, (SLOW,), renews=False),
            "was seen, and the store does not have it",
            id="forward before append",
        ),
        pytest.param(
            weakened.with_ids_of_the_moment,
            Scenario("an append, and a worker dies", (ANN,), (WORKER,)),
            "'note a1' was sent once and is in the store 2 times",
            id="IDs of the moment",
        ),
        pytest.param(
            weakened.with_a_store_that_repeats,
            Scenario("an append, and a worker dies", (ANN,), (WORKER,)),
            "'note a1' was sent once and is in the store 2 times",
            id="a store that repeats",
        ),
        pytest.param(
            weakened.with_tools_that_are_retried,
            Scenario("a tool, and a worker dies", scenarios.CHARGE, (WORKER,)),
            "the tool of 'charge 1' is not idempotent and ran 2 times",
            id="tools retried",
        ),
        pytest.param(
            weakened.with_new_ids_in_each_copy,
            Scenario("a fork, and a worker dies", scenarios.FORK, (WORKER,)),
            "a2 failed with SessionExistsError",
            id="new IDs in each copy",
        ),
        pytest.param(
            weakened.forgetting("inbox"),
            Scenario("two appends", scenarios.TWO_APPENDS),
            "the session does not remember b1",
            id="inbox forgotten",
        ),
        pytest.param(
            weakened.forgetting("outcomes"),
            Scenario("signals, and one comes twice", scenarios.SIGNALS, (COPY,)),
            "'note a1' was sent once and is in the store 2 times",
            id="outcomes forgotten",
        ),
        pytest.param(
            weakened.forgetting("leaf_id"),
            Scenario("two appends", scenarios.TWO_APPENDS),
            "is no chain",
            id="leaf forgotten",
        ),
        pytest.param(
            weakened.forgetting("active"),
            Scenario("a run with a tool", scenarios.CHARGE),
            "the session does not remember a1",
            id="run forgotten",
        ),
        pytest.param(
            weakened.forgetting("steering"),
            Scenario("a run that another joins", scenarios.STEER),
            "the session does not remember b1",
            id="steering forgotten",
        ),
    ],
)
def test_without_a_safeguard_there_is_a_way_to_a_broken_promise(
    weaken: Weakened, scenario: Scenario, promise: str
) -> None:
    """The shortest one is told step by step."""
    with weaken():
        found = explore(scenario).counterexample
    print(found)
    assert found is not None
    assert promise in str(found)
    assert str(found).splitlines()[1].startswith("   1. ")
