"""How long the workflow's history is, counted by what was done."""

from __future__ import annotations

from temporalio import workflow

_COMMAND = 5
"""Events of a command that is one or two local activities: its message, a share of a task, its
markers."""

_MESSAGE = 4
"""Events of a message that comes while an activity is at work, and of its task."""

_ACTIVITY = 7
"""Events of an activity that is not local, and of the task that hears of it."""


class HistoryLength:
    """The length of history in events, nearly.

    Why it is counted and not asked for: the SDK's number is that of the current workflow task, and
    a replay does not part local activities into tasks as the first execution did when a query was
    answered in between; nor does it then see messages and their results in the same order. What
    schedules something must hang on neither. The steps that were done are the same.
    """

    def __init__(self) -> None:
        self.events = _COMMAND
        self.local_steps = 0
        """Steps since the last activity that was not local; all of them may be in one task."""
        self.commands_in_a_row = 0
        """Commands since the last turn of a run."""
        self.last_activity_at = workflow.time()

    def add_local_step(self) -> None:
        """A step of local activities only was done."""
        self.events += _COMMAND
        self.local_steps += 1
        self.commands_in_a_row += 1

    def add_messages(self, count: int) -> None:
        """An activity sent so many messages while it was at work, as it says in its result."""
        self.events += _MESSAGE * count

    def add_activities(self, count: int = 1) -> None:
        """Activities that are not local were done."""
        self.events += _ACTIVITY * count
        self.local_steps = 0
        self.last_activity_at = workflow.time()

    def add_turn(self, calls: int) -> None:
        """A turn of a run was taken: a call of the model, and those of tools."""
        self.add_activities(1 + calls)
        self.commands_in_a_row = 0
