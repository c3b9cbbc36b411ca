"""Strict providers: local servers with the published rules of named providers."""

from tests.providers.anthropic import AnthropicDialect
from tests.providers.compatible import AzureDialect, GroqDialect, MistralDialect
from tests.providers.dialect import Dialect
from tests.providers.gemini import GeminiDialect
from tests.providers.openai_chat import ChatDialect, ThinkingChatDialect
from tests.providers.openai_responses import ResponsesDialect

DIALECTS: dict[str, type[Dialect]] = {
    kind.name: kind
    for kind in (
        ChatDialect,
        ThinkingChatDialect,
        ResponsesDialect,
        AzureDialect,
        AnthropicDialect,
        GeminiDialect,
        MistralDialect,
        GroqDialect,
    )
}
