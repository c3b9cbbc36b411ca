"""Named collections of JSON documents in memory, bound to one tenant and domain."""

from __future__ import annotations

import orjson

from orchestrator.dialogue.diff import equal
from orchestrator.types import JsonObject


class MemoryRecords:
    def __init__(self) -> None:
        self._collections: dict[str, dict[str, JsonObject]] = {}

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
    return all(name in document and equal(document[name], value) for name, value in (where or {}).items())


def _copy(document: JsonObject) -> JsonObject:
    """What a store would give back: equal, and nobody else's."""
    return orjson.loads(orjson.dumps(document))
