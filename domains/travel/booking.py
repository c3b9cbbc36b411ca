"""Tools for bookings. Repeating a call with the same idempotency key has no further effect."""

from __future__ import annotations

from domains.travel.timetable import CURRENCY, Timetable, number_from, route_of
from parley import FailureCategory, JsonObject, Service, ServiceContext, ToolCall, ToolFailure

COLLECTION = "bookings"
_LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""Characters of booking references, without the similar-looking 0, O, 1 and I."""
CHANGE_FEE = 25
BAG_PRICE = 35
SEATS = {"A": "window", "B": "middle", "C": "aisle", "D": "aisle", "E": "middle", "F": "window"}
MOST_BAGS = 5
REFUND_SHARE = 0.8
FREE_CANCELLATION_S = 86400


class Bookings(Service):
    def __init__(self, context: ServiceContext) -> None:
        super().__init__(context)
        self.timetable = Timetable(context.records, context.config["airlines"])

    async def book(self, *, offer_id: str, call: ToolCall, passenger_name: str = "") -> JsonObject:
        """Book an offer. The booking reference is derived from the idempotency key, so a retry finds the booking."""
        flight_id, cabin, passengers = read_offer(offer_id)
        draft = {
            "status": "held",
            "key": call.idempotency_key,
            "owner": call.user_id or "",
            "session": call.home,
            "booked_at": call.now,
            "passenger_name": passenger_name,
            "bags": 0,
            "seat": "",
            "last_change": "",
        }
        booking = await self._create(draft, call.idempotency_key)
        if booking["status"] == "held":
            flight = await self.timetable.hold(flight_id, booking["booking_ref"], cabin, passengers)
            booking = await self._write(
                booking, {"status": "confirmed", **describe(flight, cabin, passengers)}, status="held"
            )
        return view(booking)

    async def outcome(self, *, idempotency_key: str) -> JsonObject:
        """Return whether the call to `book` with this key took effect, and the booking."""
        found = await self.records.find(COLLECTION, {"key": idempotency_key}, limit=1)
        if found and found[0]["status"] != "held":
            return {"status": "done", "data": view(found[0])}
        return {"status": "not_done"}

    async def get(self, *, booking_ref: str, call: ToolCall) -> JsonObject:
        booking = await self._find(booking_ref, call)
        return view(booking) | {"refund": refund(booking, call.now), "bag_price": BAG_PRICE}

    async def review(self, *, booking_ref: str, call: ToolCall, bags: int = 0) -> JsonObject:
        """Return a booking for review. Raises ToolFailure if it can't be changed or have `bags` more bags added."""
        _check_bags(await self._changeable(booking_ref, call), bags)
        return await self.get(booking_ref=booking_ref, call=call)

    async def list(self, *, call: ToolCall) -> JsonObject:
        """Return the caller's active bookings, earliest departure first."""
        where = {"owner": call.user_id} if call.user_id else {"session": call.home}
        found = await self.records.find(COLLECTION, {**where, "status": "confirmed"}, limit=100)
        rows = [view(booking) for booking in sorted(found, key=lambda booking: booking["leaves_at"])]
        return {"bookings": rows, "count": len(rows)} | (
            {"booking_ref": rows[0]["booking_ref"]} if len(rows) == 1 else {}
        )

    async def quote(
        self,
        *,
        booking_ref: str,
        call: ToolCall,
        new_date: str | None = None,
        new_time_of_day: str | None = None,
        new_cabin: str | None = None,
    ) -> JsonObject:
        """Return the new flight and the cost of a change. Values that are None stay as booked.

        The flight with the same number is preferred, then the flight with the closest departure time.
        """
        booking = await self._changeable(booking_ref, call)
        cabin = new_cabin or booking["cabin"]
        flights = await self.timetable.search(
            booking["origin"],
            booking["destination"],
            new_date or booking["day"],
            now=call.now,
            cabin=cabin,
            passengers=booking["passengers"],
            time_of_day=new_time_of_day or "any",
            without=booking_ref,
        )
        if not flights:
            message = "No seats are available for that change. Another day, time or cabin may work."
            raise ToolFailure(FailureCategory.NOT_FOUND, message)
        same = [flight for flight in flights if flight["flight_number"] == booking["flight_number"]]
        flights.sort(key=lambda flight: (_gap(flight["departs"], booking["departs"]), flight["departs"]))
        flight = (same or flights)[0]
        if (flight["flight_id"], cabin) == (booking["flight_id"], booking["cabin"]):
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, "It's already booked that way.")
        return _describe_change(booking, flight, cabin)

    async def modify(self, *, booking_ref: str, offer_id: str, call: ToolCall) -> JsonObject:
        booking = await self._find(booking_ref, call)
        if booking["last_change"] != call.idempotency_key:
            booking = await self._changeable(booking_ref, call)
            flight_id, cabin, passengers = read_offer(offer_id)
            flight = await self.timetable.hold(flight_id, booking_ref, cabin, passengers)
            dearer = max(0, flight["prices"][cabin] * passengers - booking["price"])
            changes = {
                **describe(flight, cabin, passengers),
                "seat": "",
                "previous_flight_id": booking["flight_id"],
                "paid": booking["paid"] + CHANGE_FEE + dearer,
            }
            booking = await self._change(booking, changes, call)
        previous = booking["previous_flight_id"]
        if route_of(previous) != route_of(booking["flight_id"]):
            await self.timetable.release(previous, booking_ref)
        return view(booking)

    async def cancel(self, *, booking_ref: str, call: ToolCall) -> JsonObject:
        booking = await self._find(booking_ref, call)
        if booking["last_change"] != call.idempotency_key:
            booking = await self._changeable(booking_ref, call)
            changes = {"status": "cancelled", "refunded": refund(booking, call.now)}
            booking = await self._change(booking, changes, call)
        await self.timetable.release(booking["flight_id"], booking_ref)
        return view(booking) | {"refund": booking["refunded"]}

    async def add_bags(self, *, booking_ref: str, bags: int, call: ToolCall) -> JsonObject:
        booking = await self._find(booking_ref, call)
        if booking["last_change"] != call.idempotency_key:
            booking = await self._changeable(booking_ref, call)
            _check_bags(booking, bags)
            changes = {"bags": booking["bags"] + bags, "paid": booking["paid"] + bags * BAG_PRICE}
            booking = await self._change(booking, changes, call)
        return view(booking) | {"bag_price": BAG_PRICE, "added": bags, "added_price": bags * BAG_PRICE}

    async def assign_seat(
        self, *, booking_ref: str, call: ToolCall, seat_position: str | None = None, seat: str | None = None
    ) -> JsonObject:
        """Assign `seat` or, if it is None, a seat in the position `seat_position`. Default: a window seat."""
        booking = await self._find(booking_ref, call)
        if booking["last_change"] != call.idempotency_key:
            booking = await self._changeable(booking_ref, call)
            row = 4 + number_from("row", booking_ref, booking["flight_id"]) % 26
            free = next((letter for letter, where in SEATS.items() if where == seat_position), "A")
            booking = await self._change(booking, {"seat": seat.upper() if seat else f"{row}{free}"}, call)
        return view(booking) | {"seat_position": SEATS[booking["seat"][-1]]}

    async def _change(self, booking: JsonObject, changes: JsonObject, call: ToolCall) -> JsonObject:
        """Change a confirmed booking, and record the call so that a retry doesn't repeat the change."""
        return await self._write(
            booking, {**changes, "last_change": call.idempotency_key}, status="confirmed"
        )

    async def _create(self, draft: JsonObject, key: str) -> JsonObject:
        """Store the draft under a new booking reference, or return the booking that an earlier attempt stored."""
        for number in range(20):
            booking_ref = make_reference(key, number)
            stored = await self.records.create(
                COLLECTION, booking_ref, {**draft, "booking_ref": booking_ref, "version": 0}
            )
            if stored["key"] == key:
                return stored
        message = "No free booking reference was found; please try again."
        raise ToolFailure(FailureCategory.SERVER_ERROR, message)

    async def _find(self, booking_ref: str, call: ToolCall) -> JsonObject:
        """Return a booking that belongs to the calling user or to no user. Raises ToolFailure if there is none."""
        booking = await self.records.get(COLLECTION, booking_ref.upper())
        if booking is None or booking["status"] == "held" or booking["owner"] not in {"", call.user_id}:
            message = f"I can't find booking {booking_ref.upper()}. Please check the reference."
            raise ToolFailure(FailureCategory.NOT_FOUND, message)
        return booking

    async def _changeable(self, booking_ref: str, call: ToolCall) -> JsonObject:
        booking = await self._find(booking_ref, call)
        message = ""
        if booking["status"] == "cancelled":
            message = f"Booking {booking_ref} is already canceled."
        elif booking["leaves_at"] <= call.now:
            message = f"The flight for booking {booking_ref} has already departed."
        if message:
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        return booking

    async def _write(self, booking: JsonObject, changes: JsonObject, *, status: str) -> JsonObject:
        """Write changes to a booking that has this status, and return the booking.

        If an earlier attempt at the call wrote the changes, return the current booking. Raises ToolFailure if
        another call has changed the booking since it was read.
        """
        where = {"status": status, "version": booking["version"]}
        changes = {**changes, "version": booking["version"] + 1}
        written = await self.records.update(COLLECTION, booking["booking_ref"], changes, where=where)
        if written is not None:
            return written
        current = await self.records.get(COLLECTION, booking["booking_ref"])
        change = changes.get("last_change", "")
        if current is not None and current["status"] != "held" and current["last_change"] == change:
            return current
        message = "The booking has changed in the meantime; please check it again."
        raise ToolFailure(FailureCategory.SERVER_ERROR, message)


