"""The outside systems of this domain: one class each; their methods are the tools."""

from __future__ import annotations

from orchestrator import JsonObject, Service, ToolCall


class Notes(Service):
    """Keeps notes in the store that comes with Parley."""

    async def create(self, topic: str, body: str, call: ToolCall) -> JsonObject:
        """Write a note once, however often the call is repeated."""
        note: JsonObject = {"topic": topic, "body": body, "session_id": call.session_id}
        return await self.records.create("notes", call.idempotency_key, note)

    async def find(self, topic: str) -> JsonObject:
        """All notes about a topic."""
        return {"notes": [*await self.records.find("notes", {"topic": topic})]}
