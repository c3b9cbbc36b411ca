"""Which embeddings this process makes: the endpoint's, or those without a model."""

from __future__ import annotations

from contextlib import AsyncExitStack

from orchestrator.adapters.model_pool import read_endpoints
from orchestrator.memory.hashing_embedder import HashedEmbedder, StandingIn
from orchestrator.models import DEFAULT_PROVIDER
from orchestrator.ports.documents import Embedder
from orchestrator.settings import Settings


def open_embedder(settings: Settings, closing: AsyncExitStack) -> Embedder:
    """The embedder that the environment asks for; what it opens is closed with `closing`."""
    endpoint = read_endpoints(settings).get(DEFAULT_PROVIDER) if settings.embedding_model else None
    if endpoint is None:
        return HashedEmbedder()
    from orchestrator.adapters.openai.embeddings import OpenAIEmbedder  # noqa: PLC0415 - slow to import

    wanted = OpenAIEmbedder(endpoint, settings.embedding_model)
    closing.push_async_callback(wanted.aclose)
    return StandingIn(wanted, HashedEmbedder())
