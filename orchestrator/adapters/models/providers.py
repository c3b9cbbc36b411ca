"""Known model providers, and the configuration of model endpoints.

Pydantic AI implements each provider's protocol. Import `orchestrator.adapters.models.chat` only when needed,
because importing Pydantic AI is slow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import environ

from orchestrator.models.config import DEFAULT_PROVIDER
from orchestrator.types import Json

COMPATIBLE = "compatible"
"""Provider name for endpoints with the chat-completions API that are known only by URL."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider, named as in `PARLEY_MODEL=provider:name`.

    Args:
        keys: environment variables for the provider's key or URL. Any of them configures the provider.
        package: module of the provider's client, installed by the extra named after the provider, or empty for the
            `openai` client.
        compatible: True to assume only the features that all compatible endpoints share.
        base_url: the default URL.
    """

    keys: tuple[str, ...]
    package: str = ""
    compatible: bool = False
    base_url: str = ""


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(("OPENAI_API_KEY",)),
    "openai-chat": Provider(("OPENAI_API_KEY",)),
    "openai-responses": Provider(("OPENAI_API_KEY",)),
    "azure": Provider(("AZURE_OPENAI_ENDPOINT",)),
    "azure-responses": Provider(("AZURE_OPENAI_ENDPOINT",)),
    "anthropic": Provider(("ANTHROPIC_API_KEY",), "anthropic"),
    "google": Provider(("GOOGLE_API_KEY", "GEMINI_API_KEY"), "google.genai"),
    "mistral": Provider(("MISTRAL_API_KEY",), "mistralai"),
    "groq": Provider(("GROQ_API_KEY",), "groq"),
    "bedrock": Provider(
        ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_ROLE_ARN"), "boto3"
    ),
    "openrouter": Provider(("OPENROUTER_API_KEY",)),
    "deepseek": Provider(("DEEPSEEK_API_KEY",)),
    "ollama": Provider(("OLLAMA_BASE_URL",), base_url="http://localhost:11434/v1"),
    "vllm": Provider(("VLLM_BASE_URL",), base_url="http://localhost:8000/v1"),
    "llama.cpp": Provider(("LLAMACPP_BASE_URL",), compatible=True, base_url="http://localhost:8080/v1"),
}


def split_model(name: str, endpoints: Mapping[str, "Endpoint"]) -> tuple[str | None, str]:
    """Return the prefix in ``provider:name`` (or None) and the model name. A prefix can also name an endpoint.

    Names of local models can also contain colons (``mistral:7b``). Therefore, if the default endpoint has a
    URL, a prefix counts as a provider only if the provider's key is set.
    """
    prefix, colon, rest = name.partition(":")
    if not colon or not rest:
        return None, name
    if prefix in endpoints:
        return prefix, rest
    provider = PROVIDERS.get(prefix)
    by_url = DEFAULT_PROVIDER in endpoints and endpoints[DEFAULT_PROVIDER].provider == COMPATIBLE
    if provider is None or (by_url and not any(environ.get(key) for key in provider.keys)):
        return None, name
    return prefix, rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model provider's endpoint and its options.

    Args:
        provider: a key of `PROVIDERS`, or `compatible`.
        base_url, api_key: empty to use the provider's environment variables.
        responses: True to call a compatible endpoint through the Responses API.
        metadata: True to send `CallMetadata` to a compatible endpoint, unless the endpoint rejects it.
        store: True if OpenAI or Azure may store requests, which then include `CallMetadata`.
        extra_body: additions to every request of the `openai` client.
        connect_s: maximum time for connecting, in seconds.
        silence_s: maximum wait for the next part of a streamed answer, in seconds.
        connections: maximum number of connections.
    """

    provider: str = COMPATIBLE
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    responses: bool = False
    metadata: bool = True
    store: bool = False
    extra_body: Mapping[str, Json] = field(default_factory=dict[str, Json])
    connect_s: float = 3.0
    silence_s: float = 30.0
    connections: int = 100

    @property
    def is_compatible(self) -> bool:
        """Return whether to assume only the features that all compatible endpoints share."""
        return self.provider == COMPATIBLE or PROVIDERS[self.provider].compatible

    @property
    def url(self) -> str:
        """Return the endpoint's URL, or an empty string for Pydantic AI's default."""
        known = PROVIDERS.get(self.provider)
        if self.base_url or known is None:
            return self.base_url
        named = next(
            (environ[key] for key in known.keys if key.endswith("_BASE_URL") and environ.get(key)), ""
        )
        return named or known.base_url

    @property
    def loads_models(self) -> bool:
        """Return whether the endpoint may be a local server that loads models on first use."""
        return self.is_compatible or self.provider in {"ollama", "vllm"}
