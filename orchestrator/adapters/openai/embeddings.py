"""Embeddings from an OpenAI-compatible endpoint."""

import asyncio
from collections.abc import Sequence
from math import sqrt

import httpx2
import openai

from orchestrator.adapters.openai.chat import Endpoint, open_client
from orchestrator.adapters.openai.wire import translate
from orchestrator.errors import ModelFailed, ModelTimedOut
from orchestrator.ports.memory.documents import Embedded

WITHIN_S = 20.0
RETRIES = 2
MOST_DIMENSIONS = 16_000
"""The most that pgvector can keep."""


class OpenAIEmbedder:
    """Implements `ports.memory.documents.Embedder`. Belongs to the event loop that first uses it; close it."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._model = model
        self._base_url = endpoint.base_url
        self._client = open_client(endpoint, WITHIN_S, retries=RETRIES)
        self.space = f"model-{model}"

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder`."""
        shown = str(httpx2.URL(self._base_url).copy_with(userinfo=b""))
        try:
            async with asyncio.timeout(WITHIN_S):
                answer = await self._client.embeddings.create(
                    model=self._model, input=list(texts), encoding_format="float"
                )
        except openai.OpenAIError as error:
            raise translate(error, shown) from error
        except TimeoutError as error:
            raise ModelTimedOut(f"{shown} embedded nothing within {WITHIN_S:g} s.") from error
        except (httpx2.HTTPError, ValueError) as error:
            raise ModelFailed(f"The model endpoint {shown} broke off: {type(error).__name__}.") from error
        try:
            found = sorted(answer.data, key=lambda one: one.index)
            vectors = tuple(_normal([float(value) for value in one.embedding]) for one in found)
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelFailed(f"{shown} answered in a shape that is not the API's: {error}") from error
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
            raise ModelFailed(f"{shown} gave {len(vectors)} vectors for {len(texts)} texts.")
        return Embedded(self.space, vectors)

    async def aclose(self) -> None:
        await self._client.close()


def _normal(vector: list[float]) -> tuple[float, ...]:
    """Of length 1. Raises ValueError for what is no direction."""
    length = sqrt(sum(value * value for value in vector))
    if not 0 < length < float("inf") or len(vector) > MOST_DIMENSIONS:
        raise ValueError(f"a vector of {len(vector)} numbers and length {length:g}")
    return tuple(value / length for value in vector)
