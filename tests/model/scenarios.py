"""Who sends what, and which faults may strike.

`SMALL` is explored whenever the tests run, `LARGE` by `make model`.
"""

from __future__ import annotations

from perdure.protocol import AppendCommand, CancelCommand, CompactCommand, ForkCommand, RunCommand
from tests.model.world import Client, Scenario


def append(command_id: str) -> AppendCommand:
    entries = [f"note {command_id}"]
    return AppendCommand.model_validate({"command_id": command_id, "entries": entries})


def run(command_id: str, text: str = "", *, when_busy: str = "queue") -> RunCommand:
    """A run. The model of the stand-in calls a tool where the text begins with `charge` (which is
    not idempotent) or `look` (which is).
    """
    entries = [text or f"ask {command_id}"]
    content = {"command_id": command_id, "entries": entries, "when_busy": when_busy}
    return RunCommand.model_validate(content)


def fork(command_id: str, child_id: str = "child") -> ForkCommand:
    return ForkCommand(command_id=command_id, session_id=child_id)


def cancel(command_id: str) -> CancelCommand:
    return CancelCommand(command_id=command_id)


def compact(command_id: str) -> CompactCommand:
    return CompactCommand(command_id=command_id)


WORKER, STORE, SLOW, CLIENT, COPY = (
    ("worker", 1),
    ("store", 1),
    ("slow store", 1),
    ("client", 1),
    ("duplicate", 1),
)
EVERY_FAULT = (WORKER, STORE, SLOW, CLIENT, COPY)

TWO_APPENDS = (Client("Ann", (append("a1"),)), Client("Bob", (append("b1"),)))
ONE_RUN = (Client("Ann", (run("a1"),)),)
CHARGE = (Client("Ann", (run("a1", "charge 1"),)),)
LOOK = (Client("Ann", (run("a1", "look 1"),)),)
FORK = (Client("Ann", (append("a1"), fork("a2"))),)
STEER = (Client("Ann", (run("a1"),)), Client("Bob", (run("b1", when_busy="steer"),)))
CANCEL = (Client("Ann", (run("a1"),)), Client("Bob", (cancel("b1"),)))
SIGNALS = (Client("Ann", (append("a1"), append("a2")), signals=True),)

SMALL = [
    Scenario("two appends, and a worker dies", TWO_APPENDS, (WORKER,)),
    Scenario("two appends, and a client dies", TWO_APPENDS, (CLIENT,)),
    Scenario("two appends, and one comes twice", TWO_APPENDS, (COPY,)),
    Scenario("two appends without continue-as-new", TWO_APPENDS, (WORKER, CLIENT), renews=False),
    Scenario("a run, and the store is slow and fails", ONE_RUN, (STORE, SLOW)),
    Scenario("a run and a tool that may run once, and a worker dies", CHARGE, (WORKER,)),
    Scenario("a run and an idempotent tool, and a worker dies", LOOK, (WORKER,)),
    Scenario("a fork, and a worker dies", FORK, (WORKER,)),
    Scenario("a run that another joins", STEER),
    Scenario("a run that is cancelled", CANCEL),
    Scenario("signals, and a worker dies, and one comes twice", SIGNALS, (WORKER, COPY)),
]

LARGE = [
    Scenario("two appends, every fault", TWO_APPENDS, EVERY_FAULT),
    Scenario("two appends, every fault, no continue-as-new", TWO_APPENDS, EVERY_FAULT, renews=False),
    Scenario("a run, every fault", ONE_RUN, EVERY_FAULT),
    Scenario("a tool that may run once, two faults", CHARGE, (("worker", 2), CLIENT)),
    Scenario("an idempotent tool, two faults", LOOK, (("worker", 2), CLIENT)),
    Scenario("a tool, and the store fails", CHARGE, (STORE, SLOW, WORKER)),
    Scenario("a fork, every fault but the store's", FORK, (("worker", 2), CLIENT, COPY)),
    Scenario("a run that another joins, and a worker dies", STEER, (WORKER, COPY)),
    Scenario("a run that is cancelled, and twice", CANCEL, (WORKER, CLIENT, COPY)),
    Scenario("a tool that is cancelled", (*CHARGE, CANCEL[1]), (WORKER,)),
    Scenario("signals, every fault", SIGNALS, EVERY_FAULT),
    Scenario(
        "three clients",
        (*TWO_APPENDS, Client("Cid", (run("c1"),))),
        (WORKER,),
    ),
]
