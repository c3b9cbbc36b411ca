"""The Responses API of OpenAI: its rules and answers."""

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

CREATE = "https://platform.openai.com/docs/api-reference/responses/create"
FUNCTIONS = "https://platform.openai.com/docs/guides/function-calling?api-mode=responses"
STRUCTURED = "https://platform.openai.com/docs/guides/structured-outputs?api-mode=responses#supported-schemas"
STATE = "https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items"
NAME = "[a-zA-Z0-9_-]{1,64}"
KNOWN = names_in("""
    model input instructions store metadata include reasoning text tools tool_choice parallel_tool_calls
    max_output_tokens max_tool_calls temperature top_p top_logprobs stream stream_options
    truncation previous_response_id conversation
    background service_tier user safety_identifier prompt_cache_key prompt_cache_options prompt_cache_retention
    prompt context_management
""")


@rule(FUNCTIONS)
def tools_are_flat_functions(body: Body) -> str | None:
    return first(_tool(tool) for tool in body.get("tools") or ())


def _tool(tool: Any) -> str | None:
    if tool.get("type") != "function" or "function" in tool:
        return "Missing required parameter: 'tools[0].name'."
    parameters = tool.get("parameters")
    reason = refuse_name(tool.get("name"), NAME) or refuse_at_the_top(
        parameters, "oneOf", "anyOf", "allOf", "enum", "not"
    )
    reason = reason or (refuse_unstrict(parameters) if tool.get("strict") else None)
    return f"Invalid schema for function {tool.get('name')!r}: {reason}" if reason else None


@rule(STRUCTURED)
def schemas_of_answers_are_supported(body: Body) -> str | None:
    output = (body.get("text") or {}).get("format") or {}
    if output.get("type") != "json_schema":
        return None
    reason = refuse_name(output.get("name"), NAME) or refuse_at_the_top(
        output.get("schema"), "anyOf", "enum", "not"
    )
    return reason or (refuse_unstrict(output["schema"]) if output.get("strict") else None)


@rule(CREATE + "#responses-create-max_output_tokens")
def answers_have_at_least_sixteen_tokens(body: Body) -> str | None:
    limit = body.get("max_output_tokens")
    return (
        None if limit is None or limit >= 16 else "Invalid 'max_output_tokens': integer below minimum value."
    )


@rule(CREATE + "#responses-create-tool_choice")
def choices_name_a_tool(body: Body) -> str | None:
    choice = body.get("tool_choice")
    names = {tool.get("name") for tool in body.get("tools") or ()}
    if choice is not None and not names and choice not in ("auto", "none"):
        return "'tool_choice' is only allowed when 'tools' are specified."
    if isinstance(choice, dict) and choice.get("type") == "function" and choice.get("name") not in names:
        return f"Tool choice {choice.get('name')!r} not found in 'tools' parameter."
    return None


@rule(FUNCTIONS)
def each_call_has_its_output(body: Body) -> str | None:
    items = body["input"] if isinstance(body["input"], list) else []
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    missing = [one for one in calls if one not in outputs]
    if missing:
        return f"No tool output found for function call {missing[0]}."
    unknown = [one for one in outputs if one not in calls]
    return f"No tool call found for function call output with call_id {unknown[0]}." if unknown else None


@rule(STATE)
def thoughts_go_back_with_what_they_led_to(body: Body) -> str | None:
    items = body["input"] if isinstance(body["input"], list) else []
    for item, following in zip(items, [*items[1:], {}], strict=False):
        if item.get("type") != "reasoning":
            continue
        if (
            following.get("type") not in {"function_call", "message", "reasoning"}
            and following.get("role") != "assistant"
        ):
            return f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
        if not item.get("encrypted_content") and body.get("store") is False:
            return f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false."
    return None


@rule(STATE)
def calls_go_back_with_the_thoughts_before_them(body: Body) -> str | None:
    """Refuse a reasoning model's call that is sent back with its ID but without its thoughts."""
    items = body["input"] if isinstance(body["input"], list) else []
    before: Any = {}
    for item in items:
        alone = (
            item.get("type") == "function_call"
            and item.get("id")
            and before.get("type") not in {"reasoning", "function_call"}
        )
        if alone:
            return f"Item '{item['id']}' of type 'function_call' was provided without its required 'reasoning' item."
        before = item
    return None


@rule("https://platform.openai.com/docs/guides/latest-model")
def thinking_models_take_no_sampling(body: Body) -> str | None:
    given = [name for name in ("temperature", "top_p", "top_logprobs") if body.get(name) is not None]
    return f"Unsupported parameter: '{given[0]}' is not supported with this model." if given else None


