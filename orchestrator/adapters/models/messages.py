"""Convert between the model port's records and Pydantic AI's messages."""

import json
from collections.abc import Sequence
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from orchestrator.ports.language_model import (
    ChatMessage,
    ChatReply,
    ChatRole,
    FinishReason,
    Opaque,
    ToolCall,
    Usage,
)

_FINISH_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "tool_call": FinishReason.TOOL_CALLS,
}


def write_messages(
    messages: Sequence[ChatMessage], endpoint: str, *, system_role: bool = True
) -> list[ModelMessage]:
    """Convert a conversation to Pydantic AI messages. Opaque parts go only to the endpoint that wrote them.

    `system_role`: True if the endpoint accepts system messages. If not, their text precedes the next user
    message.
    """
    written: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    names: dict[str, str] = {}
    opening = ""
    for message in messages:
        match message.role:
            case ChatRole.SYSTEM if system_role:
                parts.append(SystemPromptPart(message.content))
            case ChatRole.SYSTEM:
                opening += f"{message.content}\n\n"
            case ChatRole.USER:
                parts.append(UserPromptPart(opening + message.content))
                opening = ""
            case ChatRole.TOOL:
                call_id = message.tool_call_id or ""
                parts.append(
                    ToolReturnPart(names.get(call_id, "tool"), message.content, tool_call_id=call_id)
                )
            case ChatRole.ASSISTANT:
                if parts:
                    written.append(ModelRequest(parts=parts))
                parts = []
                written.append(_write_answer(message, endpoint))
                names |= {call.id: call.name for call in message.tool_calls}
    if parts:
        written.append(ModelRequest(parts=parts))
    return written


def _write_answer(message: ChatMessage, endpoint: str) -> ModelResponse:
    opaque = message.opaque
    if opaque is not None and opaque.endpoint == endpoint:
        try:
            (known,) = ModelMessagesTypeAdapter.validate_python([opaque.body])
        except ValidationError:
            pass  # Another Pydantic AI release wrote the opaque part. The other fields have the same content, unsigned.
        else:
            return cast("ModelResponse", known)
    said = [TextPart(message.content)] if message.content else []
    calls = [ToolCallPart(call.name, call.arguments, tool_call_id=call.id) for call in message.tool_calls]
    return ModelResponse(parts=[*said, *calls])


def read_response(response: ModelResponse, endpoint: str, *, output_tool: str | None = None) -> ChatReply:
    """Convert a Pydantic AI response to a `ChatReply`.

    `output_tool`: the tool whose arguments are the answer's text.
    """
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if output_tool is not None:
        text = "".join(read_arguments(call.args) for call in calls if call.tool_name == output_tool) or text
        calls = []
    return ChatReply(
        text=text.replace("\0", ""),
        finish_reason=_finish_reason(response),
        model=response.model_name or "",
        tool_calls=tuple(
            ToolCall(call.tool_call_id, call.tool_name, read_arguments(call.args)) for call in calls
        ),
        usage=read_usage(response.usage),
        opaque=_keep_opaque(response, endpoint),
    )


def read_arguments(arguments: Any) -> str:
    text = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
    return text.replace("\0", "")


def read_usage(usage: RequestUsage) -> Usage | None:
    """Return the token counts, or None if the endpoint did not send them."""
    if usage.input_tokens + usage.output_tokens == 0:
        return None
    reasoning = usage.details.get("reasoning_tokens", 0)
    return Usage(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, reasoning)


def _finish_reason(response: ModelResponse) -> FinishReason:
    details = response.provider_details or {}
    if details.get("refusal") or details.get("finish_reason") == "refusal":
        return FinishReason.REFUSAL
    return _FINISH_REASONS.get(response.finish_reason or "stop", FinishReason.OTHER)


def _keep_opaque(response: ModelResponse, endpoint: str) -> Opaque | None:
    """Return an answer in its provider's form, or None if `ChatReply` represents it completely."""
    if not any(_is_signed(part) for part in response.parts):
        return None
    kept = ModelResponse(
        parts=response.parts,
        model_name=response.model_name,
        provider_name=response.provider_name,
        provider_url=response.provider_url,
        provider_response_id=response.provider_response_id,
        canonical_system=response.canonical_system,
    )
    (body,) = ModelMessagesTypeAdapter.dump_python([kept], mode="json", exclude_none=True)
    return Opaque(endpoint, body)


def _is_signed(part: Any) -> bool:
    return (
        isinstance(part, ThinkingPart)
        or bool(getattr(part, "provider_details", None))
        or bool(getattr(part, "id", None))
    )
