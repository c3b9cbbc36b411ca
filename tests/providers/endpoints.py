"""Configuration of Parley for each strict provider, like for the real provider."""

from __future__ import annotations

from orchestrator.adapters.models.providers import Endpoint

MODELS = {
    "openai-chat": "gpt-4.1",
    "openai-chat-thinking": "gpt-5.6",
    "openai-responses": "gpt-5.6",
    "azure": "gpt-4.1",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-3-pro-preview",
    "mistral": "mistral-large-latest",
    "groq": "openai/gpt-oss-120b",
}
_PROVIDERS = {
    "openai-chat": ("openai-chat", "/v1"),
    "openai-chat-thinking": ("openai-chat", "/v1"),
    "openai-responses": ("openai", "/v1"),
    "azure": ("azure", ""),
    "anthropic": ("anthropic", ""),
    "gemini": ("google", ""),
    "mistral": ("mistral", ""),
    "groq": ("groq", ""),
}


def endpoint_of(dialect: str, url: str) -> Endpoint:
    provider, path = _PROVIDERS[dialect]
    return Endpoint(provider=provider, base_url=f"{url}{path}", api_key="a-key")
