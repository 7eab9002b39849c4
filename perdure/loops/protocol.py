"""What a loop is to perdure: something that is given a conversation and yields what happens next.

A loop stands where a model stands. perdure does not drive it turn by turn: it runs in one activity,
calls its own model and its own tools, and yields each message when it is whole.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias, TypeGuard, get_args

from perdure.entries import Entry, MessageEntry
from perdure.errors import AgentError, LoopError, PerdureError
from perdure.messages import Message
from perdure.models.protocol import Delta
from perdure.transcript import Transcript

OnCrash: TypeAlias = Literal["resume", "restart"]
"""What is done when the worker of a loop dies: it is called again and goes on after what it had
stored, or begins again from the run's input."""

LoopOutput: TypeAlias = Message | Delta
"""What a loop yields: a whole message, of role `assistant` or `tool_result`, or a piece of one that
is still being written."""


@dataclass(frozen=True)
class LoopContext:
    """What a loop is given: the conversation, and what this run adds to it.

    `leaf_id` is where the loop goes on: after the run's input, and, in a later attempt of a loop
    that resumes, after what the attempts before had stored. `attempt` counts from 1.
    """

    session_id: str
    run_id: str
    transcript: Transcript
    start_id: str
    leaf_id: str
    input_count: int = 0
    ephemeral: Sequence[MessageEntry] = ()
    instructions: str = ""
    stream: bool = False
    attempt: int = 1

    @cached_property
    def messages(self) -> list[Message]:
        """The model view up to the leaf: compacted, repaired, with what is ephemeral."""
        return self.transcript.model_view(self.leaf_id, ephemeral=self.ephemeral)

    @cached_property
    def path(self) -> list[Entry]:
        """The entries from the root to the leaf."""
        return self.transcript.path(self.leaf_id)

    @property
    def input(self) -> list[Entry]:
        """What the run was given, ephemeral entries last. Empty when it continues from the leaf."""
        return [*self._added[: self.input_count], *self.ephemeral]

    @property
    def stored(self) -> list[Entry]:
        """What earlier attempts had stored, when this one resumes them."""
        return self._added[self.input_count :]

    @property
    def _added(self) -> list[Entry]:
        path = self.path
        after = len(path)
        while after and path[after - 1].id != self.start_id:
            after -= 1
        return path[after:]


class Loop(Protocol):
    """A loop to bring along: these two members, nothing to inherit.

    It may have two more. `name` is a label for people; without it, that of the class is used.
    `check()`, async or not, is called before a run stores anything, and raises a `LoopError` when
    the loop cannot start.
    """

    @property
    def on_crash(self) -> str:
        """What is done after its worker died: `"resume"` or `"restart"`, see `OnCrash`."""
        ...

    def run(self, context: LoopContext) -> AsyncIterator[LoopOutput]:
        """Yield what happens: each message when it is whole, and, when `context.stream` says that
        somebody watches, the pieces of it before.

        A message is stored before the loop is asked for the next output. The loop ends by
        returning; a failure is a `LoopError`. A run that is cancelled closes the iterator: an async
        generator sees a `CancelledError` or a `GeneratorExit` where it waits.
        """
        ...


def is_loop(model: object) -> TypeGuard[Loop]:
    """Whether what an agent names as its model is a loop.

    Raises `AgentError` for one that does not say what a crash shall do.
    """
    run = getattr(model, "run", None)
    if isinstance(model, type) or not callable(run):
        return False
    on_crash = getattr(model, "on_crash", None)
    if on_crash is not None and inspect.iscoroutinefunction(run):
        raise AgentError(f"run of the loop {name_of(model)} has to yield its messages")
    if on_crash in get_args(OnCrash):
        return True
    if on_crash is None and not inspect.isasyncgenfunction(run):
        return False  # it is something else that runs
    raise AgentError(
        f"the loop {name_of(model)} has to say what a crash shall do: "
        f"set its on_crash to 'resume' or 'restart', not {on_crash!r}"
    )


def name_of(loop: object) -> str:
    """The loop's label for people."""
    name = getattr(loop, "name", None)
    return name if isinstance(name, str) and name else type(loop).__name__


async def check_loop(loop: Loop) -> None:
    """Let the loop say whether it can start. Raises `LoopError`, and nothing else of whatever its
    check may raise.
    """
    check = getattr(loop, "check", None)
    if check is None:
        return
    try:
        waiting = check()
        if inspect.isawaitable(waiting):
            await waiting
    except PerdureError:
        raise
    except Exception as error:
        # Its text may hold what must not reach workflow history.
        raise LoopError(
            f"{name_of(loop)} cannot start: its check raised {type(error).__name__}; "
            "see the worker's log"
        ) from error
