"""Judging what a model answered: usable, cut off, or not usable and why.

Also words the request to answer again. Asking again is the caller's work.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

import orjson

from orchestrator.models.templates import encode_data
from orchestrator.ports.language_model import (
    ChatMessage,
    ChatReply,
    ChatRole,
    FinishReason,
    ToolCall,
    ToolDefinition,
)
from orchestrator.types import Json, JsonObject, drop_nul

Answer = TypeVar("Answer")
LONGEST_QUOTE = 2_000
"""Characters of an unusable answer, or of a reason, that are shown to the model again."""
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)
"""What stands between the first and the last brace: models put a fence or words around it."""
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")


@dataclass(frozen=True, slots=True)
class Usable(Generic[Answer]):
    answer: Answer


@dataclass(frozen=True, slots=True)
class CutOff:
    """The answer met its token limit before it was complete."""


@dataclass(frozen=True, slots=True)
class Unusable:
    reason: str


Judgement: TypeAlias = Usable[Answer] | CutOff | Unusable


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call that the model wants, its arguments valid for the tool's schema."""

    id: str
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ToolsAnswer:
    """What a model said and the tools it wants called; no calls means that it is done."""

    text: str
    calls: tuple[ToolRequest, ...]
    reply: ChatMessage
    """The assistant message, to be sent back in front of the tools' results."""


def write_message(message: ChatMessage) -> JsonObject:
    """Write a message as JSON, for the journal."""
    calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    return {
        "role": message.role.value,
        "content": message.content,
        "calls": calls,
        "answers": message.tool_call_id,
    }


def write_answer(answer: ToolsAnswer) -> JsonObject:
    """Write a step of a loop over tools as JSON, for the journal."""
    calls = [[call.id, call.name, call.arguments] for call in answer.calls]
    return {"text": answer.text, "calls": calls, "reply": write_message(answer.reply)}


def read_answer(body: Json) -> ToolsAnswer:
    reply = body["reply"]
    message = ChatMessage(
        ChatRole(reply["role"]),
        reply["content"],
        tuple(ToolCall(*call) for call in reply["calls"]),
        reply["answers"],
    )
    return ToolsAnswer(body["text"], tuple(ToolRequest(*call) for call in body["calls"]), message)


class Shape:
    """A JSON Schema, prepared for judging answers."""

    def __init__(self, schema: JsonObject) -> None:
        # A process that asks no model need not import it.
        from jsonschema import Draft202012Validator, exceptions  # noqa: PLC0415

        self._validator: Any = Draft202012Validator(schema)
        self._best_match: Any = cast("Any", exceptions).best_match  # the library's own types are incomplete

    def mismatch(self, value: Json) -> str | None:
        """Say where and why a value does not fit, or None when it does."""
        error = self._best_match(self._validator.iter_errors(value))
        return None if error is None else f"{error.json_path}: {error.message}"[:LONGEST_QUOTE]


def judge_object(reply: ChatReply, shape: Shape) -> Judgement[JsonObject]:
    """Read a structured answer: one JSON object that fits the shape."""
    value = read_json(reply.text)
    if isinstance(value, dict):
        mismatch = shape.mismatch(value)
        if mismatch is None:
            return Usable(cast("JsonObject", value))
    else:
        mismatch = "the answer is not one JSON object"
    match reply.finish_reason:
        case FinishReason.LENGTH:
            return CutOff()
        case FinishReason.CONTENT_FILTER:
            return Unusable("the endpoint's content filter stopped the answer")
        case FinishReason.STOP | FinishReason.TOOL_CALLS | FinishReason.OTHER:
            return Unusable(mismatch)


def judge_text(reply: ChatReply) -> Judgement[str]:
    """Read a plain answer: text, and all of it."""
    text = reply.text.strip()
    match reply.finish_reason:
        case FinishReason.LENGTH:
            return CutOff()
        case FinishReason.CONTENT_FILTER:
            return Unusable("the endpoint's content filter stopped the answer")
        case FinishReason.STOP | FinishReason.TOOL_CALLS | FinishReason.OTHER:
            return Usable(text) if text else Unusable("the answer is empty")


def judge_tools(
    reply: ChatReply, tools: tuple[ToolDefinition, ...], shapes: Mapping[str, Shape]
) -> Judgement[ToolsAnswer]:
    """Read an answer that may call tools: every call must name an offered tool and fit its schema."""
    if reply.finish_reason is FinishReason.LENGTH:
        return CutOff()
    calls: list[ToolRequest] = []
    for call in reply.tool_calls:
        if call.name not in shapes:
            offered = ", ".join(tool.name for tool in tools)
            return Unusable(f"there is no tool {call.name[:100]!r}; there are: {offered}")
        arguments = read_json(call.arguments or "{}")
        if not isinstance(arguments, dict):
            return Unusable(f"the arguments of {call.name} are not a JSON object")
        if (mismatch := shapes[call.name].mismatch(arguments)) is not None:
            return Unusable(f"the arguments of {call.name} do not fit: {mismatch}")
        calls.append(ToolRequest(call.id, call.name, cast("JsonObject", arguments)))
    if not calls and not reply.text.strip():
        return Unusable("the answer is empty")
    message = ChatMessage(ChatRole.ASSISTANT, reply.text, reply.tool_calls)
    return Usable(ToolsAnswer(reply.text.strip(), tuple(calls), message))


def read_json(text: str) -> Json:
    """Read JSON, else the one object that stands in a text, trailing commas let pass; None when there is none."""
    text = drop_nul(text)
    found = _OBJECT.search(text)
    inside = [found[0], _TRAILING_COMMA.sub("", found[0])] if found else []
    for tried in (text, *inside):
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(tried)
    return None


def ask_again(reply: ChatReply, reason: str) -> tuple[ChatMessage, ...]:
    """Word the repair: what was answered, as data, and what is wrong with it."""
    answered = {
        "text": reply.text[:LONGEST_QUOTE],
        "tool_calls": [[call.name, call.arguments[:LONGEST_QUOTE]] for call in reply.tool_calls],
    }
    words = (
        f"Your last answer cannot be used. The reason, as data: {encode_data(reason[:LONGEST_QUOTE])}. "
        "Answer the request again, and correct this."
    )
    return ChatMessage(ChatRole.ASSISTANT, encode_data(answered)), ChatMessage(ChatRole.USER, words)