class ResponsesDialect(Dialect):
    """Responses like those of OpenAI's reasoning models."""

    name = "openai-responses"
    path = "/v1/responses"
    rules = (
        fields(CREATE, KNOWN, "Unknown parameter: '{}'."),
        tools_are_flat_functions,
        schemas_of_answers_are_supported,
        answers_have_at_least_sixteen_tokens,
        choices_name_a_tool,
        each_call_has_its_output,
        thoughts_go_back_with_what_they_led_to,
        calls_go_back_with_the_thoughts_before_them,
        thinking_models_take_no_sampling,
    )

    def read(self, body: Body, path: str) -> Turn:
        items = (
            body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
        )
        messages = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
        for item in items:
            match item.get("type", "message"):
                case "function_call":
                    messages.append({"role": "assistant", "content": None, "tool_calls": [item]})
                case "function_call_output":
                    messages.append({"role": "tool", "content": item["output"]})
                case "message":
                    messages.append({"role": item["role"], "content": _text(item["content"])})
        output = (body.get("text") or {}).get("format") or {}
        tools = [tool["name"] for tool in body.get("tools") or ()]
        return Turn(body["model"], messages, tools, output.get("name"), output.get("schema"))

    def error(self, status: int, message: str, code: str | None = None) -> Any:
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}

    def answer(self, body: Body, reply: Reply) -> Any:
        status = "incomplete" if reply.reason else "completed"
        details = {"reason": reply.reason} if reply.reason else None
        return self._envelope(body) | {
            "status": status,
            "incomplete_details": details,
            "output": self._items(reply),
            "usage": {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
                "output_tokens": 40,
                "output_tokens_details": {"reasoning_tokens": 20},
                "total_tokens": 140,
            },
        }

    def chunks(self, body: Body, reply: Reply) -> Iterator[str]:
        numbers = iter(range(10_000))

        def event(kind: str, **more: Any) -> str:
            return self.event({"type": kind, "sequence_number": next(numbers), **more}, kind)

        whole = self.answer(body, reply)
        begun = self._envelope(body) | {"status": "in_progress", "output": []}
        yield event("response.created", response=begun)
        for place, item in enumerate(whole["output"]):
            where = {"output_index": place, "item_id": item["id"]}
            yield event("response.output_item.added", output_index=place, item=_begun(item))
            if item["type"] == "function_call":
                half = len(item["arguments"]) // 2
                for piece in (item["arguments"][:half], item["arguments"][half:]):
                    yield event("response.function_call_arguments.delta", **where, delta=piece)
                yield event("response.function_call_arguments.done", **where, arguments=item["arguments"])
            elif item["type"] == "message" and item["content"][0]["type"] == "output_text":
                yield event(
                    "response.content_part.added",
                    **where,
                    content_index=0,
                    part={**item["content"][0], "text": ""},
                )
                for piece in reply.pieces():
                    yield event(
                        "response.output_text.delta", **where, content_index=0, delta=piece, logprobs=[]
                    )
                yield event(
                    "response.output_text.done", **where, content_index=0, text=reply.text, logprobs=[]
                )
            elif item["type"] == "message":
                yield event("response.refusal.delta", **where, content_index=0, delta=reply.refusal)
            yield event("response.output_item.done", output_index=place, item=item)
        yield event(f"response.{whole['status']}", response=whole)

    def _items(self, reply: Reply) -> list[Any]:
        items: list[Any] = [
            {
                "id": f"rs_{self.number()}",
                "type": "reasoning",
                "summary": [],
                "encrypted_content": f"sealed-{self.number()}",
            }
        ]
        for name, arguments in reply.calls:
            number = self.number()
            call = {"id": f"fc_{number}", "type": "function_call", "status": "completed", "name": name}
            items.append(call | {"call_id": f"call_{number}", "arguments": orjson.dumps(arguments).decode()})
        if not reply.calls:
            part: Any = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
            if reply.refusal is not None:
                part = {"type": "refusal", "refusal": reply.refusal}
            message = {
                "id": f"msg_{self.number()}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
            }
            items.append(message | {"content": [part]})
        return items

    def _envelope(self, body: Body) -> Any:
        return {
            "id": f"resp_{self.number()}",
            "object": "response",
            "created_at": int(time.time()),
            "model": body["model"],
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "metadata": body.get("metadata") or {},
            "parallel_tool_calls": True,
            "temperature": None,
            "top_p": None,
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools") or [],
        }


def _begun(item: Any) -> Any:
    emptied = (
        {"arguments": ""}
        if item["type"] == "function_call"
        else {"content": []}
        if item["type"] == "message"
        else {}
    )
    return {**item, **emptied, "status": "in_progress"} if item["type"] != "reasoning" else item


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
