import asyncio
from collections.abc import Sequence
from math import sqrt

from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel

from orchestrator.adapters.models.building import close_provider, open_provider
from orchestrator.adapters.models.failures import translate
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.errors import ModelFailed
from orchestrator.ports.memory.documents import Embedded

WITHIN_S = 20.0
MOST_DIMENSIONS = 16_000
"""Maximum number of vector dimensions in pgvector."""


class OpenAIEmbedder:
    """An `Embedder` that uses an endpoint, bound to the event loop that first uses it."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._provider = open_provider(endpoint)
        self._model = OpenAIEmbeddingModel(model, provider=self._provider)
        self.space = f"model-{model}"

    async def embed(self, texts: Sequence[str]) -> Embedded:
        shown = self._provider.base_url
        try:
            async with asyncio.timeout(WITHIN_S):
                found = await self._model.embed(list(texts), input_type="document")
            vectors = tuple(_normal([float(value) for value in vector]) for vector in found.embeddings)
        except Exception as error:  # Any Pydantic AI error means that there are no vectors.
            raise translate(error, shown, WITHIN_S) from error
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
            raise ModelFailed(f"{shown} returned {len(vectors)} vectors for {len(texts)} texts.")
        return Embedded(self.space, vectors)

    async def aclose(self) -> None:
        await close_provider(self._provider)


def _normal(vector: list[float]) -> tuple[float, ...]:
    """Return the vector scaled to length 1. Raises ValueError for too many dimensions or an unusable length."""
    length = sqrt(sum(value * value for value in vector))
    if not 0 < length < float("inf") or len(vector) > MOST_DIMENSIONS:
        raise ValueError(f"a vector of {len(vector)} numbers and length {length:g}")
    return tuple(value / length for value in vector)
