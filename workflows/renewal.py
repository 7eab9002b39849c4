"""When a session's workflow continues as new, and how it gets there while messages pour in."""

from __future__ import annotations

import contextlib

from temporalio import workflow

from perdure import names
from perdure.protocol import FindEntry, SessionState
from perdure.workflows.failures import ActivityFailure
from perdure.workflows.history import HistoryLength
from perdure.workflows.inbox import Inbox
from perdure.workflows.timing import LOADING

_LEAST_WHEN_IDLE = 100
"""Events below which an idle session does not continue as new: one with less history has hardly
begun, and would only go round in circles."""

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

    def __init__(self, state: SessionState, inbox: Inbox, history: HistoryLength) -> None:
        self._state = state
        self._inbox = inbox
        self._history = history
        self._steps = 0

    def is_due(self) -> bool:
        """Whether history has become longer than a worker should have to replay."""
        limit = self._state.max_history_events
        if self._state.active is not None or not self._inbox.is_empty:
            limit *= _PATIENCE_AT_WORK
        return self._history.events > limit or self._history.is_too_large

    def is_due_at_rest(self, since: int) -> bool:
        """Whether history has become too long since that length, by messages that leave nothing to
        do: refused ones, openings, the polls of subscribers.
        """
        events = workflow.info().get_current_history_length()
        return events != since and events > max(self._state.max_history_events, _LEAST_WHEN_IDLE)

    async def end_long_task(self) -> None:
        """To be called after each step: while others wait, a task has only so many."""
        self._history.add_step()
        self._steps = 0 if self._inbox.is_empty else self._steps + 1
        if self._steps >= _STEPS_AT_ONCE:
            self._steps = 0
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
        self._history.read()
