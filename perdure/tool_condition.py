"""Which calls of a tool need a person's approval."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from perdure.errors import AgentError
from perdure.tool_calling import called, is_async

logger = logging.getLogger("perdure.tools")

Condition = Callable[[dict[str, Any]], bool | Awaitable[bool]]

NeedsApproval = bool | Condition
"""All calls, none, or those for which this holds of the validated arguments."""

PATIENCE: Final = 10.0
"""Seconds that a condition may take; it is asked while the model's message is at hand."""


def checked_condition(needs_approval: object, name: str) -> Any:
    """The condition of the tool of that name. Raises `AgentError` for what is none."""
    if isinstance(needs_approval, bool) or callable(needs_approval):
        return needs_approval
    raise AgentError(
        f"needs_approval of tool {name!r} must be True, False or a function of the arguments, "
        f"not {needs_approval!r}"
    )


async def holds(condition: Condition, arguments: dict[str, Any], name: str) -> bool:
    """Whether the condition holds. One that raises, or takes too long, has not said no."""
    try:
        async with asyncio.timeout(PATIENCE):
            asked = functools.partial(condition, arguments)
            return bool(await called(asked, is_async=is_async(condition)))
    except Exception:
        logger.warning(
            "needs_approval of the tool %s raised, so a person is asked", name, exc_info=True
        )
        return True
