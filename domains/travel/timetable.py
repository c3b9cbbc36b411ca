"""Make up which flights leave on a day, when and at which price; always the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from domains.travel.airports import Airport, distance_km
from orchestrator import JsonObject

CABINS: Mapping[str, tuple[float, int]] = {"economy": (1.0, 60), "premium": (1.7, 12), "business": (2.9, 8)}
"""Price factor, and the seats on sale of a flight."""
CURRENCY = "EUR"
SHORTEST_KM = 80
_SPEED_KM_PER_HOUR = 780
_GROUND_MINUTES = 35


def number_from(*parts: object) -> int:
    """Make a large number that depends on nothing but the parts."""
    text = "|".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def make_timetable(
    origin: Airport, destination: Airport, day: date, airlines: Mapping[str, Sequence[str]]
) -> list[JsonObject]:
    """Make the flights of one day, first departure first; none where the way is too short to fly.

    `airlines`: their codes by country, and those that fly anywhere by ``*``.
    """
    if distance_km(origin, destination) < SHORTEST_KM:
        return []
    at_home, abroad = airlines.get(origin.country, ()), airlines.get(destination.country, ())
    carriers = list(dict.fromkeys([*at_home, *abroad])) or list(airlines["*"])
    count = 3 + number_from("count", origin.code, destination.code) % 3
    flights = [_make_flight((origin, destination), day, carriers, index, count) for index in range(count)]
    return sorted(flights, key=lambda flight: (flight["departs"], flight["flight_number"]))


def _make_flight(
    route: tuple[Airport, Airport], day: date, carriers: Sequence[str], index: int, count: int
) -> JsonObject:
    """Make one of the `count` daily flights; they are spread over the day."""
    origin, destination = route
    length = distance_km(origin, destination)
    line = number_from("line", origin.code, destination.code, index)
    flight_number = f"{carriers[line % len(carriers)]}{100 + line // 7 % 9800}"
    first, last = 6 * 60 + 10, 21 * 60 + 30
    slot = (last - first) // count // 5 * 5
    minute = first + slot * index + line // 11 % slot // 5 * 5
    leaves = datetime.combine(day, time(minute // 60, minute % 60), ZoneInfo(origin.timezone))
    minutes = round((length / _SPEED_KM_PER_HOUR * 60 + _GROUND_MINUTES) / 5) * 5
    arrives = (leaves.astimezone(UTC) + timedelta(minutes=minutes)).astimezone(ZoneInfo(destination.timezone))
    return {
        "flight_id": f"{origin.code}-{destination.code}-{day.isoformat()}-{flight_number}",
        "flight_number": flight_number,
        "departs": leaves.strftime("%H:%M"),
        "arrives": arrives.strftime("%H:%M"),
        "arrival_day": arrives.date().isoformat(),
        "leaves_at": leaves.timestamp(),
        "lands_at": arrives.timestamp(),
        "minutes": minutes,
        "prices": _make_prices(length, day, line),
        "seats": {
            cabin: 1 + number_from("seats", line, day, cabin) % most for cabin, (_, most) in CABINS.items()
        },
    }


def _make_prices(length: float, day: date, line: int) -> dict[str, int]:
    """Set prices in whole units of CURRENCY, per passenger; weekends cost more."""
    base = 38 + 0.062 * length
    mood = 0.8 + number_from("price", line, day) % 60 / 100
    weekend = 1.15 if day.weekday() in {4, 6} else 1.0
    return {cabin: round(base * mood * weekend * factor) for cabin, (factor, _) in CABINS.items()}
