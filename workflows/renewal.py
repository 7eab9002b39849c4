"""When a session's workflow continues as new, and how it gets there while messages pour in."""

from __future__ import annotations

import contextlib

from temporalio import workflow

from perdure import names
from perdure.protocol import FindEntry, SessionState
from perdure.workflows.failures import ActivityFailure
from perdure.workflows.history import HistoryLength
from perdure.workflows.timing import PAUSING

_MANY = 10
_PATIENCE_WITH_MANY = 4
"""How many times more events there may be when so many commands came in a row: what waits behind
them is carried, and who sends may have to send again."""

_PATIENCE_AT_REST = 4
_LEAST_AT_REST = 100
"""Events below which a session at rest does not continue as new: one with less history has hardly
begun, and would only go round in circles."""

_MAX_BYTES = 2_000_000
_LOCAL_STEPS_AT_ONCE = 25


class Renewal:
    """Keeps history short.

    The server has a workflow task done again, from its beginning, when a signal arrives in the task
    that ends the run, or a hundred in any task; in the second attempt at the end it turns signals
    away. So tasks are kept short, and the last one above all.
    """

    def __init__(self, state: SessionState, history: HistoryLength) -> None:
        self._state = state
        self._history = history

    def is_due(self) -> bool:
        """Whether history has become longer than a worker should have to replay, or the run is
        pinned to a build of the workers that is no longer current.
        """
        limit = self._state.max_history_events
        if self._state.active is not None:
            limit = self._state.max_history_events_in_run
        elif self._history.commands_in_a_row >= _MANY:
            limit *= _PATIENCE_WITH_MANY
        info = workflow.info()
        return (
            self._history.events > limit
            or info.get_current_history_size() > _MAX_BYTES
            or info.is_continue_as_new_suggested()
            or info.is_target_worker_deployment_version_changed()
        )

    def versioning(self) -> workflow.ContinueAsNewVersioningBehavior | None:
        """Which build of the workers the next run begins on: the one that is current, when this run
        is pinned to another.
        """
        if workflow.info().is_target_worker_deployment_version_changed():
            return workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE
        return None

    def is_due_at_rest(self, since: int) -> bool:
        """Whether history has become too long since that length, by messages that leave nothing to
        do: refused ones, openings, the polls of subscribers.
        """
        info = workflow.info()
        events = info.get_current_history_length()
        limit = max(self._state.max_history_events, _LEAST_AT_REST) * _PATIENCE_AT_REST
        return events != since and (
            events > limit
            or info.get_current_history_size() > _MAX_BYTES
            or info.is_continue_as_new_suggested()
        )

    async def end_long_task(self) -> None:
        """To be called after each step: a task has only so many."""
        if self._history.local_steps >= _LOCAL_STEPS_AT_ONCE:
            await self._begin_task()

    async def begin_last_task(self) -> None:
        """To be called before the run ends: where many commands come, in a task of its own."""
        if self._history.commands_in_a_row >= _MANY:
            await self._begin_task()

    async def _begin_task(self) -> None:
        """End the workflow task, so that what was done in it is in history, and begin another.

        Any activity that is not local does that, in some 20 ms. A timer, however short, takes the
        server up to a second.
        """
        request = FindEntry(session_id=self._state.session_id)
        with contextlib.suppress(*ActivityFailure):
            await workflow.execute_activity(
                names.FIND_ENTRY, request, summary="many commands wait", **PAUSING
            )
        self._history.add_activities()
