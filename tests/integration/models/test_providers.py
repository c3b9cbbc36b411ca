"""CO-2: every provider is reachable through the model port, and its refusals have names."""

from dataclasses import replace

import pytest

from orchestrator.adapters.models.chat import LibraryChat
from orchestrator.adapters.models.providers import PROVIDERS, Endpoint
from orchestrator.errors import ModelFailed, ModelNotAllowed, ModelRejected, ModelUnavailable, ModelUnknown
from orchestrator.models.config import ModelChoice, ModelConfig
from orchestrator.models.engineer import PromptEngineer
from orchestrator.models.retries import RetryPolicy
from parley.testing.scripted_model import Script, ScriptedModel
from tests.integration.models.bench import PROMPTS, SCHEMA, SEARCH, calling, quiet_board, thinking, wording

MODELS = {
    "anthropic": "claude-next",
    "google": "gemini-2.5-flash",
    "mistral": "mistral-small-latest",
    "groq": "llama-3.3-70b-versatile",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "openrouter": "openai/gpt-4o",
    "deepseek": "deepseek-chat",
}
CONFIG = ModelConfig(default=ModelChoice("m"), retries=RetryPolicy(attempts=1))


@pytest.mark.parametrize("provider", sorted(PROVIDERS.keys() - {"openrouter", "deepseek"}))
async def test_a_provider_is_asked_and_its_refusal_has_a_name(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without the provider's paths answers 404 or 400, like a wrong URL."""
    monkeypatch.setenv("OPENAI_API_VERSION", "2025-04-01-preview")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key-1")
    config = replace(CONFIG, default=ModelChoice(MODELS.get(provider, "gpt-4o")))
    with ScriptedModel(Script()) as model:
        base = model.base_url.removesuffix("/v1") if provider not in {"ollama", "vllm"} else model.base_url
        # Bedrock sends bearer tokens over https only.
        key = "" if provider == "bedrock" else "key-1"
        chat = LibraryChat(Endpoint(provider=provider, base_url=base, api_key=key))
        engineer = PromptEngineer({"default": chat}, PROMPTS, config, quiet_board())
        for ask in (
            lambda: engineer.structured("nlu_think", thinking(), SCHEMA, calling()),
            lambda: engineer.text("res_naturalize", wording(), calling()),
            lambda: engineer.tools(
                "res_naturalize", wording(), (SEARCH,), calling(), tool_choice="flight_search"
            ),
        ):
            with pytest.raises(ModelUnavailable) as caught:
                await ask()
            assert isinstance(caught.value, ModelUnknown | ModelRejected | ModelFailed | ModelNotAllowed) or (
                caught.value.code == "model_circuit_open"
            )
            assert "key-1" not in str(caught.value)
        await chat.aclose()

    assert caught.value.said is not None
    assert caught.value.said.status in {400, 404, 405}
