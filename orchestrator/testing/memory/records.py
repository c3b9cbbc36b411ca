"""Named collections of JSON documents in memory, bound to one tenant and domain."""

from __future__ import annotations

import orjson

from orchestrator.dialogue.json_values import is_list, is_object, same_value
from orchestrator.testing.store import MemoryStore
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject, TenantId


class MemoryRecords:
    def __init__(
        self, store: MemoryStore | None = None, tenant_id: TenantId = DEFAULT_TENANT, domain: str = ""
    ) -> None:
        """Without a store the documents are this object's own."""
        shared = MemoryStore() if store is None else store
        self._collections = shared.documents.setdefault((tenant_id, domain), {})

    async def get(self, collection: str, key: str) -> JsonObject | None:
        found = self._collections.get(collection, {}).get(key)
        return None if found is None else _copy(found)

    async def create(self, collection: str, key: str, document: JsonObject) -> JsonObject:
        return _copy(self._collections.setdefault(collection, {}).setdefault(key, _copy(document)))

    async def update(
        self, collection: str, key: str, changes: JsonObject, *, where: JsonObject | None = None
    ) -> JsonObject | None:
        found = self._collections.get(collection, {}).get(key)
        if found is None or not _matches(found, where):
            return None
        found.update(_copy(changes))
        return _copy(found)

    async def find(
        self, collection: str, where: JsonObject | None = None, *, limit: int = 100
    ) -> list[JsonObject]:
        documents = (document for _, document in sorted(self._collections.get(collection, {}).items()))
        return [_copy(document) for document in documents if _matches(document, where)][:limit]


def _matches(document: JsonObject, where: JsonObject | None) -> bool:
    return all(name in document and _equal(document[name], value) for name, value in (where or {}).items())


def _equal(left: Json, right: Json) -> bool:
    """As the database compares: true is not 1, while 1 is 1.0, at any depth."""
    if is_object(left) and is_object(right):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if is_list(left) and is_list(right):
        return len(left) == len(right) and all(map(_equal, left, right))
    return same_value(left, right)


def _copy(document: JsonObject) -> JsonObject:
    """Copy as a store would give it back: equal, and nobody else's."""
    return orjson.loads(orjson.dumps(document))
