"""The travel domain's services over in-memory records: a stable timetable, and bookings made once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial

import pytest

from domains.travel.booking import Bookings, make_reference
from domains.travel.services import Flights
from orchestrator.adapters.domains.folder import load_domain
from orchestrator.domain.services import ServiceContext, ToolCall
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, UserId
from parley.testing.memory import MemoryRecords
from tests.cases import for_each

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC).timestamp()
CALL = ToolCall("turn_1:tool:flight_book:1", SessionId("s1"), None, DEFAULT_TENANT, NOW)
TOMORROW = "2026-11-21"
WANTED: JsonObject = {"origin": "OSL", "destination": "MAD", "day": TOMORROW}
travel = partial(cache(load_domain), "travel")


def make(records: MemoryRecords) -> tuple[Flights, Bookings]:
    config = travel().domain.config.services
    flights = Flights(ServiceContext(records, dict(config["Flights"])))
    return flights, Bookings(ServiceContext(records, dict(config["Bookings"])))


async def search(flights: Flights, **changes: object) -> JsonObject:
    return await flights.search(**WANTED | changes, call=CALL)  # type: ignore[arg-type]


async def offer(flights: Flights, **changes: object) -> JsonObject:
    return await flights.offer(**WANTED | changes, call=CALL)  # type: ignore[arg-type]


async def book(records: MemoryRecords, call: ToolCall = CALL, **changes: object) -> JsonObject:
    flights, bookings = make(records)
    return await bookings.book(offer_id=(await offer(flights, **changes))["offer_id"], call=call)


async def seats_left(records: MemoryRecords, flight_number: str, **changes: object) -> int:
    rows = (await search(make(records)[0], **changes))["flights"]
    return next(row["seats"] for row in rows if row["flight_number"] == flight_number)


async def test_the_cheapest_flight_comes_first_and_is_the_one_offered() -> None:
    flights, _ = make(MemoryRecords())
    found = await search(flights)
    prices = [row["price"] for row in found["flights"]]

    assert prices == sorted(prices)
    assert found["count"] == len(prices) >= 3
    assert (await offer(flights))["flight_id"] == found["flight_id"] == found["flights"][0]["flight_id"]


async def test_a_repeated_call_books_once_and_takes_its_seats_once() -> None:
    """RT-9: the reference depends on the call."""
    records = MemoryRecords()
    number = (await offer(make(records)[0], passengers=2))["flight_number"]
    before = await seats_left(records, number)

    first = await book(records, passengers=2)
    second = await book(records, passengers=2)

    assert first == second
    assert first["status"] == "confirmed"
    assert await seats_left(records, number) == before - 2
    assert (await book(records, replace(CALL, idempotency_key="another")))["booking_ref"] != first[
        "booking_ref"
    ]


async def test_an_attempt_that_died_after_taking_seats_is_finished_by_the_next() -> None:
    """RT-8: a held booking with seats becomes the one confirmed booking."""
    records = MemoryRecords()
    flights, bookings = make(records)
    chosen = await offer(flights)
    reference = make_reference(CALL.idempotency_key, 0)
    await bookings.timetable.hold(chosen["flight_id"], reference, "economy", 1)
    before = await seats_left(records, chosen["flight_number"])

    booked = await bookings.book(offer_id=chosen["offer_id"], call=CALL)

    assert booked["booking_ref"] == reference
    assert await seats_left(records, chosen["flight_number"]) == before


async def test_the_outcome_of_a_call_can_be_asked_for() -> None:
    records = MemoryRecords()
    _, bookings = make(records)
    assert await bookings.outcome(idempotency_key=CALL.idempotency_key) == {"status": "not_done"}
    booked = await book(records)
    assert await bookings.outcome(idempotency_key=CALL.idempotency_key) == {"status": "done", "data": booked}


async def test_the_last_seats_go_to_one_of_many() -> None:
    records = MemoryRecords()
    flights, bookings = make(records)
    chosen = (await search(flights, cabin="business"))["flights"][0]
    one = f"{chosen['flight_id']}:business:{chosen['seats']}"
    calls = [replace(CALL, idempotency_key=f"call {number}") for number in range(5)]

    results = await asyncio.gather(
        *(bookings.book(offer_id=one, call=call) for call in calls), return_exceptions=True
    )

    assert [isinstance(result, ToolFailure) for result in results].count(False) == 1


async def test_a_change_moves_the_seats() -> None:
    records = MemoryRecords()
    booked = await book(records)
    _, bookings = make(records)
    freed = await seats_left(records, booked["flight_number"])
    quote = await bookings.quote(booking_ref=booked["booking_ref"], new_date="2026-11-23", call=CALL)
    call = replace(CALL, idempotency_key="change")

    changed = await bookings.modify(booking_ref=booked["booking_ref"], offer_id=quote["offer_id"], call=call)
    again = await bookings.modify(booking_ref=booked["booking_ref"], offer_id=quote["offer_id"], call=call)

    assert changed == again
    assert changed["day"] == "2026-11-23"
    assert await seats_left(records, booked["flight_number"]) == freed + 1


async def test_a_cancelled_booking_gives_its_seat_back_and_stays_cancelled() -> None:
    records = MemoryRecords()
    booked = await book(records)
    _, bookings = make(records)
    before = await seats_left(records, booked["flight_number"])
    call = replace(CALL, idempotency_key="cancel")

    cancelled = await bookings.cancel(booking_ref=booked["booking_ref"], call=call)

    assert cancelled == await bookings.cancel(booking_ref=booked["booking_ref"], call=call)
    assert (cancelled["status"], cancelled["refund"]) == ("cancelled", booked["price"])
    assert await seats_left(records, booked["flight_number"]) == before + 1
    assert (await bookings.list(call=CALL))["count"] == 0
    with pytest.raises(ToolFailure, match="already canceled"):
        await bookings.cancel(booking_ref=booked["booking_ref"], call=replace(CALL, idempotency_key="later"))


async def test_bags_are_added_once_per_call_and_bounded() -> None:
    records = MemoryRecords()
    booked = await book(records)
    _, bookings = make(records)
    call = replace(CALL, idempotency_key="bags")
    for _ in range(2):
        added = await bookings.add_bags(booking_ref=booked["booking_ref"], bags=3, call=call)
        assert added["bags"] == 3
    more = replace(CALL, idempotency_key="more bags")
    with pytest.raises(ToolFailure, match="At most 5"):
        await bookings.add_bags(booking_ref=booked["booking_ref"], bags=3, call=more)


async def test_a_known_user_s_booking_is_nobody_else_s() -> None:
    records = MemoryRecords()
    booked = await book(records, replace(CALL, user_id=UserId("ada")))
    _, bookings = make(records)

    assert (await bookings.get(booking_ref=booked["booking_ref"], call=replace(CALL, user_id=UserId("ada"))))[
        "status"
    ]
    with pytest.raises(ToolFailure) as caught:
        await bookings.get(booking_ref=booked["booking_ref"], call=CALL)
    assert caught.value.category is FailureCategory.NOT_FOUND


@for_each(
    ("changes", "category", "words"),
    [
        ({"day": "2026-11-19"}, FailureCategory.VALIDATION_ERROR, "is in the past"),
        ({"day": "2028-01-01"}, FailureCategory.VALIDATION_ERROR, "too far ahead"),
        ({"destination": "OSL"}, FailureCategory.VALIDATION_ERROR, "two different airports"),
        ({"destination": "QQQ"}, FailureCategory.VALIDATION_ERROR, "don't know the airport"),
        ({"origin": "LGW", "destination": "LHR"}, FailureCategory.NOT_FOUND, "no flights between"),
    ],
)
async def test_what_cannot_be_searched_is_refused_with_the_reason(
    changes: JsonObject, category: FailureCategory, words: str
) -> None:
    with pytest.raises(ToolFailure, match=words) as caught:
        await search(make(MemoryRecords())[0], **changes)
    assert caught.value.category is category


async def test_flights_that_have_left_are_not_offered() -> None:
    flights, _ = make(MemoryRecords())
    late = replace(CALL, now=datetime(2026, 11, 21, 20, tzinfo=UTC).timestamp())
    found = await flights.search(origin="OSL", destination="MAD", day=TOMORROW, call=late)
    assert all(row["departs"] > "21:00" for row in found["flights"])


def test_names_of_cities_mean_their_main_airport_and_words_mean_none() -> None:
    names: dict[str, list[str]] = {}
    for value in travel().domain.entities["airport"].values:
        for name in {value.canonical, value.name, *value.aliases}:
            names.setdefault(name.casefold(), []).append(value.canonical)

    assert (names["oslo"], names["london"], names["gatwick"]) == (["OSL"], ["LHR"], ["LGW"])
    assert {"SJC", "SJO"} <= set(names["san jose"])
    assert not {"yes", "no", "and", "the", "can", "for", "you", "save", "day"} & set(names)


@for_each(("origin", "destination"), [("MAD", "CDG"), ("OSL", "BER"), ("LIS", "FCO"), ("LHR", "DUB")])
async def test_a_flight_back_is_chosen_that_leaves_after_the_one_out_has_landed(
    origin: str, destination: str
) -> None:
    flights, _ = make(MemoryRecords())
    out = await search(flights, origin=origin, destination=destination, passengers=2)
    back = await search(flights, origin=destination, destination=origin, passengers=2)
    prices = {"outbound_fares": out["fares"], "return_fares": back["fares"]}

    chosen = await flights.compare(**prices, passengers=2)

    assert chosen["outbound"]["arrives"] < chosen["return"]["departs"]
    assert chosen["outbound"]["day"] == chosen["return"]["day"] == TOMORROW
    landed = {row["flight_id"]: row["arrives"] for row in out["flights"]}
    left = {row["flight_id"]: row["departs"] for row in back["flights"]}
    possible = [
        (there + home) * 2
        for one, there in out["fares"].items()
        for other, home in back["fares"].items()
        if landed[one] < left[other]
    ]
    assert chosen["total"] == min(possible)


async def test_nothing_is_chosen_where_no_flight_back_is_late_enough() -> None:
    flights, _ = make(MemoryRecords())
    out = await search(flights, time_of_day="evening")
    back = await search(flights, origin="MAD", destination="OSL", time_of_day="morning")
    with pytest.raises(ToolFailure, match="No return flight leaves after an outbound flight arrives"):
        await flights.compare(outbound_fares=out["fares"], return_fares=back["fares"])
