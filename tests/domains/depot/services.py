"""The depot: every call succeeds and reports its action."""

from __future__ import annotations

from parley import JsonObject, Service


class Depot(Service):
    async def store(self, *, part: str, shelf: str) -> JsonObject:
        return {"stored": f"{part} on {shelf}"}

    async def fetch(self, *, part: str, shelf: str) -> JsonObject:
        return {"fetched": f"{part} from {shelf}"}

    async def shelves(self) -> JsonObject:
        return {"shelves": ["S01", "S02"]}
