"""CO-2: costs of calls without configured prices."""

from orchestrator.adapters.models.prices import list_price
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.ports.language_model import Usage
from tests.cases import for_each

MILLION = Usage(1_000_000, 1_000_000)
LOCAL = "http://127.0.0.1:8000/v1"


def price(provider: str, model: str, usage: Usage = MILLION, url: str = LOCAL) -> float:
    return list_price(Endpoint(provider=provider), url, model, usage)


@for_each(
    ("provider", "model"),
    [
        ("openai", "gpt-4o-mini"),
        ("openai-chat", "gpt-4o-mini"),
        ("openai-responses", "gpt-5-mini"),
        ("azure", "gpt-4o-mini"),
        ("azure-responses", "gpt-5-mini"),
        ("anthropic", "claude-sonnet-4-5"),
        ("google", "gemini-2.5-flash"),
        ("mistral", "mistral-small-latest"),
        ("groq", "llama-3.3-70b-versatile"),
        ("bedrock", "anthropic.claude-3-5-sonnet-20241022-v2:0"),
        ("openrouter", "openai/gpt-4o-mini"),
        ("deepseek", "deepseek-chat"),
    ],
)
def test_a_provider_s_models_have_their_published_price(provider: str, model: str) -> None:
    assert price(provider, model) > 0


def test_cached_tokens_cost_less() -> None:
    cached = Usage(1_000_000, 0, cached_tokens=900_000)

    assert 0 < price("openai", "gpt-4o-mini", cached) < price("openai", "gpt-4o-mini", Usage(1_000_000, 0))
    assert price("openai", "gpt-4o-mini", Usage(10, 0, cached_tokens=11)) > 0, (
        "counts that contradict each other"
    )


def test_a_compatible_endpoint_is_known_by_its_url_alone() -> None:
    """A local model may have the name of a provider's model."""
    assert price("compatible", "gpt-4o-mini") == 0
    assert price("llama.cpp", "gpt-4o-mini") == 0
    assert price("ollama", "gpt-oss:20b") == 0
    assert price("compatible", "gpt-4o-mini", url="https://api.openai.com/v1") > 0
    assert price("openai", "a-model-of-my-own") == 0
