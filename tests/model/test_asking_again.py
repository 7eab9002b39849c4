"""Ways through the model that are too long to be found by trying all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tests.model import scenarios
from tests.model.promises import broken
from tests.model.world import Answer as Told
from tests.model.world import Client, Scenario, World, first_world, steps

TASK = "the worker does a workflow task"


def played(world: World, labels: Iterable[str]) -> World:
    """What is the case when these things happened, one after the other."""
    for label in labels:
        [world] = [step.world for step in steps(world) if step.label == label]
        assert list(broken(world, at_the_end=False)) == []
    return world


def test_whoever_was_told_to_ask_again_finds_the_outcome() -> None:
    """However many commands of others were done meanwhile, over however many runs of the
    workflow.
    """
    others = tuple(scenarios.append(f"b{number}") for number in range(30))
    clients = (
        Client("Bob", others, signals=True),
        Client("Ann", (scenarios.append("a1"),)),
    )
    world = played(
        first_world(Scenario("many others", clients)),
        [TASK, "Bob sends append b0", "Ann sends append a1", TASK],
    )
    assert world.seats[1].doing == "asks"
    for number in range(1, 30):
        world = played(world, [f"Bob sends append b{number}"])
    while world.jobs or not world.history:
        world = played(world, [TASK])
    world = played(world, ["Ann asks what became of a1", TASK])
    [told] = world.seats[1].answers
    assert replace(told, leaf_id="") == Told("a1", "done")
