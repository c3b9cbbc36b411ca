"""Business context: documents of a tenant, cut into chunks, found by meaning and by words (CO-4).

`Documents` keeps them; `ContextSearch` is what other parts ask. Ranking is in `orchestrator.memory`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from orchestrator.types import JsonObject, TenantId, UserId

CANDIDATES: Final = 100
"""Chunks that are looked at more closely for one question."""
PASSAGES: Final = 10
"""Of them, those that are given."""
LONGEST_QUESTION: Final = 1000
"""Characters of a question; the rest is not looked at."""


@dataclass(frozen=True, slots=True)
class Owned:
    """Whose documents are meant: the tenant's, and with a user also that user's own.

    `domain`: those of this domain and those of none; None: of all domains.
    """

    tenant_id: TenantId
    user_id: UserId | None = None
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class NewDocument:
    """Args:
    user_id: whom it is for; None: everybody of the tenant.
    domain: for which domain; empty: for all.
    labels: capability labels of what it was made from; they pass on (PX-3).
    origin: where it came from, for example who uploaded it, or a session and a turn.
    """

    tenant_id: TenantId
    text: str
    title: str = ""
    domain: str = ""
    user_id: UserId | None = None
    labels: tuple[str, ...] = ()
    origin: JsonObject = field(default_factory=JsonObject)


def digest_of(document: NewDocument) -> str:
    """Of title and text: says whether a document is the same."""
    return hashlib.sha256(f"{document.title}\0{document.text}".encode()).hexdigest()


def name_document(document: NewDocument) -> str:
    """The identifier: the same for the same text of the same owner, so that it is kept once."""
    owner = f"{document.domain}\0{document.user_id or ''}\0{digest_of(document)}"
    return f"doc_{hashlib.sha256(owner.encode()).hexdigest()[:24]}"


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document without its text. `space`: in which its chunks are embedded; None: not yet. Unix seconds."""

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
    """`created`: False when the same text was there before."""

    document_id: str
    created: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """`terms`: its words as they are looked up. `vector` has length 1."""

    position: int
    text: str
    terms: tuple[str, ...]
    vector: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may answer. `likeness` to the question, up to 1; None when it is of another space."""

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
    """A found piece of a document. `score`: from 0 to 1, higher is better; `labels` must be joined by who
    reads it (PX-3).
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
    """Vectors of length 1, in the order of the texts. Only vectors of one `space` can be compared."""

    space: str
    vectors: tuple[tuple[float, ...], ...]


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def space(self) -> str:
        """The space that new vectors will be in, as far as is known now."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Raises ModelUnavailable when the endpoint does not serve and nothing takes its place."""
        ...


class ContextSearch(Protocol):
    """The search of business context for flows, skills and Internal flows."""

    async def search(self, owned: Owned, question: str, *, limit: int = PASSAGES) -> list[Passage]:
        """The passages that answer a question best, best first; empty when nothing fits.

        Raises Unavailable.
        """
        ...


class Documents(Protocol):
    """The store. Every method raises Unavailable."""

    async def add(self, document: NewDocument) -> Added:
        """Keep a document; the same title and text for the same owner and domain is kept once."""
        ...

    async def get(self, owned: Owned, document_id: str) -> Document:
        """Raises NotFound."""
        ...

    async def list(self, owned: Owned, *, after: str = "", limit: int = 100) -> list[DocumentRecord]:
        """By identifier, from the one after `after`."""
        ...

    async def delete(self, owned: Owned, document_id: str) -> None:
        """Remove it with its chunks. Raises NotFound."""
        ...

    async def unembedded(self, space: str, *, limit: int = 100) -> list[tuple[TenantId, str]]:
        """Documents of all tenants whose chunks are not in this space."""
        ...

    async def fetch(self, tenant_id: TenantId, document_id: str) -> Document:
        """A document whoever owns it; for the flow that embeds it. Raises NotFound."""
        ...

    async def set_chunks(
        self, tenant_id: TenantId, document_id: str, digest: str, space: str, chunks: Sequence[Chunk]
    ) -> bool:
        """Replace a document's chunks; False when it has gone or changed in the meantime."""
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
        """The chunks nearest to the vector and those that share most terms, each once."""
        ...
