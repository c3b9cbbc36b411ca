"""A `ChatModel` for any provider that Pydantic AI supports.

Each request is sent once. Pydantic AI's retries are off, because `orchestrator.models` retries.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import httpx2
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters

from orchestrator.adapters.models.asking import parameters_for, settings_for
from orchestrator.adapters.models.building import build_model, close_provider, open_provider
from orchestrator.adapters.models.failures import translate
from orchestrator.adapters.models.messages import read_arguments, read_response, write_messages
from orchestrator.adapters.models.prices import list_price
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.errors import EndpointError, ModelRejected, ModelUnavailable
from orchestrator.ports.language_model import (
    CallPiece,
    ChatDelta,
    ChatReply,
    ChatRequest,
    EndpointProfile,
    RequestField,
    Usage,
)


class LibraryChat:
    """A `ChatModel` for one endpoint, bound to the event loop that first uses it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._settings = endpoint
        self._provider = open_provider(endpoint)
        self._models: dict[tuple[str, EndpointProfile], Model[Any]] = {}
        # Without credentials, which the URL may contain.
        self._endpoint = str(httpx2.URL(self._provider.base_url).copy_with(userinfo=b"")).rstrip("/")

    @property
    def endpoint(self) -> str:
        return self._endpoint

    def list_price(self, model: str, usage: Usage) -> float:
        return list_price(self._settings, self._endpoint, model, usage)

    async def complete(self, request: ChatRequest) -> ChatReply:
        with self._translated(request):
            model = self._model(request)
            parameters = parameters_for(model, request)
            async with asyncio.timeout(request.timeout_s):
                response = await self._ask(model, request, parameters)
            output_tool = request.output.name if request.output and parameters.output_mode == "tool" else None
            return read_response(response, self._endpoint, output_tool=output_tool)

    async def _ask(
        self, model: Model[Any], request: ChatRequest, parameters: ModelRequestParameters
    ) -> ModelResponse:
        messages, settings = self._messages(request), settings_for(self._settings, model, request)
        try:
            return await model.request(messages, settings, parameters)
        except UserError:
            if "tool_choice" not in settings:
                raise
            # According to Pydantic AI, this model can't be forced to call a specific tool.
            del settings["tool_choice"]
            return await model.request(messages, settings, parameters)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        deadline = asyncio.get_running_loop().time() + request.timeout_s
        async with AsyncExitStack() as stack:
            with self._translated(request):
                model = self._model(request)
                opening = model.request_stream(
                    self._messages(request),
                    settings_for(self._settings, model, request),
                    parameters_for(model, request),
                )
                async with asyncio.timeout_at(deadline):
                    try:
                        streamed = await stack.enter_async_context(opening)
                    except UnexpectedModelBehavior as error:
                        raise self._streams_nothing() from error
                events = aiter(streamed)
            while True:
                # The timeout must be inactive while the consumer holds the generator.
                with self._translated(request):
                    until = min(deadline, asyncio.get_running_loop().time() + self._settings.silence_s)
                    async with asyncio.timeout_at(until):
                        event = await anext(events, None)
                    delta = _read_event(event) if event is not None else self._read_ending(streamed.get())
                if delta is not None:
                    yield delta
                if event is None:
                    return

    async def aclose(self) -> None:
        await close_provider(self._provider)

    def _messages(self, request: ChatRequest) -> list[ModelMessage]:
        system_role = request.profile.takes(RequestField.SYSTEM_ROLE)
        return write_messages(request.messages, self._endpoint, system_role=system_role)

    def _model(self, request: ChatRequest) -> Model[Any]:
        key = (request.model, request.profile)
        if key not in self._models:
            self._models[key] = build_model(self._settings, self._provider, request.model, request.profile)
        return self._models[key]

    def _read_ending(self, response: ModelResponse) -> ChatDelta:
        reply = read_response(response, self._endpoint)
        return ChatDelta(finish_reason=reply.finish_reason, usage=reply.usage, opaque=reply.opaque)

    def _streams_nothing(self) -> ModelRejected:
        """Return the error for a stream without events. Some servers always answer with plain JSON."""
        return ModelRejected(
            f"The model endpoint {self._endpoint} did not stream its response.",
            said=EndpointError(self._endpoint, 200, field=RequestField.STREAM),
        )

    @contextmanager
    def _translated(self, request: ChatRequest) -> Generator[None, None, None]:
        try:
            yield
        except ModelUnavailable:
            raise
        except Exception as error:  # Any Pydantic AI error means that there is no answer.
            raise translate(error, self._endpoint, request.timeout_s) from error


def _read_event(event: ModelResponseStreamEvent) -> ChatDelta | None:
    match event:
        case (
            PartStartEvent(part=TextPart(content=text))
            | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
        ):
            return ChatDelta(text.replace("\0", "")) if text else None
        case PartStartEvent(
            index=place, part=ToolCallPart(tool_name=name, args=arguments, tool_call_id=call_id)
        ):
            return ChatDelta(calls=(CallPiece(place, call_id, name, read_arguments(arguments)),))
        case PartDeltaEvent(index=place, delta=ToolCallPartDelta(args_delta=arguments)):
            return ChatDelta(calls=(CallPiece(place, arguments=read_arguments(arguments)),))
        case _:
            return None
