"""Business context: a tenant's documents, split into chunks, found by meaning and terms (CO-4).

`Documents` stores them; other parts query `ContextSearch`. `orchestrator.memory` ranks results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from orchestrator.types import JsonObject, TenantId, UserId

CANDIDATES: Final = 100
"""Chunks considered per question."""
PASSAGES: Final = 10
"""Chunks returned per question."""
LONGEST_QUESTION: Final = 1000
"""Maximum characters of a question; the rest is ignored."""


@dataclass(frozen=True, slots=True)
class Owned:
    """Document scope: the tenant's, and with a user also that user's.

    `domain`: this domain's and unassigned documents; None: all domains.
    """

    tenant_id: TenantId
    user_id: UserId | None = None
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to add.

    Args:
        user_id: its only reader; None: the whole tenant.
        domain: its domain; empty: all.
        labels: capability labels of its sources, which propagate (PX-3).
        origin: its source, for example the uploader, or a session and a turn.
    """

    tenant_id: TenantId
    text: str
    title: str = ""
    domain: str = ""
    user_id: UserId | None = None
    labels: tuple[str, ...] = ()
    origin: JsonObject = field(default_factory=JsonObject)


def digest_of(document: NewDocument) -> str:
    """Return the digest of title and text, which identifies the content."""
    return hashlib.sha256(f"{document.title}\0{document.text}".encode()).hexdigest()


def name_document(document: NewDocument) -> str:
    """Return the ID, the same for the same text and owner, so that it is stored once."""
    owner = f"{document.domain}\0{document.user_id or ''}\0{digest_of(document)}"
    return f"doc_{hashlib.sha256(owner.encode()).hexdigest()[:24]}"


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document without its text.

    `space`: its chunks' embedding space; None: not embedded yet. Times in Unix seconds.
    """

    document_id: str
    title: str
    domain: str
    user_id: UserId | None
    labels: tuple[str, ...]
    origin: JsonObject
    characters: int
    chunks: int
    space: str | None
    updated_at: float


@dataclass(frozen=True, slots=True)
class Document:
    """A document with its text. `digest`: of title and text."""

    record: DocumentRecord
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class Added:
    """The result of adding a document. `created`: False if it already existed."""

    document_id: str
    created: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk. `terms`: its search terms. `vector`: of length 1."""

    position: int
    text: str
    terms: tuple[str, ...]
    vector: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate chunk. `likeness`: similarity to the question, up to 1; None if it is in another space."""

    document_id: str
    position: int
    title: str
    text: str
    terms: tuple[str, ...]
    likeness: float | None
    labels: tuple[str, ...]
    origin: JsonObject
    updated_at: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A found passage. `score`: from 0 to 1, higher is better. `labels`: readers must join them (PX-3)."""

    document_id: str
    position: int
    title: str
    text: str
    score: float
    labels: tuple[str, ...]
    origin: JsonObject
    updated_at: float


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of length 1, in the order of the texts. Only vectors in one `space` are comparable."""

    space: str
    vectors: tuple[tuple[float, ...], ...]


class Embedder(Protocol):
    """Converts texts to vectors."""

    @property
    def space(self) -> str:
        """Return the expected space of new vectors."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Return vectors. Raises ModelUnavailable if the endpoint fails and there is no fallback."""
        ...


class ContextSearch(Protocol):
    """Search of business context, for flows, skills and background flows."""

    async def search(self, owned: Owned, question: str, *, limit: int = PASSAGES) -> list[Passage]:
        """Return the best passages for a question, best first; empty if none is relevant.

        Raises Unavailable.
        """
        ...


class Documents(Protocol):
    """The document store. Every method raises Unavailable."""

    async def add(self, document: NewDocument) -> Added:
        """Store a document; the same title and text of the same owner and domain is stored once."""
        ...

    async def get(self, owned: Owned, document_id: str) -> Document:
        """Return a document. Raises NotFound."""
        ...

    async def list(self, owned: Owned, *, after: str = "", limit: int = 100) -> list[DocumentRecord]:
        """Return documents by ID, after `after`."""
        ...

    async def delete(self, owned: Owned, document_id: str) -> None:
        """Delete a document with its chunks. Raises NotFound."""
        ...

    async def unembedded(self, space: str, *, limit: int = 100) -> list[tuple[TenantId, str]]:
        """Return documents of all tenants whose chunks are not in this space."""
        ...

    async def fetch(self, tenant_id: TenantId, document_id: str) -> Document:
        """Return a document of any owner, for the flow that embeds it. Raises NotFound."""
        ...

    async def set_chunks(
        self, tenant_id: TenantId, document_id: str, digest: str, space: str, chunks: Sequence[Chunk]
    ) -> bool:
        """Replace a document's chunks. Returns False if it was deleted or changed meanwhile."""
        ...

    async def candidates(
        self,
        owned: Owned,
        *,
        space: str,
        vector: Sequence[float],
        terms: Sequence[str],
        limit: int = CANDIDATES,
    ) -> list[Candidate]:
        """Return the chunks nearest to the vector and those with the most shared terms, each once."""
        ...
