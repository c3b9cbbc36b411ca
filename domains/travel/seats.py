"""Store the timetable: a document per route and day, with the seats that bookings hold in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from domains.travel.airports import Airport
from domains.travel.timetable import make_timetable
from orchestrator import FailureCategory, JsonObject, Records, ToolFailure

COLLECTION = "timetable"
MOST_ATTEMPTS = 50
"""Of writing a document that others are writing too."""


CROWDED = "Too many people are booking this flight; please try again."


class Timetable:
    """The flights of each route and day, each with the seats that bookings hold."""

    def __init__(self, records: Records, airlines: Mapping[str, Sequence[str]]) -> None:
        self._records = records
        self._airlines = airlines

    async def open(self, origin: Airport, destination: Airport, day: date) -> JsonObject:
        """Give the flights of a route on a day; they are made and stored when first asked for."""
        key = f"{origin.code}-{destination.code}-{day.isoformat()}"
        stored = await self._records.get(COLLECTION, key)
        if stored is not None:
            return stored
        flights = make_timetable(origin, destination, day, self._airlines)
        document = {"route": key, "day": day.isoformat(), "flights": flights, "holds": {}, "version": 0}
        return await self._records.create(COLLECTION, key, document)

    async def find_number(self, flight_number: str, day: str) -> JsonObject | None:
        """Find the flight of this number on a day, among those that anyone has looked at."""
        documents = await self._records.find(COLLECTION, {"day": day}, limit=5000)
        flights = (flight for document in documents for flight in document["flights"])
        return next((flight for flight in flights if flight["flight_number"] == flight_number), None)

    async def hold(self, flight_id: str, booking_ref: str, cabin: str, passengers: int) -> JsonObject:
        """Give seats to a booking, in the place of those it had on this route and day; returns the flight.

        Doing it again changes nothing.
        """
        wanted = {"flight_id": flight_id, "cabin": cabin, "passengers": passengers}
        for _ in range(MOST_ATTEMPTS):
            document = await self._load(flight_id)
            flight = find_flight(document, flight_id)
            if document["holds"].get(booking_ref) == wanted:
                return flight
            if free_seats(document, flight, cabin, without=booking_ref) < passengers:
                several = f"There are no longer {passengers} {cabin} seats"
                message = f"{several if passengers > 1 else 'The seat is gone'} on {flight['flight_number']}."
                raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
            if await self._write(document, {**document["holds"], booking_ref: wanted}):
                return flight
        raise ToolFailure(FailureCategory.SERVER_ERROR, CROWDED)

    async def release(self, flight_id: str, booking_ref: str) -> None:
        """Take a booking's seats on this flight back; doing it again changes nothing."""
        for _ in range(MOST_ATTEMPTS):
            document = await self._load(flight_id)
            holds = dict(document["holds"])
            if holds.get(booking_ref, {}).get("flight_id") != flight_id:
                return
            del holds[booking_ref]
            if await self._write(document, holds):
                return
        raise ToolFailure(FailureCategory.SERVER_ERROR, CROWDED)

    async def _load(self, flight_id: str) -> JsonObject:
        document = await self._records.get(COLLECTION, route_of(flight_id))
        if document is None:
            raise ToolFailure(FailureCategory.NOT_FOUND, "That flight is not in the timetable.")
        return document

    async def _write(self, document: JsonObject, holds: JsonObject) -> bool:
        """Write the holds unless somebody else has written meanwhile."""
        changes = {"holds": holds, "version": document["version"] + 1}
        where = {"version": document["version"]}
        return await self._records.update(COLLECTION, document["route"], changes, where=where) is not None


def route_of(flight_id: str) -> str:
    """Name the document that has a flight: ``OSL-MAD-2026-11-21`` of ``OSL-MAD-2026-11-21-SK1465``."""
    return flight_id.rpartition("-")[0]


def find_flight(document: JsonObject, flight_id: str) -> JsonObject:
    for flight in document["flights"]:
        if flight["flight_id"] == flight_id:
            return flight
    raise ToolFailure(FailureCategory.NOT_FOUND, "That flight is not in the timetable.")


def free_seats(document: JsonObject, flight: JsonObject, cabin: str, *, without: str = "") -> int:
    """Count the seats left; those that the booking `without` holds count as free."""
    held = sum(
        hold["passengers"]
        for booking_ref, hold in document["holds"].items()
        if hold["flight_id"] == flight["flight_id"] and hold["cabin"] == cabin and booking_ref != without
    )
    return flight["seats"][cabin] - held
