"""A valid request for each provider, and an invalid request for each of its rules."""

from __future__ import annotations

import copy
from typing import Any

Path = tuple[str | int, ...]
TOOL_SCHEMA = {
    "type": "object",
    "properties": {"day": {"type": "string"}},
    "required": ["day"],
    "additionalProperties": False,
}
LAX = {"type": "object", "properties": {"day": {"type": "string", "maxLength": 9}}}
TOP = TOOL_SCHEMA | {"allOf": [{"required": ["day"]}]}
FUNCTION = {"name": "look", "description": "Look", "parameters": TOOL_SCHEMA}
CALL = {"id": "abcdefgh1", "type": "function", "function": {"name": "look", "arguments": '{"day": "x"}'}}
CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Answer."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "abcdefgh1", "content": "{}"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": "auto",
}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "schema": TOOL_SCHEMA, "strict": True}}
RESPONSES = {
    "model": "m",
    "instructions": "Answer.",
    "store": False,
    "input": [
        {"role": "user", "content": "Hello"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "{}"},
    ],
    "tools": [{"type": "function", **FUNCTION, "strict": False}],
}
ANTHROPIC = {
    "model": "m",
    "max_tokens": 2000,
    "system": "Answer.",
    "messages": [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "{}"}]},
    ],
    "tools": [{"name": "look", "description": "Look", "input_schema": TOOL_SCHEMA}],
}
GEMINI = {
    "contents": [
        {"role": "user", "parts": [{"text": "Hello"}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "c2VhbGVk"}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}]},
    ],
    "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": TOOL_SCHEMA}]}],
    "generationConfig": {"maxOutputTokens": 400},
}
GOOD: dict[str, Any] = {
    "openai-chat": CHAT,
    "openai-chat-thinking": CHAT | {"reasoning_effort": "none", "max_completion_tokens": 9},
    "azure": CHAT,
    "groq": CHAT,
    "mistral": CHAT,
    "openai-responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
}
_CHAT_RULES: dict[str, tuple[Path, Any]] = {
    "has_known_fields": (("frobnicate",), True),
    "tools_are_functions_by_object_schema": (("tools", 0, "function", "parameters"), TOP),
    "schemas_of_answers_are_supported": (
        ("response_format",),
        {**SCHEMA, "json_schema": {**SCHEMA["json_schema"], "schema": LAX}},
    ),  # type: ignore[dict-item]
    "json_mode_speaks_of_json": (("response_format",), {"type": "json_object"}),
    "options_of_streams_need_a_stream": (("stream_options",), {"include_usage": True}),
    "choices_need_tools": (("tools",), []),
    "each_call_is_answered": (("messages", 3, "tool_call_id"), "other"),
    "messages_have_content": (("messages", 1, "content"), None),
}
_PLAIN = _CHAT_RULES | {
    "metadata_are_short_and_stored": (("metadata",), {"prompt_id": "x"}),
    "plain_models_take_no_effort": (("reasoning_effort",), "low"),
    "one_limit_of_tokens": ((), {"max_tokens": 1, "max_completion_tokens": 1}),
}
_GROQ = {
    "groq_takes_no_log_probabilities": (("logprobs",), True),
    "groq_takes_no_names_of_speakers": (("messages", 1, "name"), "ann"),
    "groq_gives_one_choice": (("n",), 2),
    "groq_enforces_no_schema_in_a_stream_or_with_tools": (("response_format",), SCHEMA),
    "groq_enforces_schemas_of_known_form": (
        ("response_format",),
        {"type": "json_schema", "json_schema": {"schema": LAX, "strict": True}},
    ),
}
BROKEN: dict[str, dict[str, tuple[Path, Any]]] = {
    "openai-chat": _PLAIN,
    "openai-chat-thinking": _CHAT_RULES
    | {
        "metadata_are_short_and_stored": (("metadata",), {"prompt_id": "x"}),
        "thinking_models_take_no_sampling": (("temperature",), 0.2),
        "thinking_models_take_no_tools_here": (("reasoning_effort",), "low"),
        "one_limit_of_tokens": (("max_tokens",), 1),
    },
    "azure": _PLAIN,
    "groq": {
        name: broken
        for name, broken in _CHAT_RULES.items()
        if name
        not in {"schemas_of_answers_are_supported", "json_mode_speaks_of_json", "messages_have_content"}
    }
    | _GROQ,
    "mistral": {
        "has_known_fields": (("stream_options",), {"include_usage": True}),
        "mistral_calls_have_short_identifiers": (("messages", 2, "tool_calls", 0, "id"), "call_1"),
        "mistral_roles_come_in_order": (
            ("messages", 2),
            {"role": "tool", "tool_call_id": "abcdefgh1", "content": "{}"},
        ),
        "mistral_assistants_say_or_call": (("messages", 2, "tool_calls"), []),
        "mistral_choices_are_named": (("tool_choice",), "finish"),
        "mistral_tools_are_functions": (("tools", 0, "function", "parameters"), {}),
    },
    "openai-responses": {
        "has_known_fields": (("max_tokens",), 3),
        "tools_are_flat_functions": (("tools", 0, "parameters"), TOP),
        "schemas_of_answers_are_supported": (
            ("text",),
            {"format": {"type": "json_schema", "name": "a b", "schema": TOOL_SCHEMA}},
        ),
        "answers_have_at_least_sixteen_tokens": (("max_output_tokens",), 8),
        "choices_name_a_tool": (("tool_choice",), {"type": "function", "name": "other"}),
        "each_call_has_its_output": (("input", 3, "call_id"), "c2"),
        "thoughts_go_back_with_what_they_led_to": (("input", 1, "encrypted_content"), None),
        "calls_go_back_with_the_thoughts_before_them": (("input", 1), {"role": "user", "content": "Go on"}),
        "thinking_models_take_no_sampling": (("temperature",), 0.2),
    },
    "anthropic": {
        "has_known_fields": (("response_format",), {}),
        "the_limit_of_tokens_is_required": (("max_tokens",), None),
        "roles_are_user_and_assistant": (("messages", 0, "role"), "system"),
        "texts_are_not_empty": (("messages", 0, "content"), ""),
        "a_prefill_has_no_blanks_at_its_end": (
            ("messages",),
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b "}],
        ),
        "each_use_is_followed_by_its_result": (("messages", 2, "content", 0, "tool_use_id"), "t2"),
        "tools_have_names_and_object_schemas": (("tools", 0, "input_schema"), TOP),
        "uses_need_the_tools_parameter": (("tools",), []),
        "choices_are_objects": (("tool_choice",), "auto"),
        "thinking_forces_no_tool": (
            (),
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "tool_choice": {"type": "any"}},
        ),
        "thinking_has_a_budget_below_the_limit": (("thinking",), {"type": "enabled", "budget_tokens": 2000}),
        "metadata_hold_a_user_alone": (("metadata",), {"prompt_id": "x"}),
        "temperature_is_at_most_one": (("temperature",), 1.5),
        "schemas_of_answers_have_no_bounds": (
            ("output_config",),
            {"format": {"type": "json_schema", "schema": LAX}},
        ),
    },
    "gemini": {
        "has_known_fields": (("metadata",), {}),
        "has_known_settings": (("generationConfig", "max_tokens"), 3),
        "schemas_of_functions_are_of_the_subset": (
            ("tools", 0, "functionDeclarations", 0),
            {"name": "look", "parameters": TOOL_SCHEMA},
        ),
        "schemas_of_answers_are_of_the_subset": (
            ("generationConfig",),
            {"responseMimeType": "application/json", "responseSchema": {"type": ["string", "null"]}},
        ),
        "functions_have_names": (("tools", 0, "functionDeclarations", 0, "name"), "1 look"),
        "allowed_functions_are_declared": (
            ("toolConfig",),
            {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["other"]}},
        ),
        "contents_are_of_user_and_model": (("contents", 0, "role"), "system"),
        "each_call_is_followed_by_its_response": (("contents", 2, "parts"), [{"text": "Go on"}]),
        "calls_go_back_with_their_signature": (("contents", 1, "parts", 0, "thoughtSignature"), ""),
    },
}


def break_it(dialect: str, rule: str) -> Any:
    """Change a provider's valid request so that it breaks a rule."""
    body = copy.deepcopy(GOOD[dialect])
    if rule == "choices_need_tools":
        body["messages"] = body["messages"][:2]
    path, value = BROKEN[dialect][rule]
    if not path:
        return {**body, **value}
    place = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return body
