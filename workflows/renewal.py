"""When a session's workflow continues as new, and how it gets there while messages pour in."""

from __future__ import annotations

import contextlib

from temporalio import workflow

from perdure import names
from perdure.protocol import FindEntry, SessionState
from perdure.workflows.failures import ActivityFailure
from perdure.workflows.inbox import Inbox
from perdure.workflows.timing import LOADING

LEAST_WHEN_IDLE = 100
"""Events below which an idle session does not continue as new: one with less history has hardly
begun, and would only go round in circles."""

_MAX_HISTORY_BYTES = 2_000_000
_PATIENCE_AT_WORK = 3
"""How many times more events there may be in the middle of a run, or while commands wait: whoever
waits for one has to ask again after a continue-as-new, which is dear."""

_STEPS_AT_ONCE = 25
_TRIES = 10


class Renewal:
    """Keeps history short.

    The server has a workflow task done again, from its beginning, when a signal arrives in the task
    that ends the run, or a hundred in any task. So while commands wait in numbers, tasks are kept
    short, and the last one is one in which nothing is done.
    """

    def __init__(self, state: SessionState, inbox: Inbox) -> None:
        self._state = state
        self._inbox = inbox
        self._task = 0
        self._steps = 0

    def is_due(self, at_least: int = 0) -> bool:
        """Whether history has become longer than a worker should have to replay."""
        info = workflow.info()
        limit = max(self._state.max_history_events, at_least)
        if self._state.active is not None or not self._inbox.is_empty:
            limit *= _PATIENCE_AT_WORK
        return (
            info.get_current_history_length() > limit
            or info.get_current_history_size() > _MAX_HISTORY_BYTES
            or info.is_continue_as_new_suggested()
        )

    async def end_long_task(self) -> None:
        """To be called after each step: while others wait, a task has only so many."""
        task = workflow.info().get_current_history_length()
        self._steps = 1 if task != self._task else self._steps + 1
        self._task = task
        if self._steps >= _STEPS_AT_ONCE and not self._inbox.is_empty:
            await self._begin_task()

    async def reach_quiet_task(self) -> None:
        """To be called before the run ends: while others wait, look for a task without a message,
        a few times.
        """
        for _ in range(_TRIES):
            if self._inbox.is_empty:
                return
            taken = self._inbox.taken
            await self._begin_task()
            if self._inbox.taken == taken:
                return

    async def _begin_task(self) -> None:
        """End the workflow task, so that what was done in it is in history, and begin another.

        Any activity that is not local does that, in some 20 ms. A timer, however short, takes the
        server up to a second.
        """
        request = FindEntry(session_id=self._state.session_id)
        with contextlib.suppress(*ActivityFailure):
            await workflow.execute_activity(
                names.FIND_ENTRY, request, summary="many commands wait", **LOADING
            )
