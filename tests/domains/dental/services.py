"""Appointment reminders. The clinic's own service stores the appointments, see tools.yaml."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from parley import JsonObject, Service, ToolCall


class Reminders(Service):
    async def set(self, *, code: str, day: str, time: str, call: ToolCall) -> JsonObject:
        """Schedule a reminder a day before an appointment, if possible. A second call moves the reminder."""
        at = datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC) - timedelta(days=1)
        if at.timestamp() <= call.now:
            return {"code": code, "remind_at": ""}
        assert self.events is not None
        await self.events.schedule(call, "appointment_reminder", {"code": code}, at=at.timestamp(), key=code)
        return {"code": code, "remind_at": at.isoformat()}
