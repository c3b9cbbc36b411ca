"""Business context: documents are cut and embedded, questions find passages (CO-4).

Puts the store, the embedder and the ranking together; it keeps nothing itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from orchestrator.memory.chunking import cut
from orchestrator.memory.ranking import rank
from orchestrator.memory.terms import find_terms
from orchestrator.ports.documents import (
    LONGEST_QUESTION,
    PASSAGES,
    Chunk,
    Documents,
    Embedder,
    Owned,
    Passage,
)
from orchestrator.types import TenantId

MOST_CHUNKS = 500
"""Of one document; the rest is not looked up."""
EMBEDDED_AT_ONCE = 64


class BusinessContext:
    """Implements `ports.documents.ContextSearch`. `clock`: unix seconds."""

    def __init__(
        self, documents: Documents, embedder: Embedder, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._documents = documents
        self._embedder = embedder
        self._clock = clock

    @property
    def documents(self) -> Documents:
        return self._documents

    @property
    def space(self) -> str:
        """The space that documents should be embedded in now."""
        return self._embedder.space

    async def search(self, owned: Owned, question: str, *, limit: int = PASSAGES) -> list[Passage]:
        """See `ContextSearch`."""
        asked = question[:LONGEST_QUESTION]
        terms = find_terms(asked)
        if not terms:
            return []
        embedded = await self._embedder.embed([asked])
        (vector,) = embedded.vectors
        candidates = await self._documents.candidates(owned, space=embedded.space, vector=vector, terms=terms)
        return rank(terms, vector, candidates, now=self._clock(), limit=limit)

    async def embed(self, tenant_id: TenantId, document_id: str) -> int | None:
        """Cut and embed a document; how many chunks it has. None: it changed or went away meanwhile.

        Raises NotFound, Unavailable, ModelUnavailable.
        """
        document = await self._documents.fetch(tenant_id, document_id)
        title = document.record.title
        texts = cut(document.text)[:MOST_CHUNKS]
        shown = [f"{title}\n{text}" if title else text for text in texts]
        space, vectors = self._embedder.space, list[tuple[float, ...]]()
        for start in range(0, len(shown), EMBEDDED_AT_ONCE):
            embedded = await self._embedder.embed(shown[start : start + EMBEDDED_AT_ONCE])
            if vectors and embedded.space != space:  # the endpoint went away in between: begin again
                return await self.embed(tenant_id, document_id)
            space = embedded.space
            vectors += embedded.vectors
        chunks = [
            Chunk(position, text, find_terms(whole), vector)
            for position, (text, whole, vector) in enumerate(zip(texts, shown, vectors, strict=True))
        ]
        kept = await self._documents.set_chunks(tenant_id, document_id, document.digest, space, chunks)
        return len(chunks) if kept else None
