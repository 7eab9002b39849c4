"""Language models: what one is, the scripted one for tests and demos, and all of pydantic-ai's."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, Union, cast

from perdure.errors import AgentError, ModelSpecError
from perdure.models.protocol import (
    Delta,
    LanguageModel,
    ModelRequest,
    OnDelta,
    ToolSpec,
    output_instruction,
)

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = [
    "Delta",
    "LanguageModel",
    "ModelChoice",
    "ModelRequest",
    "OnDelta",
    "ToolSpec",
    "check_model",
    "output_instruction",
    "resolve_model",
]

ModelChoice: TypeAlias = Union[str, LanguageModel, "Model[Any]", None]
"""What an agent may name as its model: a spec, a model, a pydantic-ai model, or none."""

SPEC: Final = re.compile(r"[^\s:]+:\S+|test")
"""`provider:model`, or pydantic-ai's own `test`."""


def check_model(model: ModelChoice) -> None:
    """Raise `AgentError` for what cannot be a model at all. Nothing is imported, no key is looked
    for.
    """
    if model is None or _is_language_model(model) or _is_pydantic_ai_model(model):
        return
    if not isinstance(model, str):
        made = "its class; pass an instance" if isinstance(model, type) else f"{model!r}"
        raise AgentError(
            "the model must be a spec such as 'openai:gpt-6.1-sol', a LanguageModel, "
            f"a pydantic-ai model or None, not {made}"
        )
    if not SPEC.fullmatch(model):
        raise AgentError(
            f"model {model!r} is not a spec; write it as provider:model, "
            "for example 'openai:gpt-6.1-sol'"
        )


def resolve_model(model: ModelChoice) -> LanguageModel | None:
    """The model that an agent names, ready to be called; None stays None.

    Raises `ModelSpecError` when a spec names nothing that is known, or lacks its package or its API
    key.
    """
    if model is None:
        return None
    if _is_language_model(model):
        return model
    try:
        from perdure.models.pydantic_ai import PydanticAIModel, model_from_spec
    except ImportError as error:
        raise ModelSpecError(
            f"model {model!r} needs pydantic-ai ({error}): pip install pydantic-ai-slim"
        ) from error
    if isinstance(model, str):
        return model_from_spec(model)
    return PydanticAIModel(cast("Model[Any]", model))


def _is_language_model(model: object) -> TypeGuard[LanguageModel]:
    return not isinstance(model, type) and isinstance(model, LanguageModel)


def _is_pydantic_ai_model(model: object) -> bool:
    # Whoever has such a model has imported its module.
    models = sys.modules.get("pydantic_ai.models")
    return models is not None and isinstance(model, models.Model)
