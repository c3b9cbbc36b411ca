"""A simulated timetable that tracks the seats held by bookings.

Flights are derived from the route and day by hashing. One document per route and day stores the flights and the
held seats.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from operator import itemgetter

from domains.travel.airports import Airport, distance_km, find_airport
from parley import FailureCategory, JsonObject, Records, ToolFailure

COLLECTION = "timetable"
CABINS: Mapping[str, tuple[float, int]] = {"economy": (1.0, 60), "premium": (1.7, 12), "business": (2.9, 8)}
"""Price factor and maximum number of seats per flight, by cabin."""
CURRENCY = "EUR"
HOURS = {"morning": ("00:00", "11:59"), "afternoon": ("12:00", "17:59"), "evening": ("18:00", "23:59")}
SALE_DAYS = 360
"""Maximum number of days before departure that a flight can be found and booked."""
MOST_ATTEMPTS = 50
"""Maximum number of attempts to update a document that concurrent calls keep changing."""
_SHORTEST_KM = 80
_SPEED_KM_PER_HOUR = 780
_GROUND_MINUTES = 35


class Timetable:
    """The flights of each route and day. `airlines`: airline codes by country, or by ``*`` for other countries."""

    def __init__(self, records: Records, airlines: Mapping[str, Sequence[str]]) -> None:
        self._records = records
        self._airlines = airlines

    async def search(
        self,
        origin: str,
        destination: str,
        day: str,
        *,
        now: float,
        cabin: str,
        passengers: int,
        time_of_day: str = "any",
        without: str = "",
    ) -> list[JsonObject]:
        """Return flights that have not left and have enough seats, cheapest first.

        Each flight has its `price` and number of `free` seats. Seats held by the booking `without` count as free.
        The first search for a route and day creates the flights.
        """
        departure, arrival = find_airport(origin), find_airport(destination)
        if departure.code == arrival.code:
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, "A flight needs two different airports.")
        wanted = _check_day(day, departure, now)
        route = f"{departure.code}-{arrival.code}-{wanted.isoformat()}"
        document = await self._records.get(COLLECTION, route)
        if document is None:
            flights = _make_flights(departure, arrival, wanted, self._airlines)
            draft = {"route": route, "day": wanted.isoformat(), "flights": flights, "holds": {}, "version": 0}
            document = await self._records.create(COLLECTION, route, draft)
        if not document["flights"]:
            message = (
                f"These airports are less than {_SHORTEST_KM} km apart; there are no flights between them."
            )
            raise ToolFailure(FailureCategory.NOT_FOUND, message)
        first, last = HOURS.get(time_of_day, ("00:00", "23:59"))
        held = _count_held(document, cabin, without)
        rows = [
            {
                **flight,
                "price": flight["prices"][cabin],
                "free": flight["seats"][cabin] - held.get(flight["flight_id"], 0),
            }
            for flight in document["flights"]
            if flight["leaves_at"] > now and first <= flight["departs"] <= last
        ]
        fitting = [row for row in rows if row["free"] >= passengers]
        return sorted(fitting, key=itemgetter("price", "departs"))

    async def flight(self, flight_id: str) -> JsonObject:
        """Return a flight that an earlier search created.

        Raises:
            ToolFailure: not_found if the flight does not exist.
        """
        return _find(await self._load(flight_id), flight_id)

    async def flights(self, flight_ids: Sequence[str]) -> dict[str, JsonObject]:
        """Return flights that earlier searches created, by ID.

        Raises:
            ToolFailure: not_found if a flight does not exist.
        """
        one_of_each = {route_of(flight_id): flight_id for flight_id in flight_ids}
        documents = {route: await self._load(flight_id) for route, flight_id in one_of_each.items()}
        return {one: _find(documents[route_of(one)], one) for one in flight_ids}

    async def find_number(self, flight_number: str, day: str) -> JsonObject:
        """Return the flight with this number on this day, if an earlier search created the flight.

        Raises:
            ToolFailure: not_found if the flight does not exist.
        """
        documents = await self._records.find(COLLECTION, {"day": day}, limit=5000)
        for document in documents:
            for flight in document["flights"]:
                if flight["flight_number"] == flight_number:
                    return flight
        message = f"I don't know flight {flight_number} on {_show_day(date.fromisoformat(day))}."
        raise ToolFailure(FailureCategory.NOT_FOUND, message)

    async def hold(self, flight_id: str, booking_ref: str, cabin: str, passengers: int) -> JsonObject:
        """Reserve seats on a flight for a booking, and return the flight. Idempotent.

        An earlier reservation of the booking on this route and day is replaced. Raises ToolFailure if there are
        not enough seats.
        """
        wanted = {"flight_id": flight_id, "cabin": cabin, "passengers": passengers}
        for _ in range(MOST_ATTEMPTS):
            document = await self._load(flight_id)
            flight = _find(document, flight_id)
            if document["holds"].get(booking_ref) == wanted:
                return flight
            if flight["seats"][cabin] - _count_held(document, cabin, booking_ref)[flight_id] < passengers:
                left = f"are no longer {passengers} free" if passengers > 1 else "are no more free"
                message = f"There {left} {cabin} seats on {flight['flight_number']}."
                raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
            if await self._write(document, {**document["holds"], booking_ref: wanted}):
                return flight
        raise _crowded()

    async def release(self, flight_id: str, booking_ref: str) -> None:
        """Release the seats that a booking holds on this flight. Idempotent."""
        for _ in range(MOST_ATTEMPTS):
            document = await self._load(flight_id)
            holds = dict(document["holds"])
            if holds.get(booking_ref, {}).get("flight_id") != flight_id:
                return
            del holds[booking_ref]
            if await self._write(document, holds):
                return
        raise _crowded()

    async def _load(self, flight_id: str) -> JsonObject:
        document = await self._records.get(COLLECTION, route_of(flight_id))
        if document is None:
            raise _unknown()
        return document

    async def _write(self, document: JsonObject, holds: JsonObject) -> bool:
        """Write the holds. Return False if the document has changed since it was read."""
        changes = {"holds": holds, "version": document["version"] + 1}
        where = {"version": document["version"]}
        return await self._records.update(COLLECTION, document["route"], changes, where=where) is not None


def route_of(flight_id: str) -> str:
    """Return the document ID of a flight: ``OSL-MAD-2026-11-21`` for ``OSL-MAD-2026-11-21-SK1465``."""
    return flight_id.rpartition("-")[0]


def number_from(*parts: object) -> int:
    text = "|".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _find(document: JsonObject, flight_id: str) -> JsonObject:
    for flight in document["flights"]:
        if flight["flight_id"] == flight_id:
            return flight
    raise _unknown()


def _count_held(document: JsonObject, cabin: str, without: str) -> Counter[str]:
    held: Counter[str] = Counter()
    for booking_ref, hold in document["holds"].items():
        if hold["cabin"] == cabin and booking_ref != without:
            held[hold["flight_id"]] += hold["passengers"]
    return held


def _check_day(day: str, airport: Airport, now: float) -> date:
    """Parse a day of departure.

    Raises ToolFailure if the day is invalid, in the past in the airport's time zone, or not on sale yet.
    """
    try:
        wanted = date.fromisoformat(day)
    except ValueError:
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"{day!r} is not a valid date.") from None
    today = datetime.fromtimestamp(now, airport.zone).date()
    last = today + timedelta(days=SALE_DAYS)
    if wanted < today:
        message = f"{_show_day(wanted)} is in the past; please choose today or a later day."
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
    if wanted > last:
        message = f"Flights are on sale until {_show_day(last)}; {_show_day(wanted)} is too far ahead."
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
    return wanted


def _show_day(day: date) -> str:
    return f"{day:%A} {day.day} {day:%B} {day.year}"


def _unknown() -> ToolFailure:
    return ToolFailure(FailureCategory.NOT_FOUND, "That flight is not in the timetable.")


def _crowded() -> ToolFailure:
    message = "Too many people are booking this flight; please try again."
    return ToolFailure(FailureCategory.SERVER_ERROR, message)


def _make_flights(
    origin: Airport, destination: Airport, day: date, airlines: Mapping[str, Sequence[str]]
) -> list[JsonObject]:
    """Create a day's flights, earliest departure first. Very short routes have no flights."""
    length = distance_km(origin, destination)
    if length < _SHORTEST_KM:
        return []
    at_home, abroad = airlines.get(origin.country, ()), airlines.get(destination.country, ())
    carriers = list(dict.fromkeys([*at_home, *abroad])) or list(airlines["*"])
    count = 3 + number_from("count", origin.code, destination.code) % 3
    first, last = 6 * 60 + 10, 21 * 60 + 30
    slot = (last - first) // count // 5 * 5
    flights: list[JsonObject] = []
    for index in range(count):
        line = number_from("line", origin.code, destination.code, index)
        minute = first + slot * index + line // 11 % slot // 5 * 5
        leaves = datetime.combine(day, time(minute // 60, minute % 60), origin.zone)
        number = f"{carriers[line % len(carriers)]}{100 + line // 7 % 9800}"
        flights.append(_make_flight((origin, destination), number, leaves, length, line))
    return sorted(flights, key=lambda flight: (flight["departs"], flight["flight_number"]))


def _make_flight(
    route: tuple[Airport, Airport], flight_number: str, leaves: datetime, length: float, line: int
) -> JsonObject:
    """Create one flight. `length`: distance in km. `line`: seed for prices and seats."""
    origin, destination = route
    day = leaves.date()
    minutes = round((length / _SPEED_KM_PER_HOUR * 60 + _GROUND_MINUTES) / 5) * 5
    arrives = (leaves.astimezone(UTC) + timedelta(minutes=minutes)).astimezone(destination.zone)
    return {
        "flight_id": f"{origin.code}-{destination.code}-{day.isoformat()}-{flight_number}",
        "flight_number": flight_number,
        "origin": origin.code,
        "destination": destination.code,
        "day": day.isoformat(),
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
    """Return the price per passenger by cabin, in whole units of `CURRENCY`. Fridays and Sundays cost more."""
    base = 38 + 0.062 * length
    mood = 0.8 + number_from("price", line, day) % 60 / 100
    weekend = 1.15 if day.weekday() in {4, 6} else 1.0
    return {cabin: round(base * mood * weekend * factor) for cabin, (factor, _) in CABINS.items()}
