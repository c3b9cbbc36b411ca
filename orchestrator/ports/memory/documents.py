"""Business context: a tenant's documents, split into chunks and searched by meaning and terms (CO-4).

`Documents` stores documents, and `ContextSearch` searches them; `orchestrator.memory` ranks the results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from orchestrator.types import JsonObject, TenantId, UserId

CANDIDATES: Final = 100
"""Maximum number of chunks ranked per question."""
PASSAGES: Final = 10
"""Default maximum number of passages returned per question."""
LONGEST_QUESTION: Final = 1000
"""Maximum length of a question, in characters. The rest is ignored."""


@dataclass(frozen=True, slots=True)
class Owned:
    """A set of documents: the tenant's documents for all users and, if `user_id` is set, this user's documents.

    `domain`: limits the set to documents of this domain and documents for all domains. Default: no limit.
    """

    tenant_id: TenantId
    user_id: UserId | None = None
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to add.

    Args:
        user_id: the only user who can read the document, or None for all users of the tenant.
        domain: the document's domain, or an empty string for all domains.
        labels: capability labels of the sources, which propagate to flows that read passages (PX-3).
        origin: the document's source, for example the uploader, or a session and a turn.
    """

    tenant_id: TenantId
    text: str
    title: str = ""
    domain: str = ""
    user_id: UserId | None = None
    labels: tuple[str, ...] = ()
    origin: JsonObject = field(default_factory=JsonObject)


def digest_of(document: NewDocument) -> str:
    return hashlib.sha256(f"{document.title}\0{document.text}".encode()).hexdigest()


def name_document(document: NewDocument) -> str:
    """Return a document's ID, derived from user, domain, title and text so that duplicates have the same ID."""
    owner = f"{document.domain}\0{document.user_id or ''}\0{digest_of(document)}"
    return f"doc_{hashlib.sha256(owner.encode()).hexdigest()[:24]}"


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document without its text.

    Args:
        space: the chunks' embedding space, or None if the document has not been embedded yet.
        updated_at: the time of the last change, in Unix seconds.
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
    """A document with its text. `digest`: the digest of title and text."""

    record: DocumentRecord
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class Added:
    """The result of adding a document. `created`: False if the document already existed."""

    document_id: str
    created: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document. `terms`: its search terms. `vector`: its embedding, normalized to length 1."""

    position: int
    text: str
    terms: tuple[str, ...]
    vector: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may answer a question.

    `likeness`: similarity to the question, at most 1, or None if the chunk was embedded in another space.
    """

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
    """A search result.

    Args:
        score: relevance from 0 to 1; higher is better.
        labels: capability labels, which propagate to flows that read the passage (PX-3).
    """

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
    """Embeddings in the order of the texts, normalized to length 1 and comparable only within a `space`."""

    space: str
    vectors: tuple[tuple[float, ...], ...]


class Embedder(Protocol):
    @property
    def space(self) -> str:
        """Return the embedding space of new vectors."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Return the texts' embeddings.

        Raises ModelUnavailable if the endpoint fails and there is no fallback.
        """
        ...


class ContextSearch(Protocol):
    async def search(self, owned: Owned, question: str, *, limit: int = PASSAGES) -> list[Passage]:
        """Return the most relevant passages for a question, best first, or an empty list.

        Raises Unavailable.
        """
        ...


class Documents(Protocol):
    """The document store. Every method can raise Unavailable."""

    async def add(self, document: NewDocument) -> Added:
        """Store a document, unless its user and domain already have a document with this title and text."""
        ...

    async def get(self, owned: Owned, document_id: str) -> Document:
        """Return a document. Raises NotFound if the document isn't in the set `owned`."""
        ...

    async def list(self, owned: Owned, *, after: str = "", limit: int = 100) -> list[DocumentRecord]:
        """Return documents ordered by ID, starting after the ID `after`."""
        ...

    async def delete(self, owned: Owned, document_id: str) -> None:
        """Delete a document and its chunks. Raises NotFound."""
        ...

    async def unembedded(self, space: str, *, limit: int = 100) -> list[tuple[TenantId, str]]:
        """Return the tenants and IDs of documents that are not embedded in this space, across all tenants."""
        ...

    async def fetch(self, tenant_id: TenantId, document_id: str) -> Document:
        """Return a tenant's document regardless of its user, so that a flow can embed it. Raises NotFound."""
        ...

    async def set_chunks(
        self, tenant_id: TenantId, document_id: str, digest: str, space: str, chunks: Sequence[Chunk]
    ) -> bool:
        """Replace a document's chunks. Return False if the document was deleted or no longer has this digest."""
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
        """Return up to `limit` chunks that are nearest to `vector` or share the most `terms`."""
        ...
