"""A Pydantic AI chat-completions model that normalizes the responses of compatible endpoints."""

from collections.abc import AsyncIterable
from typing import Any

import openai
from openai.types import chat
from openai.types.chat import ChatCompletionChunk
from pydantic_ai._model_errors import openai_compatible_category, openai_compatible_status
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.usage import RequestUsage

from orchestrator.adapters.models.normalizing import ChunkNormalizer, normalize_completion
from orchestrator.types import Json, JsonObject, is_object


class MisreadThought(Exception):
    """Raised when a streamed answer ends a thought that was already forwarded as text."""


class CompatibleChatModel(OpenAIChatModel):
    """A chat-completions model for any compatible endpoint.

    `tells_stream_usage`: True to request token counts for streams.
    """

    tells_stream_usage = True

    def _process_response(self, response: Any, **options: Any) -> Any:
        if not isinstance(response, chat.ChatCompletion):
            return super()._process_response(response, **options)
        body = response.model_dump(warnings=False)
        raise_error_member(body, self.model_name)
        normalized = chat.ChatCompletion.model_validate(normalize_completion(body))
        return super()._process_response(normalized, **options)

    def _get_stream_options(self, model_settings: Any) -> Any:
        return super()._get_stream_options(model_settings) if self.tells_stream_usage else openai.omit

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _NormalizedStream


class _NormalizedStream(OpenAIStreamedResponse):
    def _add_usage(self, usage: RequestUsage, *, reported: bool, cumulative: bool = False) -> None:
        # Some servers send the current totals with every chunk.
        super()._add_usage(usage, reported=reported, cumulative=reported or cumulative)

    def _validate_response(self) -> AsyncIterable[ChatCompletionChunk]:
        return self._normalized()

    async def _normalized(self) -> AsyncIterable[ChatCompletionChunk]:
        normalizer = ChunkNormalizer()
        async for chunk in self._response:
            body = chunk.model_dump(warnings=False)
            raise_error_member(body, self.model_name)
            yield ChatCompletionChunk.model_validate(normalizer.normalize(body))
            if normalizer.misread:
                raise MisreadThought
        if (rest := normalizer.end()) is not None:
            yield ChatCompletionChunk.model_validate(rest)


def raise_error_member(body: Json, model_name: str) -> None:
    """Raise the error in a response without choices, if any. Some gateways send errors with status 200."""
    error: Json = body.get("error")
    if not error or body.get("choices"):
        return
    said: JsonObject = error if is_object(error) else {}
    code, kind = (None if said.get(name) is None else str(said[name]) for name in ("code", "type"))
    status = openai_compatible_status(code, kind) or 500
    category = openai_compatible_category(status, code, kind, said.get("message"))
    raise ModelHTTPError.for_category(
        category,
        status_code=status,
        model_name=model_name,
        body=body,
        provider_error_code=code,
        provider_error_type=kind,
    )
