"""The settings that go with each call of a pydantic-ai model, beside the model's own.

The model's own always stand: what it says of retries or of caching is left to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final, cast
from urllib.parse import urlsplit

from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

_CACHE_KEY: Final = "openai_prompt_cache_key"
KEYED_HOSTS: Final = (".openai.com", ".openai.azure.com", ".azure.com")
"""Where a cache key is understood; other servers that speak the protocol may refuse it."""


def call_settings(model: Model[Any], cache_key: str = "") -> ModelSettings:
    """No retries, since whoever calls us retries, with a record of it, and two layers of retries
    would multiply; the provider's cache; and, where it takes one, a key under which calls with the
    same `cache_key` find what is cached. The key that is sent does not tell what it was made from.
    """
    own = {name for part in parts_of(model) for name in part.settings or {}}
    settings: dict[str, Any] = {}
    if not (own | model.unsupported_settings) & {"max_retries"}:
        settings["max_retries"] = 0
    if not (own | model.unsupported_settings) & {"cache"}:
        settings["cache"] = True
    if cache_key and _CACHE_KEY not in own and _takes_key(model):
        settings[_CACHE_KEY] = hashlib.sha256(cache_key.encode()).hexdigest()[:32]
    return cast(ModelSettings, settings)


def _takes_key(model: Model[Any]) -> bool:
    try:
        host = f".{urlsplit(model.base_url or '').hostname or ''}"
    except (AttributeError, NotImplementedError, ValueError):
        return False
    return model.system in ("openai", "azure") and host.endswith(KEYED_HOSTS)


def parts_of(model: Model[Any]) -> Iterator[Model[Any]]:
    """The models behind a model: what it wraps, and what it chooses from."""
    yield model
    for inner in (getattr(model, "wrapped", None), *getattr(model, "models", ())):
        if isinstance(inner, Model):
            yield from parts_of(inner)


def secrets_of(model: Model[Any]) -> list[str]:
    """The keys that a model's clients hold, as far as they show them: no error may quote one."""
    secrets: list[str] = []
    for part in parts_of(model):
        client = getattr(part, "client", None)
        for holder in (client, getattr(client, "_api_client", None)):
            keys = (getattr(holder, name, None) for name in ("api_key", "auth_token"))
            secrets += [key for key in keys if isinstance(key, str) and key]
    return secrets
