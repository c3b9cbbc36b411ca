"""The user's wording decides: days as named, and a yes only if given (NL-4, PX-18)."""

from __future__ import annotations

from orchestrator.types import DEFAULT_TENANT
from tests.cases import for_each
from tests.transcripts.test_never_the_wrong_deed import after


@for_each(
    ("days", "booked_days"),
    [
        ("from 3 december to 6 december", ["2026-12-03", "2026-12-06"]),
        ("leaving 6 december and coming back on 6 december", ["2026-12-06", "2026-12-06"]),
    ],
)
async def test_a_trip_is_booked_there_before_it_is_booked_back(days: str, booked_days: list[str]) -> None:
    talk = await after(f"plan a trip from oslo to rome {days}", "yes", "yes")
    found = await talk.simulator.records[DEFAULT_TENANT].find("bookings", {"status": "confirmed"}, limit=9)
    there, back = sorted(found, key=lambda one: one["origin"] != "OSL")
    assert [there["day"], back["day"]] == booked_days
    assert (there["day"], there["departs"]) < (back["day"], back["departs"])
