"""Between the records of `orchestrator.ports.language_model` and the OpenAI API: requests, replies, errors."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING

import openai

from orchestrator.errors import (
    ModelFailed,
    ModelNotAllowed,
    ModelRejected,
    ModelTimedOut,
    ModelUnavailable,
    RateLimited,
)
from orchestrator.ports.language_model import (
    CallPiece,
    ChatDelta,
    ChatMessage,
    ChatReply,
    ChatRequest,
    ChatRole,
    FinishReason,
    ToolCall,
    Usage,
)
from orchestrator.types import JsonObject

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

_FINISH_REASONS = {reason.value: reason for reason in FinishReason}
_WORTH_A_RETRY = frozenset({408, 409, 425})
_NAME = re.compile(r"[a-z][a-z0-9_.]{2,60}")
_NOT_ALLOWED = frozenset({401, 403, 404})


def request_body(request: ChatRequest, *, token_limit_field: str) -> JsonObject:
    """Write a request as the arguments of `chat.completions.create`."""
    body: JsonObject = {
        "model": request.model,
        "messages": [_message(message) for message in request.messages],
        "metadata": asdict(request.metadata),
        token_limit_field: request.max_tokens,
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = [{"type": "function", "function": asdict(tool)} for tool in request.tools]
    if request.output is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": asdict(request.output)}
    return body


def _message(message: ChatMessage) -> JsonObject:
    body: JsonObject = {"role": message.role.value, "content": message.content}
    if message.role is ChatRole.TOOL:
        body["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    return body


def read_reply(completion: "ChatCompletion") -> ChatReply:
    """Read a whole answer; raises ModelFailed when it has not the shape of one."""
    with _expected_shape():
        choice = completion.choices[0]
        calls = tuple(
            ToolCall(call.id, call.function.name, call.function.arguments)
            for call in choice.message.tool_calls or ()
            if call.type == "function"
        )
        return ChatReply(
            text="".join([choice.message.content or choice.message.refusal or ""]).replace("\0", ""),
            finish_reason=_finish_reason(choice.finish_reason),
            model=completion.model,
            tool_calls=calls,
            usage=_usage(completion.usage),
        )


def read_delta(chunk: "ChatCompletionChunk") -> ChatDelta:
    """Read one piece of a streamed answer; the one that carries the usage has no choice."""
    with _expected_shape():
        usage = _usage(chunk.usage)
        if not chunk.choices:
            return ChatDelta(usage=usage)
        choice = chunk.choices[0]
        reason = _finish_reason(choice.finish_reason) if choice.finish_reason else None
        text = "".join([choice.delta.content or ""]).replace("\0", "")
        return ChatDelta(text, reason, usage, tuple(map(_call_piece, choice.delta.tool_calls or ())))


def _call_piece(call: "ChoiceDeltaToolCall") -> CallPiece:
    function = call.function
    name, arguments = (function.name, function.arguments) if function is not None else (None, None)
    return CallPiece(call.index, call.id or "", name or "", (arguments or "").replace("\0", ""))


@contextmanager
def _expected_shape() -> Generator[None, None, None]:
    # The client does not validate what it reads, so a missing part shows up only when it is used.
    try:
        yield
    except (AttributeError, IndexError, TypeError) as error:
        raise ModelFailed("The model endpoint answered in a shape that is not the API's.") from error


def _finish_reason(name: str) -> FinishReason:
    return _FINISH_REASONS.get(name, FinishReason.OTHER)


def _usage(usage: "CompletionUsage | None") -> Usage | None:
    return None if usage is None else Usage(usage.prompt_tokens, usage.completion_tokens)


def translate(error: openai.OpenAIError, endpoint: str) -> ModelUnavailable:
    """Name a failure of the client in our words."""
    match error:
        case openai.APITimeoutError():
            return ModelTimedOut(f"The model endpoint {endpoint} did not answer in time.")
        case openai.APIConnectionError():
            return ModelFailed(f"The model endpoint {endpoint} cannot be reached.")
        case openai.APIStatusError():
            return _of_status(error, endpoint)
        case _:
            kind = type(error).__name__
            return ModelFailed(
                f"The model endpoint {endpoint} answered in a way that cannot be read: {kind}."
            )


def _of_status(error: openai.APIStatusError, endpoint: str) -> ModelUnavailable:
    status = error.status_code
    said = f"The model endpoint {endpoint} answered {status}{_reason(error)}."
    if status == 429:
        return RateLimited(said, retry_after_s=retry_after_s(error.response.headers))
    if status >= 500 or status in _WORTH_A_RETRY:
        return ModelFailed(said, status=status)
    if status in _NOT_ALLOWED:
        return ModelNotAllowed(said)
    return ModelRejected(said)


def _reason(error: openai.APIStatusError) -> str:
    """The API's name for what is wrong. Its message is left out: it may quote the key, or what was asked."""
    named = error.code or error.type
    return f" ({named})" if isinstance(named, str) and _NAME.fullmatch(named) else ""


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Read how long the endpoint asks to wait, in milliseconds, seconds or as a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        asked = headers.get("retry-after", "").strip()
        if not asked:
            return None
        if asked[0].isdigit():
            return float(asked)
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time())
    except ValueError:
        return None
