"""Dialects of chat completions: Azure, Groq and Mistral, each with its refusals and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.providers.dialect import Reply
from tests.providers.openai_chat import (
    KNOWN,
    NAME,
    SHARED,
    ChatDialect,
    choices_need_tools,
    each_call_is_answered,
    metadata_are_short_and_stored,
    options_of_streams_need_a_stream,
    plain_models_take_no_effort,
    tools_are_functions_by_object_schema,
)
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

AZURE = "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/reference-preview"
GROQ = "https://console.groq.com/docs/openai"
GROQ_CREATE = "https://console.groq.com/docs/api-reference#chat-create"
GROQ_STRUCTURED = "https://console.groq.com/docs/structured-outputs"
MISTRAL = "https://docs.mistral.ai/api/#tag/chat/operation/chat_completion_v1_chat_completions_post"
MISTRAL_FIELDS = names_in("""
    model messages temperature top_p max_tokens stream stop random_seed metadata response_format tools tool_choice
    presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode safe_prompt
    reasoning_effort guardrails
""")
MISTRAL_VALIDATOR = (
    "https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py"
)


class AzureDialect(ChatDialect):
    """A deployment of a simple model: no storage, an API version, and content filter results in each answer."""

    name = "azure"
    rules = (
        fields(
            AZURE,
            set(KNOWN) - {"prompt_cache_key", "verbosity"},
            "Unrecognized request argument supplied: {}",
        ),
        metadata_are_short_and_stored,
        plain_models_take_no_effort,
        *SHARED,
    )

    def refuse(self, body: Body, headers: Mapping[str, str]) -> str | None:
        if "api-key" not in headers and "authorization" not in headers:
            return "Access denied due to missing subscription key."
        return super().refuse(body, headers)

    def takes(self, path: str) -> bool:
        return path.startswith("/openai/") and path.endswith("/chat/completions")

    def answer(self, body: Body, reply: Reply) -> Any:
        answer = super().answer(body, reply)
        safe = {"hate": {"filtered": False, "severity": "safe"}}
        answer["prompt_filter_results"] = [{"prompt_index": 0, "content_filter_results": safe}]
        answer["choices"][0]["content_filter_results"] = safe
        return answer

    def preface(self, envelope: Any) -> Iterator[str]:
        """Return chunks without content:
        https://learn.microsoft.com/en-us/azure/ai-foundry/openai/concepts/content-streaming
        """
        yield self.event(envelope | {"id": "", "model": "", "choices": [], "prompt_filter_results": []})
        yield self.event(
            envelope
            | {"choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {}, "delta": None}]}
        )


@rule(GROQ)
def groq_takes_no_log_probabilities(body: Body) -> str | None:
    given = [name for name in ("logprobs", "logit_bias", "top_logprobs") if body.get(name) is not None]
    return f"property '{given[0]}' is unsupported" if given else None


@rule(GROQ)
def groq_takes_no_names_of_speakers(body: Body) -> str | None:
    return (
        "property 'name' is unsupported" if any("name" in message for message in body["messages"]) else None
    )


@rule(GROQ)
def groq_gives_one_choice(body: Body) -> str | None:
    return None if body.get("n", 1) in {1, None} else "'n' must be 1"


@rule(GROQ_STRUCTURED)
def groq_enforces_no_schema_in_a_stream_or_with_tools(body: Body) -> str | None:
    if (body.get("response_format") or {}).get("type") != "json_schema":
        return None
    wrong = body.get("stream") or body.get("tools")
    return "response_format json_schema does not support streaming or tool use" if wrong else None


@rule(GROQ_STRUCTURED)
def groq_enforces_schemas_of_known_form(body: Body) -> str | None:
    output = body.get("response_format") or {}
    if output.get("type") != "json_schema":
        return None
    named = output["json_schema"]
    reason = refuse_at_the_top(named.get("schema"), "anyOf", "oneOf", "allOf")
    return reason or (refuse_unstrict(named["schema"]) if named.get("strict") else None)


class GroqDialect(ChatDialect):
    name = "groq"
    path = "/openai/v1/chat/completions"
    rules = (
        fields(
            GROQ_CREATE,
            set(KNOWN)
            - {
                "metadata",
                "store",
                "verbosity",
                "prompt_cache_key",
                "modalities",
                "audio",
                "prediction",
                "web_search_options",
            }
            | {
                "reasoning_format",
                "include_reasoning",
                "disable_tool_validation",
                "search_settings",
                "compound_custom",
                "documents",
                "citation_options",
            },
            "property '{}' is unsupported",
        ),
        groq_takes_no_log_probabilities,
        groq_takes_no_names_of_speakers,
        groq_gives_one_choice,
        groq_enforces_no_schema_in_a_stream_or_with_tools,
        groq_enforces_schemas_of_known_form,
        tools_are_functions_by_object_schema,
        choices_need_tools,
        each_call_is_answered,
        options_of_streams_need_a_stream,
    )

    def takes(self, path: str) -> bool:
        return path in {self.path, "/v1/chat/completions"}

    def envelope(self, body: Body, kind: str) -> Any:
        return super().envelope(body, kind) | {"x_groq": {"id": f"req_{self.number()}"}}


@rule(MISTRAL_VALIDATOR)
def mistral_calls_have_short_identifiers(body: Body) -> str | None:
    named = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    named += [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    wrong = first(refuse_name(one, "[a-zA-Z0-9]{9}") for one in named)
    return f"Tool call id must be a-z, A-Z, 0-9, with a length of 9: {wrong}" if wrong else None


@rule(MISTRAL_VALIDATOR)
def mistral_roles_come_in_order(body: Body) -> str | None:
    allowed = {
        None: {"system", "user"},
        "system": {"system", "user", "assistant"},
        "user": {"user", "assistant", "system"},
        "assistant": {"user", "assistant", "tool"},
        "tool": {"assistant", "tool"},
    }
    before: str | None = None
    for message in body["messages"]:
        if message["role"] not in allowed[before]:
            return f"Unexpected role '{message['role']}' after role '{before}'"
        before = message["role"]
    return None if before in {"user", "tool"} else f"Expected last role User or Tool but got {before}"


@rule(MISTRAL_VALIDATOR)
def mistral_assistants_say_or_call(body: Body) -> str | None:
    for message in body["messages"]:
        if message["role"] == "assistant" and not (message.get("content") or message.get("tool_calls")):
            return "Assistant message must have either content or tool_calls, but not none."
    return None


@rule(MISTRAL)
def mistral_choices_are_named(body: Body) -> str | None:
    choice = body.get("tool_choice")
    known = choice is None or isinstance(choice, dict) or choice in {"auto", "none", "any", "required"}
    return None if known else f"Input should be 'auto', 'none', 'any' or 'required': {choice}"


@rule(MISTRAL)
def mistral_tools_are_functions(body: Body) -> str | None:
    functions = [tool["function"] for tool in body.get("tools") or ()]
    return first(refuse_name(one["name"], NAME) or refuse_at_the_top(one["parameters"]) for one in functions)


class MistralDialect(ChatDialect):
    """La Plateforme: extra fields are forbidden, call IDs have nine letters, thoughts are parts of the content."""

    name = "mistral"
    rules = (
        fields(
            MISTRAL,
            MISTRAL_FIELDS,
            "Extra inputs are not permitted: {}",
        ),
        mistral_calls_have_short_identifiers,
        mistral_roles_come_in_order,
        mistral_assistants_say_or_call,
        mistral_choices_are_named,
        mistral_tools_are_functions,
    )

    def error(self, status: int, message: str, code: str | None = None) -> Any:
        return {
            "object": "error",
            "message": {"detail": message},
            "type": "invalid_request_error",
            "code": code,
        }

    def call_id(self) -> str:
        return f"{self.number():09d}"

    def answer(self, body: Body, reply: Reply) -> Any:
        answer = super().answer(body, reply)
        message = answer["choices"][0]["message"]
        del message["refusal"]
        message["content"] = message["content"] or ""
        return answer
