"""A clinic's book of appointments."""

from __future__ import annotations

from parley import FailureCategory, JsonObject, Service, ToolCall, ToolFailure


class Clinic(Service):
    async def book(self, *, treatment: str, day: str, time: str, call: ToolCall) -> JsonObject:
        """Add an appointment, once for each call."""
        known = await self.records.find("appointments", {"session": call.session_id})
        row: JsonObject = {"treatment": treatment, "day": day, "time": time, "session": call.session_id}
        key = call.idempotency_key
        row |= {"code": f"D{len(known) + 1:04}", "key": key}
        made = await self.records.create("appointments", key, row)
        return {name: made[name] for name in ("code", "treatment", "day", "time")}

    async def move(self, *, code: str, day: str, time: str, call: ToolCall) -> JsonObject:
        """Move an appointment."""
        rows = await self.records.find("appointments", {"session": call.session_id, "code": code})
        if not rows:
            raise ToolFailure(FailureCategory.NOT_FOUND, f"There is no appointment {code}.")
        moved = await self.records.update("appointments", rows[0]["key"], {"day": day, "time": time})
        assert moved is not None
        return {name: moved[name] for name in ("code", "treatment", "day", "time")}

    async def list(self, *, call: ToolCall) -> JsonObject:
        """List the appointments of this session."""
        rows = await self.records.find("appointments", {"session": call.session_id})
        return {"appointments": [{n: row[n] for n in ("code", "treatment", "day", "time")} for row in rows]}
