"""One question to a model, and what may go wrong with it."""

from __future__ import annotations

from temporalio import activity

from perdure.errors import ModelError, PerdureError
from perdure.messages import Message, Role
from perdure.models.observed import observed
from perdure.models.protocol import LanguageModel, ModelRequest, OnDelta


async def ask(
    model: LanguageModel, request: ModelRequest, on_delta: OnDelta | None = None
) -> Message:
    """The model's answer. Raises ModelError, and nothing else of whatever the model may raise."""
    with observed(model.name) as answered:
        message = await _answer(model, request, on_delta)
        answered(message)
    return message


async def _answer(model: LanguageModel, request: ModelRequest, on_delta: OnDelta | None) -> Message:
    try:
        answer: object = await model.respond(request, on_delta)
    except PerdureError:
        raise
    except Exception as error:
        # A model of the application's own may raise anything. Which kind it was is said, its text
        # is not: it may hold what must not reach workflow history.
        activity.logger.exception(f"the model {model.name} raised")
        raise ModelError(
            f"{model.name} raised {type(error).__name__}; see the worker's log"
        ) from error
    if not isinstance(answer, Message) or answer.role != Role.ASSISTANT:
        role = answer.role if isinstance(answer, Message) else None
        what = type(answer).__name__ if role is None else f"one of role {role!r}"
        raise ModelError(f"{model.name} has to return a Message of role 'assistant', not {what}")
    return answer