def make_reference(key: str, number: int) -> str:
    """Derive a booking reference from an idempotency key: six characters with at least one letter and one digit.

    `number`: the number of earlier attempts whose references were taken.
    """
    value = number_from("reference", key, number)
    letters = [_LETTERS[value >> 5 * index & 31] for index in range(6)]
    letters[0] = _LETTERS[8 + (value >> 30) % 24]
    letters[2 + (value >> 40) % 4] = _LETTERS[(value >> 50) % 8]
    return "".join(letters)


def read_offer(offer_id: str) -> tuple[str, str, int]:
    flight_id, cabin, passengers = offer_id.split(":")
    return flight_id, cabin, int(passengers)


def describe(flight: JsonObject, cabin: str, passengers: int) -> JsonObject:
    price = flight["prices"][cabin] * passengers
    shown = ("flight_id", "flight_number", "origin", "destination", "day", "departs", "arrives", "leaves_at")
    return {
        **{name: flight[name] for name in shown},
        "cabin": cabin,
        "passengers": passengers,
        "price": price,
        "paid": price,
        "currency": CURRENCY,
    }


def view(booking: JsonObject) -> JsonObject:
    hidden = {"key", "owner", "session", "version", "last_change", "previous_flight_id", "leaves_at"}
    return {name: value for name, value in booking.items() if name not in hidden}


