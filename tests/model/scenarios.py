"""Who sends what, and which faults may strike.

`SMALL` is explored whenever the tests run, `LARGE` by `make model`.
"""

from __future__ import annotations

from itertools import combinations

from perdure.protocol import AppendCommand, CancelCommand, ForkCommand, RunCommand
from tests.model.world import Client, Scenario


def append(command_id: str) -> AppendCommand:
    entries = [f"note {command_id}"]
    return AppendCommand.model_validate({"command_id": command_id, "entries": entries})


def run(command_id: str, text: str = "", *, when_busy: str = "queue") -> RunCommand:
    """A run. The model calls a tool where the text begins with `charge` (which is not idempotent)
    or `look` (which is), and several where several are named.
    """
    entries = [text or f"ask {command_id}"]
    content = {"command_id": command_id, "entries": entries, "when_busy": when_busy}
    return RunCommand.model_validate(content)


def fork(command_id: str, child_id: str = "child") -> ForkCommand:
    return ForkCommand(command_id=command_id, session_id=child_id)


def cancel(command_id: str) -> CancelCommand:
    return CancelCommand(command_id=command_id)


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
BOTH = (Client("Ann", (run("a1", "charge 1, look 2"),)),)
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
    Scenario("a run and a tool, and the store is slow", CHARGE, (SLOW,), renews=False),
    Scenario("a run and a tool that may run once, and a worker dies", CHARGE, (WORKER,)),
    Scenario("a run and an idempotent tool, and a worker dies", LOOK, (WORKER,)),
    Scenario("two tools side by side", BOTH),
    Scenario("a fork, and a worker dies", FORK, (WORKER,)),
    Scenario("a run that another joins", STEER),
    Scenario("a run that is cancelled", CANCEL),
    Scenario("the errand of a sub-agent, and a worker dies", (), (WORKER,), errand=run("e1")),
    Scenario("signals, and a worker dies, and one comes twice", SIGNALS, (WORKER, COPY)),
]

LARGE = [
    *(
        Scenario(f"{name}: {first[0]}, {second[0]}", clients, (first, second), renews=renews)
        for name, clients, renews in (
            ("two appends", TWO_APPENDS, True),
            ("two appends without continue-as-new", TWO_APPENDS, False),
            ("a run", ONE_RUN, True),
            ("a tool that may run once", CHARGE, True),
            ("a fork", FORK, True),
            ("signals", SIGNALS, True),
        )
        for first, second in combinations(EVERY_FAULT, 2)
    ),
    Scenario("a tool that may run once, and two workers die", CHARGE, (("worker", 2),)),
    Scenario("an idempotent tool, and two workers die", LOOK, (("worker", 2),)),
    Scenario("two tools side by side, and a worker dies", BOTH, (WORKER,)),
    Scenario("a fork, and two workers die", FORK, (("worker", 2),)),
    Scenario("a run that another joins, and a worker dies", STEER, (WORKER,)),
    Scenario("a run that another joins, and one comes twice", STEER, (COPY,)),
    Scenario("a run that is cancelled, and a worker dies", CANCEL, (WORKER,)),
    Scenario("a run that is cancelled, and twice", CANCEL, (CLIENT, COPY)),
    Scenario("a tool that is cancelled, and a worker dies", (*CHARGE, CANCEL[1]), (WORKER,)),
    Scenario("three clients", (*TWO_APPENDS, Client("Cid", (run("c1"),)))),
]
