"""The external systems of this domain: one class each; their methods are the tools."""

from __future__ import annotations

from parley import JsonObject, Service, ToolCall


class Notes(Service):
    """Stores notes in Parley's own store."""

    async def create(self, topic: str, body: str, call: ToolCall) -> JsonObject:
        """Write a note once, however often the call is repeated."""
        note: JsonObject = {"topic": topic, "body": body, "session_id": call.session_id}
        return await self.records.create("notes", call.idempotency_key, note)

    async def find(self, topic: str) -> JsonObject:
        """Return all notes about a topic."""
        return {"notes": [*await self.records.find("notes", {"topic": topic})]}
