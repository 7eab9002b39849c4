"""How long the workflow's history is, as far as a replay agrees."""

from __future__ import annotations

from temporalio import workflow

_MAX_BYTES = 2_000_000
_EVENTS_OF_A_STEP = 2


class HistoryLength:
    """The length of history where it was last known for sure, and what was done since.

    The SDK's number is that of the current workflow task, and a replay does not part the tasks as
    the first execution did: between two local activities the numbers differ, and a decision that
    hangs on them is another one. They agree where something from outside begins a task: a message,
    or the result of an activity that is not local. So the number is read there only.
    """

    def __init__(self) -> None:
        self.read()

    def read(self) -> None:
        """Take the SDK's number. To be called before anything else in a handler of messages, and
        right after an activity that is not local.
        """
        info = workflow.info()
        self.events = info.get_current_history_length()
        self.is_too_large = (
            info.get_current_history_size() > _MAX_BYTES or info.is_continue_as_new_suggested()
        )

    def add_step(self) -> None:
        """A step was taken; each leaves something."""
        self.events += _EVENTS_OF_A_STEP
