"""In-memory stores for documents, preferences, records, frames and the scratchpad."""

import builtins
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from operator import mul

import orjson

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
from orchestrator.ports.memory.preferences import MOST_PREFERENCES, Preference, Source
from orchestrator.ports.memory.scratchpad import CAPACITY, Entry, EntryKind, new_entry_id
from orchestrator.types import (
    DEFAULT_TENANT,
    Json,
    JsonObject,
    SessionId,
    TenantId,
    UserId,
    is_list,
    is_object,
    same_value,
)
from parley.testing.store import MemoryStore


@dataclass(slots=True)
class _Kept:
    document: Document
    chunks: tuple[Chunk, ...] = ()


class MemoryDocuments:
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
        found = [_candidate(kept, chunk, space, vector) for kept in self._of(owned) for chunk in kept.chunks]
        asked = set(terms)
        near = sorted(
            (one for one in found if one.likeness is not None), key=lambda one: -(one.likeness or 0.0)
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


def _candidate(kept: _Kept, chunk: Chunk, space: str, vector: Sequence[float]) -> Candidate:
    record = kept.document.record
    return Candidate(
        document_id=record.document_id,
        position=chunk.position,
        title=record.title,
        text=chunk.text,
        terms=chunk.terms,
        likeness=_dot(chunk.vector, vector) if record.space == space else None,
        labels=record.labels,
        origin=record.origin,
        updated_at=record.updated_at,
    )


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(starmap(mul, zip(left, right, strict=True)))


_User = tuple[TenantId, UserId]


class MemoryPreferences:
    """An in-memory `PreferenceStore`. `clock` returns Unix seconds."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._clock = clock
        self._kept: dict[_User, dict[str, Preference]] = {}

    async def of_user(self, tenant_id: TenantId, user_id: UserId) -> list[Preference]:
        kept = self._kept.get((tenant_id, user_id), {})
        return [kept[key] for key in sorted(kept)]

    async def remember(
        self,
        tenant_id: TenantId,
        user_id: UserId,
        preferences: tuple[Preference, ...],
        *,
        instead_of: tuple[str, ...] = (),
    ) -> None:
        kept = self._kept.setdefault((tenant_id, user_id), {})
        for key in instead_of:
            kept.pop(key, None)
        for new in preferences:
            known = kept.get(new.key)
            if known is not None and known.source is Source.EXPLICIT and new.source is not Source.EXPLICIT:
                continue
            kept.pop(new.key, None)
            kept[new.key] = replace(new, updated_at=self._clock())
        oldest = sorted(kept, key=lambda key: kept[key].source is Source.EXPLICIT)
        for key in oldest[: max(0, len(kept) - MOST_PREFERENCES)]:
            del kept[key]

    async def forget(self, tenant_id: TenantId, user_id: UserId, keys: tuple[str, ...]) -> int:
        kept = self._kept.get((tenant_id, user_id), {})
        return sum(kept.pop(key, None) is not None for key in keys)

    async def forget_everything(self, tenant_id: TenantId, user_id: UserId) -> int:
        return len(self._kept.pop((tenant_id, user_id), {}))

    async def replace(
        self, tenant_id: TenantId, user_id: UserId, preferences: tuple[Preference, ...]
    ) -> None:
        self._kept.pop((tenant_id, user_id), None)
        await self.remember(tenant_id, user_id, preferences)


class MemoryRecords:
    def __init__(
        self, store: MemoryStore | None = None, tenant_id: TenantId = DEFAULT_TENANT, domain: str = ""
    ) -> None:
        """Create the records for a tenant and domain, stored in `store`. Default: a new store."""
        shared = MemoryStore() if store is None else store
        self.collections = shared.documents.setdefault((tenant_id, domain), {})

    async def get(self, collection: str, key: str) -> JsonObject | None:
        found = self.collections.get(collection, {}).get(key)
        return None if found is None else _copy(found)

    async def create(self, collection: str, key: str, document: JsonObject) -> JsonObject:
        return _copy(self.collections.setdefault(collection, {}).setdefault(key, _copy(document)))

    async def update(
        self, collection: str, key: str, changes: JsonObject, *, where: JsonObject | None = None
    ) -> JsonObject | None:
        found = self.collections.get(collection, {}).get(key)
        if found is None or not _matches(found, where):
            return None
        found.update(_copy(changes))
        return _copy(found)

    async def find(
        self, collection: str, where: JsonObject | None = None, *, limit: int = 100
    ) -> list[JsonObject]:
        documents = (document for _, document in sorted(self.collections.get(collection, {}).items()))
        return [_copy(document) for document in documents if _matches(document, where)][:limit]


def _matches(document: JsonObject, where: JsonObject | None) -> bool:
    return all(name in document and _equal(document[name], value) for name, value in (where or {}).items())


def _equal(left: Json, right: Json) -> bool:
    """Compare JSON values like PostgreSQL: at any depth, true differs from 1, and 1 equals 1.0."""
    if is_object(left) and is_object(right):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if is_list(left) and is_list(right):
        return len(left) == len(right) and all(map(_equal, left, right))
    return same_value(left, right)


def _copy(document: JsonObject) -> JsonObject:
    """Return a deep copy, so that callers can't change the stored document."""
    return orjson.loads(orjson.dumps(document))


class MemoryFrames:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def frame(self, tenant_id: TenantId, session_id: SessionId, frame_id: str) -> JsonObject:
        frames = self._store.session(tenant_id, session_id).frames.values()
        found = next((one for one in frames if one.frame_id == frame_id), None)
        if found is None:
            raise NotFound("frame", frame_id)
        return found.body


_Key = tuple[TenantId, SessionId]


class MemoryScratchpad:
    def __init__(self) -> None:
        self._entries: defaultdict[_Key, OrderedDict[str, Entry]] = defaultdict(OrderedDict)
        self._operations: defaultdict[_Key, set[str]] = defaultdict(set)

    async def put(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        entries: tuple[Entry, ...],
        *,
        operation: str | None = None,
    ) -> list[str]:
        key = (tenant_id, session_id)
        if operation is not None:
            if operation in self._operations[key]:
                return []
            self._operations[key].add(operation)
        kept = self._entries[key]
        for entry in entries:
            named = entry if entry.entry_id else replace(entry, entry_id=new_entry_id())
            kept[named.entry_id] = named
            kept.move_to_end(named.entry_id)
        return [kept.popitem(last=False)[0] for _ in range(len(kept) - CAPACITY)]

    async def read(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        kinds: frozenset[EntryKind] = frozenset(),
        touch: bool = True,
    ) -> list[Entry]:
        kept = self._entries[tenant_id, session_id]
        found = [entry for entry in kept.values() if not kinds or entry.kind in kinds]
        for entry in found if touch else ():
            kept.move_to_end(entry.entry_id)
        return found

    async def remove(self, tenant_id: TenantId, session_id: SessionId, entry_ids: tuple[str, ...]) -> int:
        kept = self._entries[tenant_id, session_id]
        return sum(kept.pop(entry_id, None) is not None for entry_id in entry_ids)

    async def forget(self, tenant_id: TenantId, session_id: SessionId) -> None:
        self._entries.pop((tenant_id, session_id), None)
        self._operations.pop((tenant_id, session_id), None)
