"""Tools that schedule daily, weekly and monthly reports. All times are UTC."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta

from domains.analytics.engine import invalid, not_found
from domains.analytics.workspace import TableService, owner_of
from parley import JsonObject, ToolCall

SCHEDULES = "schedules"
MOST_SCHEDULES = 50


class Schedules(TableService):
    """Tools for the report schedules of a user or session. `SendReports` sends the due reports."""

    async def create(self, *, table: str, every: str, call: ToolCall) -> JsonObject:
        """Schedule a report on a table. The first report is due one period from now.

        `every`: day, week or month.
        """
        workspace, sheet = await self.open(call, table)
        mine = await self.records.find(SCHEDULES, {"owner": workspace.owner}, limit=MOST_SCHEDULES * 4)
        earlier = next((one for one in mine if one["key"] == call.idempotency_key), None)
        if earlier is not None:
            return _view(earlier)
        if sum(one["status"] == "active" for one in mine) >= MOST_SCHEDULES:
            raise invalid(f"You already have {MOST_SCHEDULES} schedules; please cancel one first.")
        draft: JsonObject = {
            "owner": workspace.owner,
            "session_id": call.session_id,
            "number": len(mine) + 1,
            "key": call.idempotency_key,
            "table": sheet.name,
            "every": every,
            "status": "active",
            "made_at": call.now,
        }
        while True:
            place = f"{workspace.owner}:{draft['number']:06d}"
            stored = await self.records.create(SCHEDULES, place, draft)
            if stored["key"] == call.idempotency_key:
                return _view(stored)
            draft["number"] += 1

    async def outcome(self, *, idempotency_key: str, call: ToolCall) -> JsonObject:
        found = await self.records.find(SCHEDULES, {"owner": owner_of(call), "key": idempotency_key}, limit=1)
        return {"status": "done", "data": _view(found[0])} if found else {"status": "not_done"}

    async def list(self, *, call: ToolCall) -> JsonObject:
        mine: JsonObject = {"owner": owner_of(call), "status": "active"}
        rows = [_view(one) for one in await self.records.find(SCHEDULES, mine, limit=MOST_SCHEDULES)]
        only = {"number": rows[0]["number"]} if len(rows) == 1 else {}
        return {"rows": rows, "row_count": len(rows), **only}

    async def cancel(self, *, number: int, call: ToolCall) -> JsonObject:
        """Cancel a schedule. Idempotent."""
        place = f"{owner_of(call)}:{int(number):06d}"
        found = await self.records.update(SCHEDULES, place, {"status": "cancelled"})
        if found is None:
            raise not_found(f"There's no schedule {number}.")
        return _view(found)


def last_due(schedule: JsonObject, now: float) -> float:
    """Return the report's latest due time up to `now`, in Unix seconds.

    In months without the scheduled day, the report is due on the month's last day.
    """
    given, present = (datetime.fromtimestamp(one, UTC) for one in (schedule["made_at"], now))
    if schedule["every"] != "month":
        period = timedelta(days=1 if schedule["every"] == "day" else 7)
        return (given + (present - given) // period * period).timestamp()
    due = _in_month(present, given)
    return (
        due if due <= present else _in_month(present.replace(day=1) - timedelta(days=1), given)
    ).timestamp()


def _in_month(month: datetime, given: datetime) -> datetime:
    """Move `given` to the month of `month`. If that month lacks the day, use the month's last day."""
    return given.replace(year=month.year, month=month.month, day=1) + timedelta(
        days=min(given.day, monthrange(month.year, month.month)[1]) - 1
    )


def _view(schedule: JsonObject) -> JsonObject:
    return {name: schedule[name] for name in ("number", "table", "every", "status")}
