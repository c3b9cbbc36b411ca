"""The external systems of this domain, one class each. Tools call their methods."""

from __future__ import annotations

from parley import JsonObject, Service, ToolCall


class Notes(Service):
    """Notes in Parley's own store."""

    async def create(self, topic: str, body: str, call: ToolCall) -> JsonObject:
        """Create a note. Repeating the same tool call doesn't create another note."""
        note: JsonObject = {"topic": topic, "body": body, "session_id": call.session_id}
        return await self.records.create("notes", call.idempotency_key, note)

    async def find(self, topic: str) -> JsonObject:
        """Return the notes on a topic, at most 100."""
        return {"notes": [*await self.records.find("notes", {"topic": topic})]}
