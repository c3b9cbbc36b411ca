"""The Messages API of Anthropic: its rules and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from tests.providers.dialect import Dialect, Reply, Turn
from tests.providers.rules import (
    Body,
    fields,
    names_in,
    refuse_at_the_top,
    refuse_keywords,
    refuse_name,
    rule,
)

MESSAGES = "https://docs.anthropic.com/en/api/messages"
TOOLS = "https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use"
THINKING = "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking"
STRUCTURED = "https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations"
KNOWN = names_in("""
    model max_tokens messages system metadata stop_sequences stream temperature top_k top_p tools tool_choice thinking
    service_tier container context_management mcp_servers output_config output_format inference_geo cache_control
""")


def _blocks(message: Any) -> list[Any]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@rule(MESSAGES + "#body-max-tokens")
def the_limit_of_tokens_is_required(body: Body) -> str | None:
    limit = body.get("max_tokens")
    return None if isinstance(limit, int) and limit >= 1 else "max_tokens: Field required"


@rule(MESSAGES + "#body-messages")
def roles_are_user_and_assistant(body: Body) -> str | None:
    roles = [message["role"] for message in body["messages"]]
    if not {*roles} <= {"user", "assistant"}:
        return 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter.'
    return None if roles[:1] == ["user"] else 'messages: first message must use the "user" role'


@rule(MESSAGES + "#body-messages-content")
def texts_are_not_empty(body: Body) -> str | None:
    for message in body["messages"]:
        if not message["content"]:
            return "messages: all messages must have non-empty content"
        if any(block["type"] == "text" and not block["text"] for block in _blocks(message)):
            return "messages: text content blocks must be non-empty"
    return None


@rule(MESSAGES + "#body-messages")
def a_prefill_has_no_blanks_at_its_end(body: Body) -> str | None:
    last = body["messages"][-1]
    blocks = _blocks(last)
    text = blocks[-1].get("text", "") if blocks else ""
    wrong = last["role"] == "assistant" and text != text.rstrip()
    return "messages: final assistant content cannot end with trailing whitespace" if wrong else None


@rule(TOOLS + "#handling-results-from-client-tools")
def each_use_is_followed_by_its_result(body: Body) -> str | None:
    waiting: set[str] = set()
    for message in body["messages"]:
        results = {block["tool_use_id"] for block in _blocks(message) if block["type"] == "tool_result"}
        if waiting - results:
            return f"`tool_use` ids were found without `tool_result` blocks immediately after: {min(waiting - results)}"
        if results - waiting:
            return f"unexpected `tool_use_id` found in `tool_result` blocks: {min(results - waiting)}"
        waiting = {block["id"] for block in _blocks(message) if block["type"] == "tool_use"}
    return "`tool_use` ids were found without `tool_result` blocks" if waiting else None


@rule(TOOLS + "#specifying-client-tools")
def tools_have_names_and_object_schemas(body: Body) -> str | None:
    for place, tool in enumerate(body.get("tools") or ()):
        reason = refuse_name(tool.get("name"), "[a-zA-Z0-9_-]{1,64}") or refuse_at_the_top(
            tool.get("input_schema"), "oneOf", "allOf", "anyOf"
        )
        schema: Any = tool.get("input_schema") or {}
        for name in schema.get("properties") or ():
            reason = reason or refuse_name(name, "[a-zA-Z0-9_.-]{1,64}")
        if reason:
            return f"tools.{place}.custom.input_schema: {reason}"
    return None


@rule(MESSAGES + "#body-tools")
def uses_need_the_tools_parameter(body: Body) -> str | None:
    used = any(block["type"] == "tool_use" for message in body["messages"] for block in _blocks(message))
    return (
        "Requests which include `tool_use` blocks must define tools"
        if used and not body.get("tools")
        else None
    )


@rule(MESSAGES + "#body-tool-choice")
def choices_are_objects(body: Body) -> str | None:
    choice = body.get("tool_choice")
    if choice is None:
        return None
    if not isinstance(choice, dict) or choice.get("type") not in {"auto", "any", "tool", "none"}:
        return "tool_choice: Input should be a valid dictionary"
    return None if body.get("tools") else "tool_choice may only be specified while providing tools"


@rule(THINKING + "#extended-thinking-with-tool-use")
def thinking_forces_no_tool(body: Body) -> str | None:
    thinks = (body.get("thinking") or {}).get("type") in {"enabled", "adaptive"}
    forced = (body.get("tool_choice") or {}).get("type") in {"any", "tool"}
    return "Thinking may not be enabled when tool_choice forces tool use." if thinks and forced else None


@rule(THINKING + "#how-to-use-extended-thinking")
def thinking_has_a_budget_below_the_limit(body: Body) -> str | None:
    thinking = body.get("thinking") or {}
    if thinking.get("type") != "enabled":
        return None
    budget = thinking.get("budget_tokens", 0)
    if budget < 1024:
        return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    return (
        None if budget < body["max_tokens"] else "`max_tokens` must be greater than `thinking.budget_tokens`."
    )


@rule(MESSAGES + "#body-metadata")
def metadata_hold_a_user_alone(body: Body) -> str | None:
    unknown = (body.get("metadata") or {}).keys() - {"user_id"}
    return f"metadata.{min(unknown)}: Extra inputs are not permitted" if unknown else None


@rule(MESSAGES + "#body-temperature")
def temperature_is_at_most_one(body: Body) -> str | None:
    return "temperature: range: 0..1" if not 0 <= (body.get("temperature") or 0) <= 1 else None


@rule(STRUCTURED)
def schemas_of_answers_have_no_bounds(body: Body) -> str | None:
    output = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    if output.get("type") != "json_schema":
        return None
    schema = output["schema"]
    reason = refuse_keywords(
        schema, "minimum", "maximum", "multipleOf", "minLength", "maxLength", "maxItems", "oneOf", "not", "if"
    )
    return f"output_config.format.schema: {reason}" if reason else None


class AnthropicDialect(Dialect):
    name = "anthropic"
    path = "/v1/messages"
    rules = (
        fields(MESSAGES, KNOWN, "{}: Extra inputs are not permitted"),
        the_limit_of_tokens_is_required,
        roles_are_user_and_assistant,
        texts_are_not_empty,
        a_prefill_has_no_blanks_at_its_end,
        each_use_is_followed_by_its_result,
        tools_have_names_and_object_schemas,
        uses_need_the_tools_parameter,
        choices_are_objects,
        thinking_forces_no_tool,
        thinking_has_a_budget_below_the_limit,
        metadata_hold_a_user_alone,
        temperature_is_at_most_one,
        schemas_of_answers_have_no_bounds,
    )

    def refuse(self, body: Body, headers: Mapping[str, str]) -> str | None:
        if "anthropic-version" not in headers:
            return "anthropic-version: header is required"
        return super().refuse(body, headers)

    def read(self, body: Body, path: str) -> Turn:
        system = body.get("system") or ""
        said = system if isinstance(system, str) else "".join(block["text"] for block in system)
        messages: list[Any] = [{"role": "system", "content": said}]
        for message in body["messages"]:
            for block in _blocks(message):
                match block["type"]:
                    case "text":
                        messages.append({"role": message["role"], "content": block["text"]})
                    case "tool_result":
                        messages.append({"role": "tool", "content": _text(block.get("content"))})
                    case "tool_use":
                        messages.append({"role": "assistant", "content": None, "tool_calls": [block]})
        output = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        tools = [tool["name"] for tool in body.get("tools") or ()]
        return Turn(body["model"], messages, tools, None, output.get("schema"))

    def error(self, status: int, message: str, code: str | None = None) -> Any:
        kind = code or {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}.get(
            status, "api_error"
        )
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}

    def answer(self, body: Body, reply: Reply) -> Any:
        return self._envelope(body) | {
            "content": self._content(body, reply),
            "stop_reason": self._reason(reply),
        }

    def chunks(self, body: Body, reply: Reply) -> Iterator[str]:
        def event(kind: str, **more: Any) -> str:
            return self.event({"type": kind, **more}, kind)

        yield event("message_start", message=self._envelope(body) | {"content": [], "stop_reason": None})
        yield event("ping")
        for place, block in enumerate(self._content(body, reply)):
            empty, deltas = _in_pieces(block)
            yield event("content_block_start", index=place, content_block=empty)
            for delta in deltas:
                yield event("content_block_delta", index=place, delta=delta)
            yield event("content_block_stop", index=place)
        yield event(
            "message_delta",
            delta={"stop_reason": self._reason(reply), "stop_sequence": None},
            usage={"output_tokens": 20},
        )
        yield event("message_stop")

    def _content(self, body: Body, reply: Reply) -> list[Any]:
        blocks: list[Any] = []
        if (body.get("thinking") or {}).get("type") in {"enabled", "adaptive"}:
            blocks.append({"type": "thinking", "thinking": "So they want {help}.", "signature": "sealed"})
        if reply.text or reply.refusal:
            blocks.append({"type": "text", "text": reply.text or reply.refusal})
        blocks += [
            {"type": "tool_use", "id": f"toolu_{self.number()}", "name": name, "input": arguments}
            for name, arguments in reply.calls
        ]
        return blocks

    def _reason(self, reply: Reply) -> str:
        if reply.refusal is not None:
            return "refusal"
        return reply.reason or ("tool_use" if reply.calls else "end_turn")

    def _envelope(self, body: Body) -> Any:
        usage = {
            "input_tokens": 36,
            "cache_read_input_tokens": 64,
            "cache_creation_input_tokens": 0,
            "output_tokens": 20,
        }
        kind = {"id": f"msg_{self.number()}", "type": "message", "role": "assistant", "model": body["model"]}
        return kind | {"stop_sequence": None, "usage": usage}


def _in_pieces(block: Any) -> tuple[Any, list[Any]]:
    match block["type"]:
        case "text":
            words = Reply(block["text"]).pieces()
            return block | {"text": ""}, [{"type": "text_delta", "text": word} for word in words]
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
            return block | {"thinking": "", "signature": ""}, deltas
        case _:
            written = orjson.dumps(block["input"]).decode()
            half = len(written) // 2
            pieces = ("", written[:half], written[half:])
            return block | {"input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in pieces
            ]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content or ())
