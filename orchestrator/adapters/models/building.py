"""Create Pydantic AI's clients and models for model endpoints."""

from inspect import iscoroutinefunction
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from orchestrator.adapters.models.compatible import CompatibleChatModel
from orchestrator.adapters.models.http import open_http_client
from orchestrator.adapters.models.providers import COMPATIBLE, PROVIDERS, Endpoint
from orchestrator.errors import ConfigurationError, Problem
from orchestrator.ports.language_model import EndpointProfile, OutputMode, RequestField
from orchestrator.settings import OPENAI_URL

NO_KEY = "none"
"""Placeholder key for local endpoints, because the client always sends a key."""
_RESPONSES = frozenset({"openai", "openai-responses", "azure-responses"})
_OWN_CLIENTS = frozenset(name for name, provider in PROVIDERS.items() if provider.package)


def open_provider(endpoint: Endpoint) -> Provider[Any]:
    """Open an endpoint's client.

    Raises:
        ConfigurationError: the key, the URL, or the provider's client package is missing.
    """
    name = endpoint.provider
    try:
        return _open_provider(endpoint, name)
    except ImportError:
        problem = f"needs the {name} client; install it with `pip install 'parley-runtime[{name}]'`"
    except UserError as error:
        problem = f"cannot be used: {error.message}"
    raise ConfigurationError([Problem(f"model provider {name}", problem)])


def _open_provider(endpoint: Endpoint, name: str) -> Provider[Any]:
    if name in _OWN_CLIENTS:
        given = {"base_url": endpoint.base_url, "api_key": endpoint.api_key}
        return infer_provider_class(name)(**{key: value for key, value in given.items() if value})
    client = open_http_client(connect_s=endpoint.connect_s, connections=endpoint.connections)
    if endpoint.is_compatible:
        return OpenAICompatibleProvider(
            COMPATIBLE, base_url=endpoint.url, api_key=endpoint.api_key or NO_KEY, http_client=client
        )
    if name.startswith("openai"):
        return OpenAIProvider(
            base_url=endpoint.base_url or OPENAI_URL, api_key=endpoint.api_key or None, http_client=client
        )
    url = endpoint.base_url or PROVIDERS[name].base_url
    where = {"azure_endpoint" if name.startswith("azure") else "base_url": url, "api_key": endpoint.api_key}
    given: dict[str, Any] = {key: value for key, value in where.items() if value}
    return infer_provider_class(name)(**given | {"http_client": client})


def build_model(
    endpoint: Endpoint, provider: Provider[Any], name: str, profile: EndpointProfile
) -> Model[Any]:
    """Create a Pydantic AI model without opening a connection. `profile`: the features that the endpoint accepts."""
    kind = endpoint.provider
    if kind in _OWN_CLIENTS:
        return infer_model(f"{kind}:{name}", lambda _kind: provider)
    if kind in _RESPONSES or endpoint.responses:
        return OpenAIResponsesModel(name, provider=provider)
    if kind == "openrouter":
        return infer_model(f"{kind}:{name}", lambda _kind: provider)
    model = CompatibleChatModel(name, provider=provider)
    known = model.profile
    completion_tokens = known.get("openai_chat_supports_max_completion_tokens", True)
    if isinstance(provider, OpenAICompatibleProvider):
        completion_tokens = False
    ours = OpenAIModelProfile(
        openai_chat_supports_max_completion_tokens=completion_tokens is not profile.renamed_token_limit,
        supports_json_object_output=profile.output is not OutputMode.PROMPTED,
    )
    if not isinstance(provider, OpenAIProvider):
        # Send schemas unchanged: Pydantic AI's transformers drop limits that local servers' grammars enforce.
        ours |= OpenAIModelProfile(
            json_schema_transformer=None, openai_chat_supports_multiple_system_messages=False
        )
    model = CompatibleChatModel(name, provider=provider, profile=ours)
    model.tells_stream_usage = profile.takes(RequestField.STREAM_USAGE)
    return model


def is_openai_client(model: Model[Any]) -> bool:
    """Return whether a model uses the `openai` client and accepts its settings."""
    return isinstance(model, OpenAIChatModel | OpenAIResponsesModel)


async def close_provider(provider: Provider[Any]) -> None:
    async with provider:
        pass  # On exit, Pydantic AI closes clients that it has opened.
    close = getattr(provider.client, "close", None)
    if close is not None and iscoroutinefunction(close):
        await close()
