"""Hold every flight that is searched, booked or changed to the rules of the sale."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from domains.travel.airports import Airport, all_airports, find
from orchestrator import FailureCategory, ToolFailure

SALE_DAYS = 360
"""How far ahead flights are on sale."""
HOURS = {"morning": ("00:00", "11:59"), "afternoon": ("12:00", "17:59"), "evening": ("18:00", "23:59")}


def find_airport(code: str) -> Airport:
    airport = find(code)
    if airport is None:
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"I know no airport {code!r}.")
    return airport


def check_day(day: str, airport: Airport, now: float) -> date:
    """Check the day of travel: flights are on sale for it; `now` is read in the airport's time zone."""
    try:
        wanted = date.fromisoformat(day)
    except ValueError:
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"{day!r} is no day of the calendar.") from None
    today = datetime.fromtimestamp(now, zone_of(airport.code)).date()
    if wanted < today:
        message = f"{show_day(wanted)} is in the past; please name a day from today on."
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
    if wanted > today + timedelta(days=SALE_DAYS):
        last = today + timedelta(days=SALE_DAYS)
        message = f"Flights are on sale until {show_day(last)}; {show_day(wanted)} is too far ahead."
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
    return wanted


def zone_of(code: str) -> ZoneInfo:
    return ZoneInfo(all_airports()[code].timezone)


def fits_hours(departs: str, time_of_day: str) -> bool:
    first, last = HOURS.get(time_of_day, ("00:00", "23:59"))
    return first <= departs <= last


def show_day(day: date) -> str:
    return f"{day:%A} {day.day} {day:%B} {day.year}"
