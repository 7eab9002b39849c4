"""How long activities may take and how they are retried, by kind."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy

HEARTBEAT_TIMEOUT = timedelta(seconds=4)
"""Silence after which an activity's worker counts as dead. Workers beat about once a second,
from a thread of their own."""

_UNBOUNDED = timedelta(days=1)
_A_YEAR = timedelta(days=365)
_STORE_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=50), maximum_interval=timedelta(seconds=30)
)

# Local activities have no `start_to_close_timeout`: the SDK leaves the timer of each attempt that
# failed running, and it strikes when another attempt, or another worker, is at work. How long one
# attempt may take is the activity's own matter.

LOADING: dict[str, Any] = {
    "schedule_to_close_timeout": timedelta(seconds=60),
    "retry_policy": RetryPolicy(
        initial_interval=timedelta(milliseconds=50),
        maximum_interval=timedelta(seconds=4),
        maximum_attempts=9,
    ),
    "local_retry_threshold": timedelta(seconds=1),
}
"""A store that is down is tried for some 13 seconds, so that whoever opens hears why before they
give up; a load that takes long is let finish."""

STORING: dict[str, Any] = {
    "schedule_to_close_timeout": _A_YEAR,
    "retry_policy": _STORE_RETRY,
    "local_retry_threshold": timedelta(seconds=4),
}
"""Appends go on until the store is back; nothing is forwarded meanwhile."""

MODEL: dict[str, Any] = {
    "start_to_close_timeout": timedelta(hours=1),
    "heartbeat_timeout": HEARTBEAT_TIMEOUT,
    "retry_policy": RetryPolicy(
        initial_interval=timedelta(milliseconds=500),
        maximum_interval=timedelta(seconds=60),
        maximum_attempts=10,
    ),
}
"""Ten attempts are about three minutes of an unreachable provider; a provider's Retry-After
takes the place of the backoff."""

LOOP_ATTEMPTS = 10
"""How many workers a loop may outlive."""

LOOP: dict[str, Any] = {
    "start_to_close_timeout": _UNBOUNDED,
    "heartbeat_timeout": HEARTBEAT_TIMEOUT,
    "retry_policy": RetryPolicy(
        initial_interval=timedelta(milliseconds=200),
        maximum_interval=timedelta(seconds=10),
        maximum_attempts=LOOP_ATTEMPTS,
    ),
}
"""Another attempt is made when a worker dies or stops; whatever else happens in a loop ends it."""

LOOKING: dict[str, Any] = {
    "start_to_close_timeout": timedelta(minutes=10),
    "heartbeat_timeout": HEARTBEAT_TIMEOUT,
    "retry_policy": _STORE_RETRY,
}
"""A look at the log, until it succeeds."""
LISTING: dict[str, Any] = {
    "start_to_close_timeout": timedelta(hours=1),
    "heartbeat_timeout": HEARTBEAT_TIMEOUT,
    "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=3),
}
"""How long a server may take is its declaration's matter; only the asking of a worker that died is
repeated."""

COPYING: dict[str, Any] = {
    "start_to_close_timeout": timedelta(minutes=10),
    "heartbeat_timeout": HEARTBEAT_TIMEOUT,
    "retry_policy": _STORE_RETRY,
}
"""A fork goes on until it is whole."""

PAUSING: dict[str, Any] = {
    "schedule_to_close_timeout": timedelta(seconds=10),
    "retry_policy": RetryPolicy(maximum_attempts=1),
}
"""An activity that is only there to end a workflow task; what it answers is of no account."""

PUBLISHING: dict[str, Any] = {
    "schedule_to_close_timeout": timedelta(seconds=30),
    "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=5),
}
"""A publisher that is slow or fails holds the session up for half a minute at most."""

CHECKING: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=10),
    "schedule_to_close_timeout": timedelta(seconds=60),
    "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=200)),
}
"""A person waits to hear whether the arguments that they gave will do."""

_TOOL_GRACE = 30
_IDEMPOTENT_ATTEMPTS = 5


def tool_timing(timeout: float | None, idempotent: bool) -> dict[str, Any]:
    """A tool's own timeout (seconds) is kept inside the activity; here stands only its outer bound.

    At most once, unless running again does no harm; and not for ever, lest a call that kills its
    worker kills them all.
    """
    limit = _UNBOUNDED if timeout is None else timedelta(seconds=timeout + _TOOL_GRACE)
    return {
        "start_to_close_timeout": limit,
        "heartbeat_timeout": HEARTBEAT_TIMEOUT,
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(milliseconds=200),
            maximum_attempts=_IDEMPOTENT_ATTEMPTS if idempotent else 1,
        ),
    }
