"""Any pydantic-ai model as a `LanguageModel`.

This module imports pydantic-ai, which takes half a second; it is imported when the first such model
is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    NativeToolReturnPart,
    PartStartEvent,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

from perdure.errors import ModelError, ModelSpecError
from perdure.json_reader import loads_json
from perdure.json_writer import dumps_json
from perdure.messages import Message
from perdure.models.call_ids import with_unique_ids
from perdure.models.protocol import ModelRequest, OnDelta
from perdure.models.pydantic_ai_clients import SharedModel
from perdure.models.pydantic_ai_errors import model_error
from perdure.models.pydantic_ai_files import Reader
from perdure.models.pydantic_ai_output import instructed, with_output
from perdure.models.pydantic_ai_requests import model_messages, request_parameters
from perdure.models.pydantic_ai_responses import assistant_message, delta_of
from perdure.models.pydantic_ai_settings import call_settings, parts_of, secrets_of

APIS: Final = {
    "AnthropicModel": "anthropic-messages",
    "BedrockConverseModel": "bedrock-converse-stream",
    "GoogleModel": "google-generative-ai",
    "OpenAIChatModel": "openai-completions",
    "OpenAIResponsesModel": "openai-responses",
}
"""The log's names for the protocols that pydantic-ai's models speak; a model that is not listed has
none.
"""


MOST_PARTICULAR: Final = "anthropic-messages"

_MISREAD: Final = (AttributeError, KeyError, TypeError)
"""What the providers' clients raise for an answer that is JSON, but not of the form they expect."""

MAX_PAUSES: Final = 20
"""How often one answer may be paused by its provider, and is then asked to go on."""


class PydanticAIModel:
    """A pydantic-ai model. Its own settings apply; unless they say otherwise, the provider's
    retries are off and its cache is on.

    `native_tools` are tools that the provider runs itself: pydantic-ai's `WebSearchTool()` and the
    like. Calls share the connections that the model opens; it is closed when it was not called for
    a minute, by `aclose`, or when its event loop ends.
    """

    def __init__(
        self,
        model: Model[Any],
        *,
        name: str = "",
        native_tools: Iterable[AbstractNativeTool] = (),
    ) -> None:
        self.name = name or model.model_id
        self.model = model
        self.native_tools = tuple(native_tools)
        self._apis = _apis_of(model)
        self._shared = SharedModel(model)

    def __repr__(self) -> str:
        return f"<PydanticAIModel {self.name}>"

    async def aclose(self) -> None:
        """Close the connections that are open; a later call opens new ones."""
        await self._shared.aclose()

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        """Ask the provider for the next message; streamed when `on_delta` is given and the model
        can.

        Raises `ModelError` when the call fails, final or worth another attempt. A mistake in a
        model's code is raised as it is.
        """
        try:
            request = self._instructed(request)
            parameters = with_output(
                request_parameters(request, self.native_tools), request.output_schema
            )
            messages = self._messages(request, parameters)
            settings = call_settings(self.model, request.cache_key)
            async with self._shared.in_use():
                response = await self._response(messages, parameters, settings, on_delta)
            answer = assistant_message(response, api=self._api_of(response), label=self.name)
        except Exception as error:
            failure = model_error(error, self.name, *secrets_of(self.model))
            if failure is None and self._apis and isinstance(error, _MISREAD):
                failure = ModelError(
                    f"{self.name}: the answer cannot be read ({type(error).__name__})",
                    retryable=True,
                )
            if failure is None or failure is error:
                raise
            raise failure from error
        return _as_read_back(with_unique_ids(answer, request.messages))

    def _instructed(self, request: ModelRequest) -> ModelRequest:
        reader = self._reader()
        has_tools = bool(request.tools or self.native_tools)
        return instructed(request, reader.profile, reader.api, has_tools=has_tools)

    def _messages(
        self, request: ModelRequest, parameters: ModelRequestParameters
    ) -> list[ModelMessage]:
        messages = model_messages(request, self._reader())
        if not messages:
            raise ModelError("the conversation is empty: there is nothing to send to the model")
        return self.model.prepare_messages(messages, parameters)

    def _reader(self) -> Reader:
        try:
            profile = self.model.profile
        except NotImplementedError:  # a model that chooses among several has none
            profile = ModelProfile()
        # Whichever of several it will be: what Claude takes, the others take.
        apis = list(self._apis.values())
        api = MOST_PARTICULAR if MOST_PARTICULAR in apis else (apis or [""])[0]
        return Reader(self.model.system, api, profile)

    def _api_of(self, response: ModelResponse) -> str:
        """The protocol of the model that gave the answer, which may be one of several."""
        apis = self._apis
        only = next(iter(apis.values())) if len(apis) == 1 else ""
        return apis.get(response.provider_name or "", only)

    async def _response(
        self,
        messages: list[ModelMessage],
        parameters: ModelRequestParameters,
        settings: ModelSettings,
        on_delta: OnDelta | None,
    ) -> ModelResponse:
        """The answer, whole: one that its provider pauses, as it does when a tool that it runs
        takes long, is sent back to it and goes on.
        """
        response = await self._ask(messages, parameters, settings, on_delta)
        for _ in range(MAX_PAUSES):
            if response.state != "suspended" or self._api_of(response) != "anthropic-messages":
                break
            said = sum(not _is_return(part) for part in response.parts)
            rest = await self._ask(
                [*messages, response], parameters, settings, on_delta and _shifted(on_delta, said)
            )
            parts, usage = [*response.parts, *rest.parts], response.usage + rest.usage
            response = replace(rest, parts=parts, usage=usage)
        return response

    async def _ask(
        self,
        messages: list[ModelMessage],
        parameters: ModelRequestParameters,
        settings: ModelSettings,
        on_delta: OnDelta | None,
    ) -> ModelResponse:
        if on_delta is None or not self._can_stream():
            return await model_request(
                self.model, messages, model_settings=settings, model_request_parameters=parameters
            )
        stream = model_request_stream(
            self.model, messages, model_settings=settings, model_request_parameters=parameters
        )
        returns: list[int] = []  # they have no block of their own, but one with their calls
        async with stream as response:
            async for event in response:
                if isinstance(event, PartStartEvent) and _is_return(event.part):
                    returns.append(event.index)
                delta = delta_of(event)
                if delta is not None:
                    before = sum(index < delta.index for index in returns)
                    on_delta(replace(delta, index=delta.index - before))
            return response.get()

    def _can_stream(self) -> bool:
        return type(self.model).request_stream is not Model.request_stream


