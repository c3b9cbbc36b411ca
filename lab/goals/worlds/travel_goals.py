"""Generate random wishes that the timetable can fulfill, with random twists."""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache
from random import Random
from typing import Any

from domains.travel.timetable import Timetable
from lab.goals.goal import Values, Wish
from lab.goals.worlds.travel_reading import airline_names
from parley.simulator import START
from parley.testing.memory import MemoryRecords

TODAY = date(2026, 11, 20)
CITIES = {
    "OSL": "Oslo", "BGO": "Bergen", "ARN": "Stockholm", "CPH": "Copenhagen", "HEL": "Helsinki", "LIS": "Lisbon",
    "MAD": "Madrid", "BCN": "Barcelona", "CDG": "Paris", "FCO": "Rome", "BER": "Berlin", "MUC": "Munich",
    "VIE": "Vienna", "PRG": "Prague", "ATH": "Athens", "DUB": "Dublin", "EDI": "Edinburgh", "WAW": "Warsaw",
    "ZRH": "Zurich", "AMS": "Amsterdam", "BRU": "Brussels", "BUD": "Budapest", "OPO": "Porto", "MXP": "Milan",
}  # fmt: skip
HOURS = {"morning": ("00:00", "11:59"), "afternoon": ("12:00", "17:59"), "evening": ("18:00", "23:59")}
USUAL = {"passengers": 1, "cabin": "economy"}
AT_OFFER = (
    "correct",
    "hasty",
    "yes_but",
    "hedge",
    "near_yes",
    "near_pair",
    "aside",
    "stop",
    "switch",
    "made_up",
)
AT_QUESTION = ("aside", "premature", "stop")
WHEN_DONE = ("correct", "again", "thanks")
_FREE: dict[tuple[str, ...], list[int]] = {}  # free seats per flight in a timetable without bookings


async def invent_goal(chance: Random) -> list[Wish]:
    match chance.choices(("one", "after", "several"), (70, 15, 15))[0]:
        case "one":
            wishes = [await invent_wish(chance.choices(tuple(_WISHES), (35, 20, 15))[0], chance)]
        case "after":
            wishes = await _booked_and_more(chance)
        case _:
            wishes = [await invent_wish(kind, chance) for kind in ("book", chance.choice(["trip", "book"]))]
    for wish in wishes:
        wish.twists = _twists(wish, chance)
    return wishes


async def invent_wish(kind: str, chance: Random) -> Wish:
    """Create a wish to book a flight, choose a listed flight, or plan a trip.

    The timetable has flights for the wish and its alternatives.
    """
    wish = await _WISHES[kind](chance)
    wish.alternatives = await _alternatives(wish, chance)
    return wish


async def _flight(chance: Random) -> Wish:
    while True:
        origin, destination = chance.sample(sorted(CITIES), 2)
        day = TODAY + timedelta(days=chance.randrange(1, 40))
        values: Values = {"origin": origin, "destination": destination, "date": day.isoformat(), **USUAL}
        if chance.random() < 0.3:
            values["passengers"] = chance.randrange(2, 5)
        if chance.random() < 0.25:
            values["cabin"] = "business"
        if chance.random() < 0.15:
            values["time_of_day"] = chance.choice(["morning", "afternoon", "evening"])
        if await can_be_booked(values):
            return Wish("book", values)


async def _pick(chance: Random) -> Wish:
    wish = await _flight(chance)
    wish.values |= USUAL
    wish.values.pop("time_of_day", None)
    by = chance.choice(["ordinal", "ordinal", "last", "cheapest", "airline", "time", "number"])
    return Wish("pick", wish.values, choice=by) if await can_be_booked(wish.values) else await _pick(chance)


async def _trip(chance: Random) -> Wish:
    while True:
        values = (await _flight(chance)).values
        values.pop("time_of_day", None)
        back = date.fromisoformat(values["date"]) + timedelta(days=chance.randrange(2, 9))
        values["return_date"] = back.isoformat()
        if await can_be_booked(values) and await can_be_booked(way_back(values)):
            return Wish("trip", values)


_WISHES = {"book": _flight, "pick": _pick, "trip": _trip}


