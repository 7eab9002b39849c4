"""Any pydantic-ai model as a `LanguageModel`.

This module imports pydantic-ai, which takes half a second; it is imported when the first such model
is made.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.settings import ModelSettings

from perdure.errors import ModelError, ModelSpecError
from perdure.messages import Message
from perdure.models.protocol import ModelRequest, OnDelta
from perdure.models.pydantic_ai_errors import model_error
from perdure.models.pydantic_ai_output import instructed, with_output
from perdure.models.pydantic_ai_requests import model_messages, request_parameters
from perdure.models.pydantic_ai_responses import assistant_message, delta_of

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


class PydanticAIModel:
    """A pydantic-ai model. Its own settings apply; the provider's retries are off unless they say
    otherwise.

    Each call opens its connection and closes it; whoever makes many enters the model (`async with`)
    around them, and they share what is open.
    """

    def __init__(self, model: Model[Any], *, name: str = "") -> None:
        self.name = name or model.model_id
        self.model = model
        self._api = next(
            (APIS[kind.__name__] for kind in type(model).__mro__ if kind.__name__ in APIS), ""
        )

    def __repr__(self) -> str:
        return f"<PydanticAIModel {self.name}>"

    async def __aenter__(self) -> Self:
        await self.model.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.model.__aexit__(kind, error, traceback)

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Message:
        """Ask the provider for the next message; streamed when `on_delta` is given and the model
        can.

        Raises `ModelError` when the call fails, final or worth another attempt. A mistake in a
        model's code is raised as it is.
        """
        try:
            request = self._instructed(request)
            parameters = with_output(request_parameters(request), request.output_schema)
            messages = self._messages(request, parameters)
            async with self.model:
                response = await self._response(messages, parameters, on_delta)
            return assistant_message(response, api=self._api, label=self.name)
        except Exception as error:
            failure = model_error(error, self.name)
            if failure is None or failure is error:
                raise
            raise failure from error

    def _instructed(self, request: ModelRequest) -> ModelRequest:
        profile = self.model.profile
        return instructed(request, profile, self._api, has_tools=bool(request.tools))

    def _messages(
        self, request: ModelRequest, parameters: ModelRequestParameters
    ) -> list[ModelMessage]:
        messages = model_messages(request, self.model.system)
        if not messages:
            raise ModelError("the conversation is empty: there is nothing to send to the model")
        return self.model.prepare_messages(messages, parameters)

    async def _response(
        self,
        messages: list[ModelMessage],
        parameters: ModelRequestParameters,
        on_delta: OnDelta | None,
    ) -> ModelResponse:
        settings = self._settings()
        if on_delta is None or not self._can_stream():
            return await model_request(
                self.model, messages, model_settings=settings, model_request_parameters=parameters
            )
        stream = model_request_stream(
            self.model, messages, model_settings=settings, model_request_parameters=parameters
        )
        async with stream as response:
            async for event in response:
                delta = delta_of(event)
                if delta is not None:
                    on_delta(delta)
            return response.get()

    def _settings(self) -> ModelSettings | None:
        # Whoever calls us retries, with a record of it; two layers of retries would multiply.
        own = self.model.settings or {}
        if "max_retries" in own or "max_retries" in self.model.unsupported_settings:
            return None
        return ModelSettings(max_retries=0)

    def _can_stream(self) -> bool:
        return type(self.model).request_stream is not Model.request_stream


def model_from_spec(spec: str) -> PydanticAIModel:
    """The model that `provider:model` names.

    Raises `ModelSpecError` when there is no such provider, or its package or its API key is
    missing; the message says which.
    """
    try:
        return PydanticAIModel(infer_model(spec), name=spec)
    except (UserError, ImportError) as error:
        raise ModelSpecError(f"model {spec!r} cannot be used: {error}") from error
    except Exception as error:
        raise ModelSpecError(
            f"model {spec!r} cannot be made: {type(error).__name__}: {error}"
        ) from error
