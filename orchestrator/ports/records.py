"""Named collections of JSON documents: where a domain's services keep what they own."""

from __future__ import annotations

from typing import Protocol

from orchestrator.types import JsonObject


class Records(Protocol):
    """Bound to one tenant and domain; `collection` and `key` are text."""

    async def get(self, collection: str, key: str) -> JsonObject | None: ...

    async def create(self, collection: str, key: str, document: JsonObject) -> JsonObject:
        """Insert unless the key exists; returns what is stored (the earlier document if there was one)."""
        ...

    async def update(
        self, collection: str, key: str, changes: JsonObject, *, where: JsonObject | None = None
    ) -> JsonObject | None:
        """Merge top-level `changes` if the document exists and its fields equal `where`; returns the
        stored document, or None when nothing matched.
        """
        ...

    async def find(
        self, collection: str, where: JsonObject | None = None, *, limit: int = 100
    ) -> list[JsonObject]:
        """Documents whose top-level fields equal `where`, ordered by key."""
        ...