def _as_read_back(message: Message) -> Message:
    """The message as a log gives it back, where 1.0 is 1: whichever worker sends it on, and
    whether it has read it or heard it, it sends the same.
    """
    return Message.model_validate(loads_json(dumps_json(message.to_wire())))


def _apis_of(model: Model[Any]) -> dict[str, str]:
    """The protocols of a model, or of those that it chooses from, by their providers."""
    apis: dict[str, str] = {}
    for part in parts_of(model):
        api = next(
            (APIS[kind.__name__] for kind in type(part).__mro__ if kind.__name__ in APIS), ""
        )
        if api:
            apis.setdefault(part.system, api)
    return apis


def _is_return(part: ModelResponsePart) -> bool:
    return isinstance(part, NativeToolReturnPart)


def _shifted(on_delta: OnDelta, said: int) -> OnDelta:
    return lambda delta: on_delta(replace(delta, index=delta.index + said))


def model_from_spec(spec: str) -> PydanticAIModel:
    """The model that `provider:model` names.

    Raises `ModelSpecError` when there is no such provider, or its package or its API key is
    missing; the message says which.
    """
    try:
        return PydanticAIModel(infer_model(spec), name=spec)
    except (UserError, ImportError) as error:
        reason = str(error).partition(" To try Pydantic AI")[0]  # a hint for programs of its own
        if reason == f"Unknown model: {spec}":
            reason = "no such provider; see https://ai.pydantic.dev/models/ for those that exist"
        raise ModelSpecError(f"model {spec!r} cannot be used: {reason}") from error
    except Exception as error:
        raise ModelSpecError(
            f"model {spec!r} cannot be made: {type(error).__name__}: {error}"
        ) from error
