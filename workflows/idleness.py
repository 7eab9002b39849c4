"""How long a session has had nothing to do."""

from __future__ import annotations

import contextlib
from functools import partial

from temporalio import workflow

from perdure.protocol import SessionState
from perdure.workflows.history import HistoryLength
from perdure.workflows.inbox import Inbox


class Idleness:
    """Tells when a session has been at rest for its idle timeout.

    One timer runs all the while; when it fires and there was a sign of life meanwhile, it runs on.
    A timer that began and ended with every rest would cost history, and would hang on the order of
    messages and local activities, which a replay may see otherwise.
    """

    def __init__(self, state: SessionState, inbox: Inbox, history: HistoryLength) -> None:
        self._state = state
        self._inbox = inbox
        self._history = history
        self.is_over = False

    async def watch(self) -> None:
        """Run beside the commands until the session was at rest for long."""
        while True:
            timeout = self._state.idle_timeout
            if timeout is None:
                await workflow.wait_condition(lambda: self._state.idle_timeout is not None)
                continue
            last_sign = max(self._inbox.last_message_at, self._history.last_activity_at)
            rest = last_sign + timeout - workflow.time()
            if rest <= 0 and not self._inbox.is_busy:
                self.is_over = True
                return
            with contextlib.suppress(TimeoutError):
                await workflow.wait_condition(
                    partial(self._has_another_timeout, timeout),
                    timeout=rest if rest > 0 else timeout,
                    timeout_summary=f"closes when idle for {timeout:g} s",
                )

    def _has_another_timeout(self, timeout: float) -> bool:
        return self._state.idle_timeout != timeout
