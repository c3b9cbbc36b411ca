"""When standing orders are due. All in UTC."""

from __future__ import annotations

from calendar import day_name, monthrange
from datetime import UTC, datetime, timedelta

from orchestrator.types import JsonObject

SCHEDULES = "schedules"
"""The collection of the orders."""
_WEEKDAYS = [name.lower() for name in day_name]


def last_due(schedule: JsonObject, now: float) -> float:
    """The latest time, not after `now`, at which a report was to be made; unix seconds.

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
