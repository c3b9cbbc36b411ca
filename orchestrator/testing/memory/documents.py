"""Documents in memory, with the rules of the real store."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from orchestrator.errors import NotFound
from orchestrator.ports.memory.documents import (
    CANDIDATES,
    Added,
    Candidate,
    Chunk,
    Document,
    DocumentRecord,
    NewDocument,
    Owned,
    digest_of,
    name_document,
)
from orchestrator.types import TenantId


@dataclass(slots=True)
class _Kept:
    document: Document
    chunks: tuple[Chunk, ...] = ()


class MemoryDocuments:
    """Implements `ports.memory.documents.Documents`."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._clock = clock
        self._kept: dict[tuple[TenantId, str], _Kept] = {}

    async def add(self, document: NewDocument) -> Added:
        document_id = name_document(document)
        key = (document.tenant_id, document_id)
        known = self._kept.get(key)
        if known is not None:
            record = known.document.record
            labels = tuple(sorted({*record.labels, *document.labels}))
            known.document = replace(known.document, record=replace(record, labels=labels))
            return Added(document_id, created=False)
        record = DocumentRecord(
            document_id=document_id,
            title=document.title,
            domain=document.domain,
            user_id=document.user_id,
            labels=tuple(sorted(set(document.labels))),
            origin=document.origin,
            characters=len(document.text),
            chunks=0,
            space=None,
            updated_at=self._clock(),
        )
        self._kept[key] = _Kept(Document(record, document.text, digest_of(document)))
        return Added(document_id, created=True)

    async def get(self, owned: Owned, document_id: str) -> Document:
        return self._visible(owned, document_id).document

    async def list(self, owned: Owned, *, after: str = "", limit: int = 100) -> list[DocumentRecord]:
        records = sorted(
            (kept.document.record for kept in self._of(owned)), key=lambda record: record.document_id
        )
        return [record for record in records if record.document_id > after][:limit]

    async def delete(self, owned: Owned, document_id: str) -> None:
        self._visible(owned, document_id)
        del self._kept[owned.tenant_id, document_id]

    async def unembedded(self, space: str, *, limit: int = 100) -> builtins.list[tuple[TenantId, str]]:
        return [key for key, kept in self._kept.items() if kept.document.record.space != space][:limit]

    async def fetch(self, tenant_id: TenantId, document_id: str) -> Document:
        kept = self._kept.get((tenant_id, document_id))
        if kept is None:
            raise NotFound("document", document_id)
        return kept.document

    async def set_chunks(
        self, tenant_id: TenantId, document_id: str, digest: str, space: str, chunks: Sequence[Chunk]
    ) -> bool:
        kept = self._kept.get((tenant_id, document_id))
        if kept is None or kept.document.digest != digest:
            return False
        kept.chunks = tuple(chunks)
        record = replace(kept.document.record, space=space, chunks=len(kept.chunks))
        kept.document = replace(kept.document, record=record)
        return True

    async def candidates(
        self,
        owned: Owned,
        *,
        space: str,
        vector: Sequence[float],
        terms: Sequence[str],
        limit: int = CANDIDATES,
    ) -> builtins.list[Candidate]:
        found = [_candidate(kept, chunk, space) for kept in self._of(owned) for chunk in kept.chunks]
        asked = set(terms)
        near = sorted(
            (one for one in found if one.vector is not None), key=lambda one: -_dot(vector, one.vector or ())
        )
        sharing = sorted(
            (one for one in found if asked & set(one.terms)), key=lambda one: -len(asked & set(one.terms))
        )
        half = (limit + 1) // 2
        chosen = {(one.document_id, one.position): one for one in [*near[:half], *sharing[:half]]}
        return list(chosen.values())

    def _of(self, owned: Owned) -> builtins.list[_Kept]:
        return [
            kept
            for (tenant_id, _), kept in self._kept.items()
            if tenant_id == owned.tenant_id
            and kept.document.record.user_id in {None, owned.user_id}
            and (owned.domain is None or kept.document.record.domain in {"", owned.domain})
        ]

    def _visible(self, owned: Owned, document_id: str) -> _Kept:
        for kept in self._of(owned):
            if kept.document.record.document_id == document_id:
                return kept
        raise NotFound("document", document_id)


def _candidate(kept: _Kept, chunk: Chunk, space: str) -> Candidate:
    record = kept.document.record
    return Candidate(
        document_id=record.document_id,
        position=chunk.position,
        title=record.title,
        text=chunk.text,
        terms=chunk.terms,
        vector=chunk.vector if record.space == space else None,
        labels=record.labels,
        origin=record.origin,
        updated_at=record.updated_at,
    )


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
