"""Answers of the scripted model and strict providers are valid for the providers' own clients."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from parley.testing.scripted_model import Answer, Request, ToolUse
from parley.testing.scripted_model.wire import chunks, completion
from tests.cases import for_each
from tests.providers.broken import GOOD
from tests.providers.dialect import Reply
from tests.providers.dialects import DIALECTS

ASKED = Request(
    "/v1/chat/completions", {"model": "m", "messages": [], "stream_options": {"include_usage": True}}, {}
)
SAID = (
    Answer(text="Hello there"),
    Answer(text="cut", finish_reason="length"),
    ToolUse(calls=(("look", {"day": "x"}),)),
)
TYPES = {
    "openai-chat": ("openai.types.chat", "ChatCompletion"),
    "openai-chat-thinking": ("openai.types.chat", "ChatCompletion"),
    "azure": ("openai.types.chat", "ChatCompletion"),
    "groq": ("openai.types.chat", "ChatCompletion"),
    "mistral": ("mistralai.client.models", "ChatCompletionResponse"),
    "openai-responses": ("openai.types.responses", "Response"),
    "anthropic": ("anthropic.types", "Message"),
    "gemini": ("google.genai.types", "GenerateContentResponse"),
}
"""Client modules by name: imports take seconds, and every test process collects this module."""
REPLIES = (Reply("Hello there"), Reply(calls=(("look", {"day": "x"}),)))


def type_named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


@pytest.mark.parametrize("said", SAID)
def test_the_scripted_model_speaks_the_clients_types(said: Answer | ToolUse) -> None:
    """Model protocol."""
    chunk_type = type_named("openai.types.chat", "ChatCompletionChunk")
    whole = type_named(*TYPES["openai-chat"]).model_validate(completion(ASKED, said), strict=True)
    pieces = [chunk_type.model_validate(one, strict=True) for one in chunks(ASKED, said)]

    assert whole.usage is not None
    assert pieces[-1].usage is not None
    assert whole.choices[0].finish_reason in {one.choices[0].finish_reason for one in pieces if one.choices}


@for_each("name", DIALECTS)
@for_each("reply", REPLIES)
def test_a_strict_provider_speaks_its_clients_types(name: str, reply: Reply) -> None:
    """CO-2."""
    read = type_named(*TYPES[name]).model_validate(DIALECTS[name]().answer(GOOD[name], reply))
    told = read.model_dump_json()
    assert ("look" if reply.calls else "Hello there") in told
