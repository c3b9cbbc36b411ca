"""Embeds by an endpoint as long as it serves, and without a model while it does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from orchestrator.errors import ModelNotAllowed, ModelUnavailable
from orchestrator.ports.documents import Embedded, Embedder
from orchestrator.telemetry import get_logger

COOLING_S = 60.0
REFUSED_S = 3600.0
"""An endpoint that says no (no such route, no such model) is asked again after this time."""

_log = get_logger(__name__)


class StandingIn:
    """Implements `ports.documents.Embedder`; documents embedded meanwhile are embedded anew later.

    Args:
        clock: monotonic seconds.
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
        """See `Embedder`."""
        return self._chosen().space

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See `Embedder`; it never fails as long as the second one does not."""
        if self._chosen() is self._wanted:
            try:
                return await self._wanted.embed(texts)
            except ModelUnavailable as error:
                refused = isinstance(error, ModelNotAllowed)
                self._away_until = self._clock() + (REFUSED_S if refused else COOLING_S)
                _log.warning("Embeddings are made without a model for a while.", why=str(error))
        return await self._instead.embed(texts)

    def _chosen(self) -> Embedder:
        return self._wanted if self._clock() >= self._away_until else self._instead
