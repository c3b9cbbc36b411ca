"""A process's model endpoints and circuit breakers, and the Prompt Engineers that share them.

Domain configurations define how models are used, and the environment defines their endpoints. Pydantic AI
is loaded only if an endpoint is configured, because its import takes two seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.models.providers import PROVIDERS, Endpoint, split_model
from orchestrator.domain.configuration import DomainConfig
from orchestrator.errors import ConfigurationError, ModelUnavailable
from orchestrator.memory.hashing_embedder import FallbackEmbedder, HashingEmbedder
from orchestrator.models.breaker import BreakerBoard, BreakerPolicy
from orchestrator.models.calling import Pacing
from orchestrator.models.config import (
    DEFAULT_PROVIDER,
    ModelChoice,
    ModelConfig,
    read_model_config,
)
from orchestrator.models.engineer import PromptEngineer
from orchestrator.models.signals import circuit_signal
from orchestrator.models.templates import load_prompts
from orchestrator.ports.language_model import CallMetadata, ChatMessage, ChatRequest, ChatRole
from orchestrator.ports.memory.documents import Embedder
from orchestrator.ports.spending import SpendingStore
from orchestrator.settings import OPENAI_URL, Settings
from orchestrator.settings.fields import ModelEndpoint
from orchestrator.telemetry import RecordSignal, drop_signal, get_logger
from orchestrator.types import SessionId, TurnId

if TYPE_CHECKING:
    from orchestrator.adapters.models.chat import LibraryChat

WARM_UP = "warm_up"
"""Prompt name of the request that makes a server load a model."""
WARM_UP_S = 600.0
_log = get_logger(__name__)


def read_endpoints(settings: Settings) -> dict[str, Endpoint]:
    """Return the endpoints configured in the environment, by name.

    OPENAI_BASE_URL or OPENAI_API_KEY defines `default`. A provider in PARLEY_MODEL defines an endpoint with
    the provider's name. PARLEY_MODEL_ENDPOINTS defines further endpoints.
    """
    endpoints = {name: _read_endpoint(endpoint) for name, endpoint in settings.model_endpoints.items()}
    url, key = settings.openai_base_url, settings.openai_api_key
    if url or key:
        secret = key.get_secret_value() if key else ""
        official = (url or OPENAI_URL).rstrip("/") == OPENAI_URL
        endpoints[DEFAULT_PROVIDER] = (
            Endpoint(provider="openai", api_key=secret)
            if official
            else Endpoint(base_url=url or "", api_key=secret)
        )
    named, _ = split_model(settings.model, endpoints)
    if named is not None and named not in endpoints:
        secret = key.get_secret_value() if key and named.startswith("openai") else ""
        endpoints[named] = Endpoint(provider=named, api_key=secret)
    return endpoints


def _read_endpoint(endpoint: ModelEndpoint) -> Endpoint:
    key = endpoint.api_key.get_secret_value() if endpoint.api_key else ""
    given: dict[str, Any] = endpoint.model_dump()
    given.update(base_url=endpoint.base_url or "", api_key=key)
    return Endpoint(**given)


class ModelPool:
    """A factory of `PromptEngineer` objects, bound to the event loop that first uses one of them."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        *,
        model: str,
        fallback: str | None = None,
        breaker: BreakerPolicy | None = None,
        spending: SpendingStore | None = None,
        record: RecordSignal = drop_signal,
        pacing: Pacing | None = None,
        keep_prompts: bool = False,
    ) -> None:
        """Create a pool without opening connections.

        Args:
            endpoints: endpoints by name.
            model: the model for domains that don't configure a model.
            fallback: the fallback model for domains that don't configure a fallback model.
            breaker: circuit-breaker policy. Default: the policy's default values.
            spending: counters shared with other processes. Default: counters in this process.
            record: receives a signal for every model call and every circuit-breaker state change.
            pacing: clock and random numbers.
            keep_prompts: True to include prompts and answers in signals.
        """
        self._endpoints = dict(endpoints)
        self._model = self._resolve(ModelChoice(model))
        self._fallback = self._resolve(ModelChoice(fallback)) if fallback else None
        self._spending = spending
        self._record = record
        self._pacing = pacing or Pacing()
        self._keep_prompts = keep_prompts
        self._board = BreakerBoard(
            breaker or BreakerPolicy(), self._pacing.clock, lambda view: record(circuit_signal(view))
        )
        self._clients: dict[str, LibraryChat] = {}
        self._engineers: list[tuple[tuple[ModelConfig, Mapping[str, str]], PromptEngineer]] = []

    @property
    def configured(self) -> bool:
        return bool(self._endpoints)

    def engineer(self, config: DomainConfig) -> PromptEngineer | None:
        """Return the domain's Prompt Engineer, or None if no model is available.

        Domains with equal configurations share one Prompt Engineer.

        Raises:
            ConfigurationError: a prompt is invalid.
        """
        wanted = read_model_config(config, self._model, self._fallback, self._resolve)
        if not self._can_serve(wanted):
            return None
        asked = (wanted, config.prompts)
        known = next((engineer for asked_so, engineer in self._engineers if asked_so == asked), None)
        if known is not None:
            return known
        engineer = PromptEngineer(
            self._clients,
            load_prompts(config.prompts),
            wanted,
            self._board,
            spending=self._spending,
            record=self._record,
            pacing=self._pacing,
            keep_prompts=self._keep_prompts,
        )
        self._engineers.append((asked, engineer))
        return engineer

    async def aclose(self) -> None:
        clients = list(self._clients.values())
        self._clients.clear()
        self._engineers.clear()
        await asyncio.gather(*(client.aclose() for client in clients))

    def _resolve(self, choice: ModelChoice) -> ModelChoice:
        """Return the choice with a `provider:name` split into an endpoint and a model."""
        if choice.provider != DEFAULT_PROVIDER:
            return choice
        provider, name = split_model(choice.model, self._endpoints)
        return choice if provider is None else ModelChoice(name, provider)

    def _can_serve(self, wanted: ModelConfig) -> bool:
        """Open a configuration's endpoints. Return True if at least one is open."""
        providers = sorted({choice.provider for choice in wanted.every_choice})
        missing = [name for name in providers if not self._open(name)]
        if missing and self._clients:
            _log.warning("Some models have no endpoint and are not used.", providers=missing)
        return len(missing) < len(providers)

    def _open(self, name: str) -> bool:
        """Open the endpoint `name`, or the provider with that name if no such endpoint is configured.

        Return whether the endpoint is open.
        """
        if name in self._clients:
            return True
        endpoint = self._endpoints.get(name) or (Endpoint(provider=name) if name in PROVIDERS else None)
        if endpoint is None:
            return False
        # Importing Pydantic AI is slow.
        from orchestrator.adapters.models.chat import LibraryChat  # noqa: PLC0415

        try:
            self._clients[name] = LibraryChat(endpoint)
        except ConfigurationError as error:
            _log.warning("A model provider can't be used.", provider=name, error=error)
            return False
        return True

    async def warm_up(self) -> None:
        """Wait until local servers have loaded their models, so that users don't have to wait.

        Each server gets a one-word request with a long timeout, because some servers stop loading a model
        when a request times out.
        """
        choices = {choice for asked, _ in self._engineers for choice in asked[0].every_choice}
        local = [choice for choice in choices if self._loads(choice)]
        await asyncio.gather(*(self._warm(self._clients[choice.provider], choice.model) for choice in local))

    def _loads(self, choice: ModelChoice) -> bool:
        endpoint = self._endpoints.get(choice.provider)
        return endpoint is not None and endpoint.loads_models and choice.provider in self._clients

    async def _warm(self, client: LibraryChat, model: str) -> None:
        began = self._pacing.clock()
        try:
            await client.complete(
                ChatRequest(
                    model=model,
                    messages=(ChatMessage(ChatRole.USER, "Hello"),),
                    metadata=CallMetadata(WARM_UP, "1", SessionId(WARM_UP), TurnId(WARM_UP)),
                    max_tokens=1,
                    timeout_s=WARM_UP_S,
                )
            )
        except ModelUnavailable as error:
            outcome = error.code
        else:
            outcome = "answered"
        took_s = round(self._pacing.clock() - began, 1)
        _log.info(
            "A model was warmed up.", endpoint=client.endpoint, model=model, outcome=outcome, took_s=took_s
        )


def open_embedder(settings: Settings, closing: AsyncExitStack) -> Embedder:
    """Return the configured embedder with a local fallback, or the local embedder if none is configured.

    `closing` closes the embedder's connections.
    """
    endpoint = read_endpoints(settings).get(DEFAULT_PROVIDER) if settings.embedding_model else None
    if endpoint is None:
        return HashingEmbedder()
    from orchestrator.adapters.models.embeddings import OpenAIEmbedder  # noqa: PLC0415 - slow to import

    wanted = OpenAIEmbedder(endpoint, settings.embedding_model)
    closing.push_async_callback(wanted.aclose)
    return FallbackEmbedder(wanted, HashingEmbedder())
