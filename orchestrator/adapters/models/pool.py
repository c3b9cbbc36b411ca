"""The models of one process: its endpoints, one board of breakers, and one Prompt Engineer per configuration.

What a domain asks of models is in its configuration, where they are in the environment's. The client
library is loaded when there is an endpoint, not before: it costs every process half a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from orchestrator.domain.configuration import DomainConfig
from orchestrator.memory.hashing_embedder import FallbackEmbedder, HashingEmbedder
from orchestrator.models.breaker import BreakerBoard, BreakerPolicy, CircuitView
from orchestrator.models.calling import Pacing
from orchestrator.models.config import (
    DEFAULT_PROVIDER,
    ModelChoice,
    ModelConfig,
    read_model_config,
    read_voters,
)
from orchestrator.models.engineer import PromptEngineer
from orchestrator.models.signals import circuit_signal
from orchestrator.models.templates import load_prompts
from orchestrator.ports.memory.documents import Embedder
from orchestrator.ports.spending import SpendingStore
from orchestrator.settings import OPENAI_URL, Settings
from orchestrator.settings.fields import ModelEndpoint
from orchestrator.telemetry import RecordSignal, drop_signal, get_logger

if TYPE_CHECKING:
    from orchestrator.adapters.openai import Endpoint, OpenAIChat

_log = get_logger(__name__)


def read_endpoints(settings: Settings) -> dict[str, Endpoint]:
    """The endpoints that the environment configures, by provider name; empty for System 1 alone.

    An address without a key is one, and so is a key without an address.
    """
    configured = dict(settings.model_endpoints)
    if settings.openai_base_url or settings.openai_api_key:
        configured[DEFAULT_PROVIDER] = _first_endpoint(settings)
    return {name: _open_endpoint(endpoint) for name, endpoint in configured.items()}


def _first_endpoint(settings: Settings) -> ModelEndpoint:
    url, key = settings.openai_base_url or OPENAI_URL, settings.openai_api_key
    if url.rstrip("/") != OPENAI_URL:
        return ModelEndpoint(base_url=url, api_key=key)
    # OpenAI itself accepts metadata only with requests that it stores, and has renamed the limit.
    return ModelEndpoint(
        base_url=url,
        api_key=key,
        token_limit_field="max_completion_tokens",  # noqa: S106
        extra_body={"store": True},
    )


def _open_endpoint(endpoint: ModelEndpoint) -> Endpoint:
    from orchestrator.adapters.openai import Endpoint  # noqa: PLC0415 - see above

    return Endpoint(
        base_url=endpoint.base_url,
        api_key=endpoint.api_key.get_secret_value() if endpoint.api_key else "",
        token_limit_field=endpoint.token_limit_field,
        extra_body=endpoint.extra_body,
    )


class ModelPool:
    """Gives out Prompt Engineers. They belong to the event loop on which they are first used."""

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
        """Make one; nothing is connected yet.

        Args:
            endpoints: by provider name.
            model: where a domain names none.
            fallback: likewise.
            breaker: when a model is left alone, and for how long.
            spending: counters shared with other processes; None counts in this one.
            record: receives a signal for every call and every change of a breaker.
            pacing: time and chance.
            keep_prompts: signals of calls carry what was asked and answered.
        """
        self._endpoints = dict(endpoints)
        self._model = ModelChoice(model)
        self._fallback = ModelChoice(fallback) if fallback else None
        self._spending = spending
        self._record = record
        self._pacing = pacing or Pacing()
        self._keep_prompts = keep_prompts
        self._board = BreakerBoard(
            breaker or BreakerPolicy(), self._pacing.clock, lambda view: record(circuit_signal(view))
        )
        self._clients: dict[str, OpenAIChat] = {}
        self._engineers: list[tuple[tuple[ModelConfig, Mapping[str, str]], PromptEngineer]] = []

    @property
    def configured(self) -> bool:
        """True when there is any endpoint."""
        return bool(self._endpoints)

    @property
    def circuits(self) -> tuple[CircuitView, ...]:
        """The breakers' states in this process."""
        return self._board.views()

    def engineer(self, config: DomainConfig) -> PromptEngineer | None:
        """The engineer for a domain, shared by all whose models and prompts are alike; None without a model.

        Raises:
            ConfigurationError: a prompt is broken.
        """
        if not self._endpoints:
            return None
        wanted = read_model_config(config, self._model, self._fallback)
        if not self._can_serve(wanted, read_voters(config)):
            return None
        asked = (wanted, config.prompts)
        known = next((engineer for asked_so, engineer in self._engineers if asked_so == asked), None)
        if known is not None:
            return known
        engineer = PromptEngineer(
            self._open_clients(),
            load_prompts(config.prompts),
            wanted,
            spending=self._spending,
            record=self._record,
            pacing=self._pacing,
            board=self._board,
            keep_prompts=self._keep_prompts,
        )
        self._engineers.append((asked, engineer))
        return engineer

    async def aclose(self) -> None:
        """Close all connections."""
        clients, self._clients = list(self._clients.values()), {}
        self._engineers.clear()
        await asyncio.gather(*(client.aclose() for client in clients))

    def _can_serve(self, wanted: ModelConfig, voters: tuple[ModelChoice, ...]) -> bool:
        choices = {*wanted.choices(None), *wanted.per_prompt.values(), *voters}
        missing = sorted({choice.provider for choice in choices} - self._endpoints.keys())
        if missing:
            _log.warning("Some models have no endpoint and are not asked.", providers=missing)
        return any(choice.provider in self._endpoints for choice in choices)

    def _open_clients(self) -> dict[str, OpenAIChat]:
        from orchestrator.adapters.openai import OpenAIChat  # noqa: PLC0415 - see above

        if not self._clients:
            self._clients = {name: OpenAIChat(endpoint) for name, endpoint in self._endpoints.items()}
        return self._clients


def open_embedder(settings: Settings, closing: AsyncExitStack) -> Embedder:
    """The embedder that the environment asks for; what it opens is closed with `closing`."""
    endpoint = read_endpoints(settings).get(DEFAULT_PROVIDER) if settings.embedding_model else None
    if endpoint is None:
        return HashingEmbedder()
    from orchestrator.adapters.openai.embeddings import OpenAIEmbedder  # noqa: PLC0415 - slow to import

    wanted = OpenAIEmbedder(endpoint, settings.embedding_model)
    closing.push_async_callback(wanted.aclose)
    return FallbackEmbedder(wanted, HashingEmbedder())
