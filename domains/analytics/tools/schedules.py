"""Keep, list and cancel schedules of reports, and say when one is due. All times are UTC."""

from __future__ import annotations

from calendar import day_name, monthrange
from datetime import UTC, datetime, timedelta

from domains.analytics.statements.parts import invalid, not_found
from domains.analytics.store.workspace import TableService, owner_of
from orchestrator import JsonObject, ToolCall

SCHEDULES = "schedules"
"""The collection of records that keeps them."""
MOST_SCHEDULES = 50
_WEEKDAYS = [name.lower() for name in day_name]


class Schedules(TableService):
    """Keeps, lists and cancels orders for reports; `SendReports` carries them out."""

    async def create(
        self, *, table: str, every: str, call: ToolCall, weekday: str | None = None, at: str | None = None
    ) -> JsonObject:
        workspace, sheet = await self.open(call, table)
        mine = await self.records.find(SCHEDULES, {"owner": workspace.owner}, limit=MOST_SCHEDULES * 4)
        earlier = next((one for one in mine if one["key"] == call.idempotency_key), None)
        if earlier is not None:
            return _view(earlier)
        if sum(one["status"] == "active" for one in mine) >= MOST_SCHEDULES:
            raise invalid(f"There are {MOST_SCHEDULES} schedules already; please cancel one first.")
        number = len(mine) + 1
        while True:
            draft: JsonObject = {
                "owner": workspace.owner,
                "session_id": call.session_id,
                "number": number,
                "key": call.idempotency_key,
                "table": sheet.name,
                "every": every,
                "weekday": weekday,
                "at": at,
                "status": "active",
                "made_at": call.now,
            }
            stored = await self.records.create(SCHEDULES, f"{workspace.owner}:{number:06d}", draft)
            if stored["key"] == call.idempotency_key:
                return _view(stored)
            number += 1

    async def outcome(self, *, idempotency_key: str, call: ToolCall) -> JsonObject:
        found = await self.records.find(SCHEDULES, {"owner": owner_of(call), "key": idempotency_key}, limit=1)
        return {"status": "done", "data": _view(found[0])} if found else {"status": "not_done"}

    async def list(self, *, call: ToolCall) -> JsonObject:
        found = await self.records.find(
            SCHEDULES, {"owner": owner_of(call), "status": "active"}, limit=MOST_SCHEDULES
        )
        rows = [_view(one) for one in found]
        only = {"number": rows[0]["number"]} if len(rows) == 1 else {}
        return {"rows": rows, "row_count": len(rows), **only}

    async def cancel(self, *, number: int, call: ToolCall) -> JsonObject:
        """Cancel a schedule; one that is cancelled stays so."""
        place = f"{owner_of(call)}:{int(number):06d}"
        found = await self.records.update(SCHEDULES, place, {"status": "cancelled"})
        if found is None:
            raise not_found(f"There is no schedule {number}.")
        return _view(found)


def last_due(schedule: JsonObject, now: float) -> float:
    """Give the latest time, not after `now`, at which a report was to be made; unix seconds.

    What an order leaves open it has from the moment it was given: the hour, the day of the week, the
    day of the month. A month that is too short has it on its last day.
    """
    given, present = _moment(schedule["made_at"]), _moment(now)
    hour, minute = map(int, (schedule.get("at") or f"{given:%H:%M}").split(":"))
    due = present.replace(hour=hour, minute=minute, second=0, microsecond=0)
    match schedule["every"]:
        case "day":
            due -= timedelta(days=due > present)
        case "week":
            name = schedule.get("weekday")
            weekday = _WEEKDAYS.index(name) if name else given.weekday()
            due -= timedelta(days=(due.weekday() - weekday) % 7)
            due -= timedelta(days=7 * (due > present))
        case _:
            due = _in_month(due, given.day)
            if due > present:
                due = _in_month(due.replace(day=1) - timedelta(days=1), given.day)
    return due.timestamp()


def _in_month(moment: datetime, day: int) -> datetime:
    return moment.replace(day=min(day, monthrange(moment.year, moment.month)[1]))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _view(schedule: JsonObject) -> JsonObject:
    shown = {name: schedule[name] for name in ("number", "table", "every", "status")}
    return {**shown, "when": _when(schedule)}


def _when(schedule: JsonObject) -> str:
    """``every week on Monday at 09:00 UTC``"""
    day, hour = schedule.get("weekday"), schedule.get("at")
    parts = [
        f"every {schedule['every']}",
        f"on {day.capitalize()}" if day else "",
        f"at {hour} UTC" if hour else "",
    ]
    return " ".join(part for part in parts if part)
