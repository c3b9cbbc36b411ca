"""The user's wording decides: days as named, and a yes only if given (NL-4, PX-18)."""

from __future__ import annotations

from datetime import datetime

from orchestrator.types import DEFAULT_TENANT
from tests.cases import for_each
from tests.transcripts.test_never_the_wrong_deed import OFFER, begin, booked


@for_each(
    "words",
    [
        "was kostet das denn",
        "da bin ich mir nicht sicher",
        "ist das ein flight to rome",
        "sorry, make it: economy",
    ],
)
async def test_what_nobody_understood_books_nothing_in_any_language(words: str) -> None:
    """PX-18: in languages without a list of yeses, only an interpreted yes counts."""
    talk = begin(sections={"language": {"default": "de", "supported": ["de", "en"]}})
    await talk.say(OFFER)
    await talk.say(words)
    assert await booked(talk) == []


@for_each(
    ("words", "books"),
    [
        ("👍", True),
        ("ok 👍🏽", True),
        ("that would be lovely, thank you", False),
        ("👎", False),
        ("ok 👎", False),
        ("yes 🤔", False),
        ("👍?", False),
        ("👍 but in business", False),
        ("great, thanks", False),
    ],
)
async def test_a_sign_says_yes_or_no_as_a_word_does(words: str, books: bool) -> None:
    """PX-18: emoji count like words."""
    talk = begin()
    await talk.say(OFFER)
    await talk.say(words)
    assert await booked(talk) == [("OSL", "FCO")] * books


@for_each(
    ("days", "booked_days"),
    [
        ("from 3 december to 6 december", ["2026-12-03", "2026-12-06"]),
        ("leaving 6 december and coming back on 6 december", ["2026-12-06", "2026-12-06"]),
    ],
)
async def test_a_trip_is_booked_there_before_it_is_booked_back(days: str, booked_days: list[str]) -> None:
    talk = begin()
    for words in (f"plan a trip from oslo to rome {days}", "yes", "yes"):
        await talk.say(words)
    found = await talk.simulator.records[DEFAULT_TENANT].find("bookings", {"status": "confirmed"}, limit=9)
    there, back = sorted(found, key=lambda one: one["origin"] != "OSL")
    assert [there["day"], back["day"]] == booked_days
    assert (there["day"], there["departs"]) < (back["day"], back["departs"])


@for_each(
    ("zone", "at", "day", "told"),
    [
        ("America/Los_Angeles", "2026-11-20T05:00:00+00:00", "2026-11-20", "tomorrow, Friday 20 November"),
        ("Asia/Tokyo", "2026-11-20T18:00:00+00:00", "2026-11-22", "tomorrow, Sunday 22 November"),
        ("UTC", "2026-11-20T18:00:00+00:00", "2026-11-21", "tomorrow, Saturday 21 November"),
    ],
)
async def test_tomorrow_is_the_users_own(zone: str, at: str, day: str, told: str) -> None:
    """NL-2: evening in California is already the next day in UTC, and the offer names the date."""
    talk = begin(sections={"session": {"timezone": zone}}, at=datetime.fromisoformat(at))
    offer = await talk.say("book a flight from oslo to rome tomorrow")
    assert told in offer["reply"]
    await talk.say("yes")
    found = await talk.simulator.records[DEFAULT_TENANT].find("bookings", {"status": "confirmed"}, limit=9)
    assert [one["day"] for one in found] == [day]
