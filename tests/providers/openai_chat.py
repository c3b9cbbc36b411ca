"""Chat completions of OpenAI: its rules and answers. Azure, Groq and Mistral use dialects of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import orjson

from tests.providers.dialect import Dialect, Reply, Turn
from tests.providers.rules import (
    Body,
    fields,
    first,
    names_in,
    refuse_at_the_top,
    refuse_name,
    refuse_unstrict,
    rule,
)

CREATE = "https://platform.openai.com/docs/api-reference/chat/create"
FUNCTIONS = "https://platform.openai.com/docs/guides/function-calling"
STRUCTURED = "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas"
REASONING = "https://platform.openai.com/docs/guides/reasoning"
NAME = "[a-zA-Z0-9_-]{1,64}"
KNOWN = names_in("""
    model messages store metadata reasoning_effort verbosity max_tokens max_completion_tokens temperature top_p n
    stop stream stream_options tools tool_choice parallel_tool_calls response_format seed service_tier user
    safety_identifier prompt_cache_key prompt_cache_retention presence_penalty frequency_penalty logit_bias logprobs
    top_logprobs modalities audio prediction web_search_options functions function_call
""")


@rule(FUNCTIONS)
def tools_are_functions_by_object_schema(body: Body) -> str | None:
    return first(_tool(tool) for tool in body.get("tools") or ())


def _tool(tool: Any) -> str | None:
    if tool.get("type") != "function":
        return "Missing required parameter: 'tools[0].type'."
    function = tool["function"]
    parameters = function.get("parameters", {"type": "object"})
    reason = refuse_name(function.get("name"), NAME) or refuse_at_the_top(
        parameters, "oneOf", "anyOf", "allOf", "enum", "not"
    )
    reason = reason or (refuse_unstrict(parameters) if function.get("strict") else None)
    return f"Invalid schema for function {function.get('name')!r}: {reason}" if reason else None


@rule(STRUCTURED)
def schemas_of_answers_are_supported(body: Body) -> str | None:
    output = body.get("response_format") or {}
    if output.get("type") not in {None, "text", "json_object", "json_schema"}:
        return f"Invalid value: {output['type']!r}."
    if output.get("type") != "json_schema":
        return None
    named = output["json_schema"]
    reason = refuse_name(named.get("name"), NAME) or refuse_at_the_top(
        named.get("schema"), "anyOf", "enum", "not"
    )
    return reason or (refuse_unstrict(named["schema"]) if named.get("strict") else None)


@rule("https://platform.openai.com/docs/guides/structured-outputs#json-mode")
def json_mode_speaks_of_json(body: Body) -> str | None:
    if (body.get("response_format") or {}).get("type") != "json_object":
        return None
    said = " ".join(str(message.get("content")) for message in body["messages"])
    return None if "json" in said.lower() else "'messages' must contain the word 'json' in some form"


@rule(CREATE + "#chat-create-metadata")
def metadata_are_short_and_stored(body: Body) -> str | None:
    metadata = body.get("metadata")
    if metadata is None:
        return None
    if not body.get("store"):
        return "The 'metadata' parameter is only allowed when 'store' is enabled."
    fit = all(
        len(key) <= 64 and isinstance(value, str) and len(value) <= 512 for key, value in metadata.items()
    )
    return None if fit and len(metadata) <= 16 else "Invalid 'metadata'."


@rule(CREATE + "#chat-create-stream_options")
def options_of_streams_need_a_stream(body: Body) -> str | None:
    wrong = body.get("stream_options") is not None and not body.get("stream")
    return "The 'stream_options' parameter is only allowed when 'stream' is enabled." if wrong else None


@rule(CREATE + "#chat-create-tool_choice")
def choices_need_tools(body: Body) -> str | None:
    if body.get("tools"):
        choice = body.get("tool_choice")
        named = choice["function"]["name"] if isinstance(choice, dict) else None
        names = [tool["function"]["name"] for tool in body["tools"]]
        return (
            f"Tool choice {named!r} not found in 'tools' parameter." if named and named not in names else None
        )
    given = [name for name in ("tool_choice", "parallel_tool_calls") if name in body]
    return f"'{given[0]}' is only allowed when 'tools' are specified." if given else None


@rule(FUNCTIONS)
def each_call_is_answered(body: Body) -> str | None:
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return (
                    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"tool_call_ids did not have response messages: {', '.join(waiting)}"
        for call in message.get("tool_calls") or ():
            if call.get("type") != "function" or not isinstance(call["function"]["arguments"], str):
                return "Invalid type for 'messages[].tool_calls[].function.arguments'"
            waiting.append(call["id"])
    return f"tool_call_ids did not have response messages: {', '.join(waiting)}" if waiting else None


@rule(CREATE + "#chat-create-messages")
def messages_have_content(body: Body) -> str | None:
    for message in body["messages"]:
        if message["role"] not in {"system", "developer", "user", "assistant", "tool"}:
            return f"Invalid value: {message['role']!r}."
        if message.get("content") is None and not message.get("tool_calls"):
            return "Invalid value for 'content': expected a string, got null."
    return None


@rule(CREATE + "#chat-create-max_tokens")
def one_limit_of_tokens(body: Body) -> str | None:
    both = "max_tokens" in body and "max_completion_tokens" in body
    return (
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        if both
        else None
    )


@rule(CREATE + "#chat-create-reasoning_effort")
def plain_models_take_no_effort(body: Body) -> str | None:
    return "Unrecognized request argument supplied: reasoning_effort" if "reasoning_effort" in body else None


@rule(REASONING)
def thinking_models_take_no_sampling(body: Body) -> str | None:
    if "max_tokens" in body:
        return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    if body.get("temperature", 1) != 1:
        return "Unsupported value: 'temperature' does not support this value with this model."
    given = [
        name
        for name in ("top_p", "presence_penalty", "frequency_penalty", "logprobs", "logit_bias")
        if name in body
    ]
    return f"Unsupported parameter: '{given[0]}' is not supported with this model." if given else None


@rule("https://github.com/openai/openai-openapi/issues/541")
def thinking_models_take_no_tools_here(body: Body) -> str | None:
    wrong = body.get("tools") and body.get("reasoning_effort") != "none"
    return (
        "Function tools with reasoning_effort are not supported for this model in /v1/chat/completions."
        if wrong
        else None
    )


SHARED = (
    tools_are_functions_by_object_schema,
    schemas_of_answers_are_supported,
    json_mode_speaks_of_json,
    options_of_streams_need_a_stream,
    choices_need_tools,
    each_call_is_answered,
    messages_have_content,
    one_limit_of_tokens,
)


class ChatDialect(Dialect):
    """Chat completions like those of OpenAI's own models."""

    name = "openai-chat"
    path = "/v1/chat/completions"
    rules = (
        fields(CREATE, KNOWN, "Unrecognized request argument supplied: {}"),
        metadata_are_short_and_stored,
        plain_models_take_no_effort,
        *SHARED,
    )

    def read(self, body: Body, path: str) -> Turn:
        output = (body.get("response_format") or {}).get("json_schema") or {}
        tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
        return Turn(
            str(body["model"]), list(body["messages"]), tools, output.get("name"), output.get("schema")
        )

    def error(self, status: int, message: str, code: str | None = None) -> Any:
        kind = "invalid_request_error" if status == 400 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def answer(self, body: Body, reply: Reply) -> Any:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": reply.text or None,
            "refusal": reply.refusal,
        }
        if reply.calls:
            message["tool_calls"] = [self.call(place, *one) for place, one in enumerate(reply.calls)]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": reply.reason or ("tool_calls" if reply.calls else "stop"),
        }
        return self.envelope(body, "chat.completion") | {"choices": [choice], "usage": self.usage(reply)}

    def chunks(self, body: Body, reply: Reply) -> Iterator[str]:
        envelope = self.envelope(body, "chat.completion.chunk")

        def chunk(delta: Any, reason: str | None = None) -> str:
            return self.event(envelope | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

        yield from self.preface(envelope)
        yield chunk({"role": "assistant", "content": ""})
        for piece in reply.pieces():
            yield chunk({"content": piece})
        for place, one in enumerate(reply.calls):
            call = self.call(place, *one)
            arguments = call["function"]["arguments"]
            half = len(arguments) // 2
            call["function"]["arguments"] = arguments[:half]
            yield chunk({"tool_calls": [{"index": place, **call}]})
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": arguments[half:]}}]})
        yield chunk({}, reply.reason or ("tool_calls" if reply.calls else "stop"))
        if (body.get("stream_options") or {}).get("include_usage"):
            yield self.event(envelope | {"choices": [], "usage": self.usage(reply)})
        yield "data: [DONE]\n\n"

    def preface(self, envelope: Any) -> Iterator[str]:
        return iter(())

    def call(self, place: int, name: str, arguments: Any) -> Any:
        text = orjson.dumps(arguments).decode()
        return {"id": self.call_id(), "type": "function", "function": {"name": name, "arguments": text}}

    def envelope(self, body: Body, kind: str) -> Any:
        return {
            "id": f"chatcmpl-{self.number()}",
            "object": kind,
            "created": int(time.time()),
            "model": body["model"],
        }

    def usage(self, reply: Reply) -> Any:
        return {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }


class ThinkingChatDialect(ChatDialect):
    """Chat completions of OpenAI's reasoning models: no sampling, and tools only without reasoning."""

    name = "openai-chat-thinking"
    rules = (
        fields(CREATE, KNOWN, "Unrecognized request argument supplied: {}"),
        metadata_are_short_and_stored,
        thinking_models_take_no_sampling,
        thinking_models_take_no_tools_here,
        *SHARED,
    )