def refund(booking: JsonObject, now: float) -> int:
    """Return the refund for canceling a booking at `now`, in whole units of `CURRENCY`.

    Within a day of booking, the refund is the paid amount. Later, it is `REFUND_SHARE` of this amount, and 0 after
    departure.
    """
    if booking["status"] != "confirmed" or now >= booking["leaves_at"]:
        return 0
    is_free = now - booking["booked_at"] < FREE_CANCELLATION_S
    return booking["paid"] if is_free else round(booking["paid"] * REFUND_SHARE)


def _check_bags(booking: JsonObject, more: int) -> None:
    if booking["bags"] + more > MOST_BAGS * booking["passengers"]:
        at_most = f"At most {MOST_BAGS} bags per passenger can be checked in"
        message = f"{at_most}; {booking['bags']} are booked."
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)


def _describe_change(booking: JsonObject, flight: JsonObject, cabin: str) -> JsonObject:
    after = describe(flight, cabin, booking["passengers"])
    return {
        **{name: booking[name] for name in ("booking_ref", "origin", "destination")},
        **{f"old_{name}": booking[name] for name in ("day", "departs", "flight_number", "cabin")},
        **{name: after[name] for name in ("day", "departs", "arrives", "flight_number", "cabin")},
        "offer_id": f"{flight['flight_id']}:{cabin}:{booking['passengers']}",
        "fee": CHANGE_FEE,
        "to_pay": CHANGE_FEE + max(0, after["price"] - booking["price"]),
        "currency": CURRENCY,
    }


def _gap(one: str, other: str) -> int:
    """Return the number of minutes between two times of day."""
    hours, minutes = zip(*(map(int, clock.split(":")) for clock in (one, other)), strict=True)
    return abs((hours[0] - hours[1]) * 60 + minutes[0] - minutes[1])
