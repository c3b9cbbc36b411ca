from __future__ import annotations

import re
from datetime import UTC, datetime

from domains.travel.booking import Bookings
from parley import FailureCategory, JsonObject, ToolCall, ToolFailure

EVENT = "flight_reminder"
DEFAULT_LEAD = "3 hours"
_SECONDS = {"minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_NUMBERS = {
    word: number
    for number, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 1
    )
}
_LEAD = re.compile(r"(?P<half>half )?(?:(?P<count>\w+) )?(?P<unit>minute|hour|day|week)s?", re.IGNORECASE)


def lead_seconds(lead: str) -> int:
    """Convert a phrase such as “two hours” or “the day” to seconds. Raises ToolFailure if it lacks a unit of time."""
    found = _LEAD.search(lead)
    if found is None:
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, "How long before? For example, two hours.")
    count = (found["count"] or "").lower()
    number = int(count) if count.isdecimal() else _NUMBERS.get(count, 1)  # “an hour” and “the day” mean 1
    return number * _SECONDS[found["unit"].lower()] // (2 if found["half"] else 1)


class Reminders(Bookings):
    """Tools for flight reminders. Each booking has at most one reminder."""

    async def set(self, *, booking_ref: str, call: ToolCall, lead: str = DEFAULT_LEAD) -> JsonObject:
        """Schedule or reschedule a booking's reminder. `lead`: time before departure, in words.

        Raises ToolFailure if the reminder's time has passed, or the booking can't be changed.
        """
        booking = await self._changeable(booking_ref, call)
        at = booking["leaves_at"] - lead_seconds(lead)
        if at <= call.now:
            message = f"The flight leaves at {booking['departs']}; that's too soon for this reminder."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        assert self.events is not None
        await self.events.schedule(call, EVENT, {"booking_ref": booking_ref}, at=at, key=_key(booking_ref))
        return {
            "booking_ref": booking_ref,
            "flight_number": booking["flight_number"],
            "destination": booking["destination"],
            "day": booking["day"],
            "departs": booking["departs"],
            "lead": lead,
            "remind_at": datetime.fromtimestamp(at, UTC).isoformat(),
        }

    async def drop(self, *, call: ToolCall, booking_ref: str | None = None) -> JsonObject:
        """Cancel a booking's reminder. Default: all flight reminders of this session."""
        assert self.events is not None
        keys = [one["key"] for one in await self.events.scheduled(call) if one["name"] == EVENT]
        if booking_ref is not None:
            keys = [_key(booking_ref)]
        dropped = [key for key in keys if await self.events.cancel(call, key)]
        return {"count": len(dropped)}


def _key(booking_ref: str) -> str:
    return f"{EVENT}:{booking_ref}"
