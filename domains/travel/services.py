"""The travel services and entity providers, which simulate an airline.

All state is in the domain's records; nothing is kept in memory between calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from domains.travel.airports import airports
from domains.travel.booking import Bookings
from domains.travel.reminders import Reminders
from domains.travel.timetable import CURRENCY, HOURS, Timetable, number_from
from parley import (
    Documents,
    FailureCategory,
    JsonObject,
    Memory,
    Service,
    ServiceContext,
    ToolCall,
    ToolFailure,
)

__all__ = ["Bookings", "Documents", "Flights", "Memory", "Reminders", "airports"]

FARES_KEPT = 5
"""Maximum number of fares that `Flights.search` returns for `Flights.compare`."""


@dataclass(frozen=True, slots=True)
class Pair:
    """IDs of an outbound and a return flight, with prices per passenger. `total`: price for all passengers."""

    there: str
    back: str
    there_price: float
    back_price: float
    total: float


def _booked(fares: dict[str, float], flight_id: str | None) -> dict[str, float]:
    """Return a booked flight's fare, by flight ID. The fare is 0 if `fares` lacks the flight.

    Return an empty dictionary if no flight is booked, or if it isn't on the route and day of `fares`.
    """
    route = (flight_id or "").rpartition("-")[0]
    of_that_day = any(one.rpartition("-")[0] == route for one in fares)
    return {flight_id: fares.get(flight_id, 0.0)} if flight_id and of_that_day else {}


def _cheapest(
    outbound: dict[str, float], back: dict[str, float], known: dict[str, JsonObject], passengers: int
) -> Pair:
    """Return the cheapest pair whose return flight leaves after the outbound flight has landed.

    `outbound` and `back`: fares by flight ID. `known`: the flights by ID. Raises ToolFailure if there is no pair.
    """
    pairs = [
        Pair(first, last, outbound[first], back[last], (outbound[first] + back[last]) * passengers)
        for first in outbound
        for last in back
        if known[first]["lands_at"] < known[last]["leaves_at"]
    ]
    if not pairs:
        raise ToolFailure(
            FailureCategory.NOT_FOUND, "No return flight leaves after an outbound flight arrives."
        )
    return min(pairs, key=lambda pair: pair.total)


class Flights(Service):
    def __init__(self, context: ServiceContext) -> None:
        super().__init__(context)
        self.timetable = Timetable(context.records, context.config["airlines"])
        self.airline_names = context.config["names"]

    async def search(
        self,
        *,
        origin: str,
        destination: str,
        day: str,
        call: ToolCall,
        cabin: str = "economy",
        passengers: int = 1,
        time_of_day: str = "any",
        max_price: float | None = None,
    ) -> JsonObject:
        """Return matching flights, cheapest first. `max_price`: maximum price per passenger, in `CURRENCY`.

        The result's `flight_id` and `from_price` belong to the cheapest flight.
        """
        flights = await self.timetable.search(
            origin,
            destination,
            day,
            now=call.now,
            cabin=cabin,
            passengers=passengers,
            time_of_day=time_of_day,
        )
        rows = [self._row(one, cabin) for one in flights if max_price is None or one["price"] <= max_price]
        found: JsonObject = {
            "flights": rows,
            "count": len(rows),
            "currency": CURRENCY,
            "passengers": passengers,
        }
        if rows:
            found["flight_id"], found["from_price"] = rows[0]["flight_id"], rows[0]["price"]
            found["fares"] = {row["flight_id"]: row["price"] for row in rows[:FARES_KEPT]}
        return found

    async def compare(
        self,
        *,
        outbound_fares: dict[str, float],
        return_fares: dict[str, float],
        outbound_id: str | None = None,
        return_id: str | None = None,
        other_outbound_fares: dict[str, float] | None = None,
        other_return_fares: dict[str, float] | None = None,
        other_date: str | None = None,
        other_return_date: str | None = None,
        passengers: int = 1,
        budget: float | None = None,
    ) -> JsonObject:
        """Return the cheapest pair of flights with the total for all passengers.

        Fares are by flight ID. Alternative days are considered only if the cheapest pair on the requested days
        exceeds the budget. The result's `wanted_total` is the total on the requested days. `outbound_id` and
        `return_id`: flights that are already booked, which are kept.
        """
        if not outbound_fares or not return_fares:
            raise ToolFailure(FailureCategory.NOT_FOUND, "There are no flights to choose from.")
        booked = _booked(outbound_fares, outbound_id), _booked(return_fares, return_id)
        outbound_fares, return_fares = booked[0] or outbound_fares, booked[1] or return_fares
        others = (other_outbound_fares or {}) | (other_return_fares or {})
        known = await self.timetable.flights([*outbound_fares, *return_fares, *others])
        wanted = _cheapest(outbound_fares, return_fares, known, passengers)
        chosen = wanted
        if budget is not None and wanted.total > budget:
            there = outbound_fares | ((other_outbound_fares or {}) if other_date and not booked[0] else {})
            back = return_fares | ((other_return_fares or {}) if other_return_date and not booked[1] else {})
            chosen = _cheapest(there, back, known, passengers)
        return {
            "outbound_id": chosen.there,
            "return_id": chosen.back,
            "outbound": self._describe(known[chosen.there], chosen.there_price) | {"booked": bool(booked[0])},
            "return": self._describe(known[chosen.back], chosen.back_price) | {"booked": bool(booked[1])},
            "total": chosen.total,
            "wanted_total": wanted.total,
            "over_budget": budget is not None and chosen.total > budget,
            "currency": CURRENCY,
        }

    def _describe(self, flight: JsonObject, price: float) -> JsonObject:
        shown = {name: flight[name] for name in ("flight_number", "departs", "arrives", "day")}
        return {**shown, "airline": self._airline_of(flight), "price": price}

    def _airline_of(self, flight: JsonObject) -> str:
        code = flight["flight_number"][:2]
        return self.airline_names.get(code, code)

    async def offer(
        self,
        *,
        origin: str,
        destination: str,
        day: str,
        call: ToolCall,
        cabin: str = "economy",
        passengers: int = 1,
        time_of_day: str = "any",
        flight_number: str | None = None,
        flight_id: str | None = None,
    ) -> JsonObject:
        """Return a flight with an offer ID to book it.

        With `flight_number`, only this flight is offered. The flight `flight_id` is preferred to the cheapest
        flight at the `time_of_day`. Raises ToolFailure if no flight matches.
        """
        number = flight_number.replace(" ", "") if flight_number is not None else None
        flights = await self.timetable.search(
            origin, destination, day, now=call.now, cabin=cabin, passengers=passengers
        )
        first, last = HOURS.get(time_of_day, ("00:00", "23:59"))
        fitting = [one for one in flights if first <= one["departs"] <= last]
        if number is not None:
            fitting = [one for one in flights if one["flight_number"] == number]
        named = [one for one in flights if one["flight_id"] == flight_id]
        chosen = next(iter((named if number is None else []) or fitting), None)
        if chosen is None:
            raise ToolFailure(FailureCategory.NOT_FOUND, _nothing_to_offer(flight_number, time_of_day, cabin))
        flight = self._row(chosen, cabin)
        return flight | {
            "offer_id": f"{flight['flight_id']}:{cabin}:{passengers}",
            "passengers": passengers,
            "total": flight["price"] * passengers,
        }

    async def status(
        self,
        *,
        call: ToolCall,
        flight_number: str | None = None,
        booking_ref: str | None = None,
        day: str | None = None,
    ) -> JsonObject:
        """Return a flight's status.

        The flight is identified by its booking, or by its number and day. Default for `day`: today (UTC).
        """
        if booking_ref is not None:
            booking = await self.records.get("bookings", booking_ref)
            if booking is None:
                raise ToolFailure(FailureCategory.NOT_FOUND, f"There's no booking {booking_ref}.")
            flight = await self.timetable.flight(booking["flight_id"])
        else:
            today = datetime.fromtimestamp(call.now, UTC).date().isoformat()
            number = (flight_number or "").replace(" ", "")
            flight = await self.timetable.find_number(number, day or today)
        return self._report(flight, call.now)

    def _report(self, flight: JsonObject, now: float) -> JsonObject:
        delay = max(0, number_from("delay", flight["flight_id"]) % 100 - 70)
        leaves, lands = flight["leaves_at"] + delay * 60, flight["lands_at"] + delay * 60
        if now >= lands:
            state = "landed"
        elif now >= leaves:
            state = "in the air"
        elif now >= leaves - 2400:
            state = "boarding"
        else:
            state = "delayed" if delay and now >= leaves - 86400 else "on time"
        pier, gate = (number_from(what, flight["flight_id"]) for what in ("pier", "gate"))
        shown = ("flight_number", "origin", "destination", "day", "departs", "arrives")
        return {
            **{name: flight[name] for name in shown},
            "state": state,
            "delay_minutes": delay if state != "on time" else 0,
            "gate": f"{'ABCDE'[pier % 5]}{gate % 40 + 1}",
        }

    def _row(self, flight: JsonObject, cabin: str) -> JsonObject:
        shown = ("flight_id", "flight_number", "origin", "destination", "day", "departs", "arrives")
        return {
            **{name: flight[name] for name in (*shown, "arrival_day", "minutes", "price")},
            "airline": self._airline_of(flight),
            "cabin": cabin,
            "currency": CURRENCY,
            "seats": flight["free"],
        }


def _nothing_to_offer(flight_number: str | None, time_of_day: str, cabin: str) -> str:
    if flight_number is not None:
        return f"There's no flight {flight_number} with available {cabin} seats on that day."
    when = f" in the {time_of_day}" if time_of_day in HOURS else ""
    return f"No {cabin} seats are available{when} on that day. Another day or cabin may work."
