"""Validate model answers, and create the messages that request a repair."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar, cast

import orjson

from orchestrator.models.templates import encode_data
from orchestrator.ports.language_model import (
    ChatMessage,
    ChatReply,
    ChatRole,
    FinishReason,
    ToolDefinition,
)
from orchestrator.types import Json, JsonObject, drop_nul, is_list, is_object

Answer = TypeVar("Answer")
_QUALIFIER = re.compile(r"^.*[.:/]")
LONGEST_QUOTE = 2_000
"""Maximum length of an answer or reason quoted in a repair request, in characters."""
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)
"""The text from the first brace to the last, because models surround JSON with fences or prose."""
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")


@dataclass(frozen=True, slots=True)
class Usable(Generic[Answer]):
    answer: Answer


@dataclass(frozen=True, slots=True)
class CutOff:
    """An answer that was truncated at its token limit."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """An answer that the model or its provider withheld.

    `refused`: True if the model declined, False if the content filter stopped the answer.
    """

    refused: bool


@dataclass(frozen=True, slots=True)
class Unusable:
    reason: str


Judgement: TypeAlias = Usable[Answer] | CutOff | Withheld | Unusable


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call whose arguments match the tool's schema."""

    id: str
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ToolsAnswer:
    """A model's text and tool calls. Without calls, the loop ends.

    `reply`: the assistant message that must precede the tool results in the next request.
    """

    text: str
    calls: tuple[ToolRequest, ...]
    reply: ChatMessage


class Shape:
    """A compiled JSON Schema."""

    def __init__(self, schema: JsonObject) -> None:
        # Imported here, because a process without a model doesn't need it.
        from jsonschema import Draft202012Validator, exceptions  # noqa: PLC0415

        self._validator: Any = Draft202012Validator(schema)
        self._best_match: Any = cast("Any", exceptions).best_match  # the library's own types are incomplete

    def mismatch(self, value: Json) -> str | None:
        """Return where and why a value doesn't match the schema, or None if it matches."""
        error = self._best_match(self._validator.iter_errors(value))
        return None if error is None else f"{error.json_path}: {error.message}"[:LONGEST_QUOTE]


def check_ending(reason: FinishReason | None) -> CutOff | Withheld | None:
    """Return why an answer is incomplete, or None if it is complete."""
    match reason:
        case FinishReason.LENGTH:
            return CutOff()
        case FinishReason.CONTENT_FILTER | FinishReason.REFUSAL:
            return Withheld(refused=reason is FinishReason.REFUSAL)
        case _:
            return None


def validate_object(reply: ChatReply, shape: Shape) -> Judgement[JsonObject]:
    value = read_json(reply.text)
    if is_object(value):
        mismatch = shape.mismatch(value)
        if mismatch is None:
            return Usable(value)
    else:
        mismatch = "the answer is not one JSON object"
    return check_ending(reply.finish_reason) or Unusable(mismatch)


def validate_text(reply: ChatReply) -> Judgement[str]:
    text = reply.text.strip()
    return check_ending(reply.finish_reason) or (Usable(text) if text else Unusable("the answer is empty"))


def validate_tools(
    reply: ChatReply, tools: tuple[ToolDefinition, ...], shapes: Mapping[str, Shape]
) -> Judgement[ToolsAnswer]:
    """Validate an answer with tool calls. Each call must name an offered tool and match the tool's schema."""
    if (early := check_ending(reply.finish_reason)) is not None:
        return early
    calls: list[ToolRequest] = []
    for call in reply.tool_calls:
        # Some models qualify tool names, for example `functions.search`.
        name = call.name if call.name in shapes else _QUALIFIER.sub("", call.name)
        if name not in shapes:
            offered = ", ".join(tool.name for tool in tools)
            return Unusable(f"unknown tool {call.name[:100]!r}; available tools: {offered}")
        arguments = read_json(call.arguments or "{}")
        if not is_object(arguments):
            return Unusable(f"the arguments of {name} are not a JSON object")
        shape = shapes[name]
        if (mismatch := shape.mismatch(arguments)) is not None:
            arguments = _decode_members(arguments)
            if shape.mismatch(arguments) is not None:
                return Unusable(f"the arguments of {name} don't match the schema: {mismatch}")
        calls.append(ToolRequest(call.id, name, arguments))
    if not calls and not reply.text.strip():
        return Unusable("the answer is empty")
    # An opaque answer is sent back unchanged, so its tool results must use the same call names.
    named = [replace(call, name=read.name) for call, read in zip(reply.tool_calls, calls, strict=True)]
    made = reply.tool_calls if reply.opaque is not None else tuple(named)
    message = ChatMessage(ChatRole.ASSISTANT, reply.text, made, opaque=reply.opaque)
    return Usable(ToolsAnswer(reply.text.strip(), tuple(calls), message))


def _decode_members(arguments: JsonObject) -> JsonObject:
    """Decode the lists and objects that the model encoded as JSON strings."""

    def decode(value: Json) -> Json:
        decoded: Json = _parse(value) if isinstance(value, str) else None
        return decoded if is_object(decoded) or is_list(decoded) else value

    return {name: decode(value) for name, value in arguments.items()}


def read_json(text: str) -> Json:
    """Parse JSON, or the JSON object within a text. Return None if the text contains no JSON.

    Trailing commas and JSON within a JSON string are accepted.
    """
    value = _parse(text)
    return _parse(value) if isinstance(value, str) else value


def _parse(text: str) -> Json:
    text = drop_nul(text)
    found = _OBJECT.search(text)
    inside = [found[0], _TRAILING_COMMA.sub("", found[0])] if found else []
    for tried in (text, *inside):
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(tried)
    for tried in (text, *inside):
        # Models sometimes write unescaped line breaks and tabs within strings.
        with suppress(ValueError, RecursionError):
            return json.loads(tried, strict=False)
    return None


def drop_history(messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...] | None:
    """Return the messages without the older half of the conversation, or None if they contain no history."""
    for at, message in enumerate(messages):
        read = read_json(message.content) if message.role is ChatRole.USER else None
        data = read if is_object(read) else {}
        if history := data.get("history"):
            shorter = encode_data(data | {"history": history[(len(history) + 1) // 2 :]})
            return (*messages[:at], replace(message, content=shorter), *messages[at + 1 :])
    return None


def ask_again(reply: ChatReply, reason: str) -> tuple[ChatMessage, ...]:
    """Return the messages for a repair request: the previous answer and its fault, both as data."""
    answered = {
        "text": reply.text[:LONGEST_QUOTE],
        "tool_calls": [[call.name, call.arguments[:LONGEST_QUOTE]] for call in reply.tool_calls],
    }
    words = (
        f"Your last answer cannot be used. The reason, as data: {encode_data(reason[:LONGEST_QUOTE])}. "
        "Answer the request again, and correct this."
    )
    return ChatMessage(ChatRole.ASSISTANT, encode_data(answered)), ChatMessage(ChatRole.USER, words)