async def _alternatives(wish: Wish, chance: Random) -> Values:
    """Return other values by slot, each of which can be booked, even together with one other slot's new value."""
    found: Values = {}
    for slot in ("origin", "destination", "date", "return_date", "passengers", "cabin", "time_of_day"):
        for _ in range(20 if slot in wish.values else 0):
            new = {slot: invent(slot, chance)}
            wanted = [
                {**wish.values, **other, **new} for other in ({}, *({one: found[one]} for one in found))
            ]
            if new[slot] != wish.values[slot] and all([await _can_be_met(wish.kind, one) for one in wanted]):
                found |= new
                break
    return found


async def _can_be_met(kind: str, values: Values) -> bool:
    ways = [values, way_back(values)] if kind == "trip" else [values]
    is_sound = values["origin"] != values["destination"] and values["date"] < values.get(
        "return_date", "9999"
    )
    return is_sound and all([await can_be_booked(way) for way in ways])


async def _booked_and_more(chance: Random) -> list[Wish]:
    flight = await invent_wish("book", chance)
    kind = chance.choice(["cancel", "bags", "seat", "bookings"])
    more: Values = {"cancel": {}, "bookings": {}, "bags": {"bags": chance.randrange(2, 4)},
                    "seat": {"seat": chance.choice(["window", "aisle", "middle"])}}[kind]  # fmt: skip
    return [flight, Wish(kind, dict(more), about=None if kind == "bookings" else flight)]


def _twists(wish: Wish, chance: Random) -> list[tuple[str, str]]:
    drawn: list[tuple[str, str]] = []
    if chance.random() < 0.55 and wish.kind in {"book", "pick", "trip", "bags", "cancel"}:
        drawn.append(("offer", chance.choice(AT_OFFER)))
        if drawn[-1][1] in {"correct", "yes_but"} and chance.random() < 0.4:
            drawn.append(("offer", "stale"))
    if wish.kind == "trip" and chance.random() < 0.4:
        drawn += [("offer", "nothing"), ("offer", chance.choice(["stop", "correct", "aside"]))]
    if chance.random() < 0.2:
        drawn.append(("question", chance.choice(AT_QUESTION)))
    if wish.kind in {"book", "trip", "pick"} and chance.random() < 0.25:
        drawn.append(("done", chance.choice(WHEN_DONE)))
    return drawn


def way_back(values: Values) -> Values:
    turned = {"origin": values["destination"], "destination": values["origin"], "date": values["return_date"]}
    return turned | {slot: values[slot] for slot in ("passengers", "cabin") if slot in values}


def in_hours(departs: str, time_of_day: str) -> bool:
    first, last = HOURS.get(time_of_day, ("00:00", "23:59"))
    return first <= departs <= last


async def can_be_booked(values: Values) -> bool:
    """Return True if there are flights for the values, each with enough free seats."""
    asked = (
        *(values["origin"], values["destination"], values["date"]),
        *(values.get("cabin", "economy"), values.get("time_of_day", "any")),
    )
    if asked not in _FREE:
        _FREE[asked] = await _count_free(*asked)
    return bool(_FREE[asked]) and min(_FREE[asked]) >= values.get("passengers", 1)


async def _count_free(origin: str, destination: str, day: str, cabin: str, hours: str) -> list[int]:
    """Return the number of free seats per flight."""
    flights = await _timetable().search(
        origin, destination, day, now=START.timestamp(), cabin=cabin, passengers=1, time_of_day=hours
    )
    return [flight["free"] for flight in flights]


@cache
def _timetable() -> Timetable:
    return Timetable(MemoryRecords(), airline_names())


def invent(slot: str, chance: Random) -> Any:
    match slot:
        case "origin" | "destination":
            return chance.choice(sorted(CITIES))
        case "date":
            return (TODAY + timedelta(days=chance.randrange(1, 40))).isoformat()
        case "return_date":
            return (TODAY + timedelta(days=chance.randrange(2, 48))).isoformat()
        case "passengers" | "bags":
            return chance.randrange(2, 5)
        case "cabin":
            return chance.choice(["economy", "business"])
        case "seat":
            return chance.choice(["window", "aisle", "middle"])
        case "time_of_day":
            return chance.choice(["morning", "afternoon", "evening"])
        case _:
            return f"QX{chance.randrange(2000, 9999)}"
