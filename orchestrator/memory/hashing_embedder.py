"""Embeddings without a model, also used as a fallback: words and character n-grams, hashed to vector positions.

A text has the same vector in all processes. Vectors represent spelling and shared words, not meaning.
scikit-learn's hashing would save six lines, but would cost each worker 100 MB and seconds at first use.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import sqrt
from zlib import crc32

from orchestrator.errors import ModelNotAllowed, ModelUnavailable
from orchestrator.memory.tokenizer import find_terms
from orchestrator.ports.memory.documents import Embedded, Embedder
from orchestrator.telemetry import get_logger

DIMENSIONS = 384
GRAM = 4
PAIR_WEIGHT = 0.5
GRAM_WEIGHT = 0.6
"""Total weight of a word's n-grams, relative to the weight of the whole word."""


class HashingEmbedder:
    """An `Embedder` that doesn't need a model and never fails."""

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self._dimensions = dimensions
        self.space = f"hashed-{dimensions}-1"

    async def embed(self, texts: Sequence[str]) -> Embedded:
        return Embedded(self.space, tuple(self.vector(text) for text in texts))

    def vector(self, text: str) -> tuple[float, ...]:
        """Return a text's vector, normalized to length 1.

        A text without words is mapped to the first axis, because a zero vector has no direction.
        """
        places = [0.0] * self._dimensions
        counts: dict[str, float] = {}
        for feature, weight in _features(find_terms(text)):
            counts[feature] = counts.get(feature, 0.0) + weight
        for feature, weight in counts.items():
            number = crc32(feature.encode())
            sign = 1.0 if number & 1 else -1.0
            places[(number >> 1) % self._dimensions] += sign * sqrt(weight)
        length = sqrt(sum(value * value for value in places))
        if not length:
            places[0] = length = 1.0
        return tuple(value / length for value in places)


def _features(terms: Sequence[str]) -> Iterator[tuple[str, float]]:
    for term in terms:
        yield f"w {term}", 1.0
        padded = f"^{term}$"
        grams = [padded[start : start + GRAM] for start in range(max(1, len(padded) - GRAM + 1))]
        for gram in grams:
            yield f"g {gram}", (GRAM_WEIGHT / len(grams)) ** 2
    for left, right in pairwise(terms):
        yield f"p {left} {right}", PAIR_WEIGHT**2


COOLING_S = 60.0
REFUSED_S = 3600.0
"""Delay, in seconds, before retrying an endpoint that rejected a request, for example because of an unknown model."""

_log = get_logger(__name__)


class FallbackEmbedder:
    """An `Embedder` that uses `instead` while `wanted` is unavailable.

    A maintenance flow later re-embeds the documents that `instead` embedded. `clock`: returns
    monotonic seconds.
    """

    def __init__(
        self, wanted: Embedder, instead: Embedder, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wanted = wanted
        self._instead = instead
        self._clock = clock
        self._away_until = 0.0

    @property
    def space(self) -> str:
        return self._chosen().space

    async def embed(self, texts: Sequence[str]) -> Embedded:
        if self._chosen() is self._wanted:
            try:
                return await self._wanted.embed(texts)
            except ModelUnavailable as error:
                refused = isinstance(error, ModelNotAllowed)
                self._away_until = self._clock() + (REFUSED_S if refused else COOLING_S)
                _log.warning("Embeddings temporarily use the fallback.", why=str(error))
        return await self._instead.embed(texts)

    def _chosen(self) -> Embedder:
        return self._wanted if self._clock() >= self._away_until else self._instead
