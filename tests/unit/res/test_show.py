"""Values in words for users."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orchestrator.dialogue.flow import make_flow_class
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.res.wording import name_doing, show_count, show_date, show_money, show_time
from orchestrator.types import Dact
from tests.cases import for_each

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()


@for_each(
    ("value", "text"),
    [
        ("2026-11-20", "today, Friday 20 November"),
        ("2026-11-21", "tomorrow, Saturday 21 November"),
        ("2026-12-24", "Thursday 24 December"),
        ("2027-01-02", "Saturday 2 January 2027"),
        ("some day", "some day"),
    ],
)
def test_dates(value: str, text: str) -> None:
    assert show_date(value, NOW) == text


@pytest.mark.parametrize(
    ("value", "text"), [("09:40:00", "09:40"), ("2026-11-20T09:40", "09:40"), ("7:05", "7:05")]
)
def test_times(value: str, text: str) -> None:
    assert show_time(value) == text


@for_each(
    ("value", "text"),
    [
        ({"amount": 120, "currency": "EUR"}, "€120"),
        ({"amount": 1234.5, "currency": "USD"}, "$1,234.50"),
        ({"amount": 80, "currency": "NOK"}, "80 NOK"),
        ("dear", "dear"),
    ],
)
def test_money(value: object, text: str) -> None:
    assert show_money(value) == text


@for_each(
    ("dact", "doing"),
    [
        ("book_flight", "booking a flight"),
        ("change_order", "changing an order"),
        ("get_ticket", "getting a ticket"),
        ("list_bookings", "listing bookings"),
        ("see_menu", "seeing a menu"),
    ],
)
def test_what_we_are_doing(dact: str, doing: str) -> None:
    flow = make_flow_class(FlowSpec(dact=Dact(dact), dax="001", intent="Look", family=Family.READ))

    assert name_doing(flow) == doing


@pytest.mark.parametrize(("value", "text"), [(0, "0 rows"), (1, "1 row"), (1200, "1,200 rows")])
def test_a_count_has_its_noun_in_the_right_number(value: int, text: str) -> None:
    assert show_count(value, "row") == text
