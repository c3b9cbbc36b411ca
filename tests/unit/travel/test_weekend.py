"""PL-1: the days of a weekend."""

from __future__ import annotations

from datetime import date

from domains.travel.weekend import choose_weekend, show_span
from tests.cases import for_each

WEDNESDAY = date(2026, 11, 18)
FRIDAY = date(2026, 11, 20)


@for_each(
    ("request_", "today", "leave", "words", "expected"),
    [
        ("a weekend in Lisbon", WEDNESDAY, None, "", "Friday 20 to Sunday 22 November"),
        ("a weekend in Lisbon", FRIDAY, None, "", "Friday 27 to Sunday 29 November"),
        ("a long weekend in Rome", FRIDAY, None, "", "Friday 27 to Monday 30 November"),
        (
            "next weekend in Rome",
            WEDNESDAY,
            date(2026, 11, 28),
            "next weekend",
            "Friday 27 to Sunday 29 November",
        ),
        ("next weekend in Rome", WEDNESDAY, date(2026, 11, 28), "", "Friday 27 to Sunday 29 November"),
        (
            "this weekend",
            date(2026, 11, 21),
            date(2026, 11, 21),
            "this weekend",
            "Saturday 21 to Sunday 22 November",
        ),
        ("a weekend", FRIDAY, date(2026, 11, 28), "Saturday", "Saturday 28 to Sunday 29 November"),
        ("a weekend", FRIDAY, date(2026, 11, 26), "Thursday", "Thursday 26 to Sunday 29 November"),
        ("a weekend", FRIDAY, date(2027, 1, 1), "1 January", "Friday 1 to Sunday 3 January"),
        ("a weekend", FRIDAY, date(2027, 1, 29), "29 January", "Friday 29 to Sunday 31 January"),
        ("a weekend", FRIDAY, date(2026, 12, 31), "", "Thursday 31 December to Sunday 3 January"),
    ],
)
def test_the_days_of_a_weekend(
    request_: str, today: date, leave: date | None, words: str, expected: str
) -> None:
    weekend = choose_weekend(request_, today, leave, words)
    assert weekend is not None
    assert show_span(weekend) == expected
    assert weekend.assumed is (leave is None)


@for_each(
    "request_",
    [
        "a trip to Lisbon",
        "a weekend in December",
        "a weekend next month",
        "a weekend in spring",
        "some weekend in Rome",
    ],
)
def test_what_is_no_weekend_or_none_that_can_be_told_is_asked_for(request_: str) -> None:
    assert choose_weekend(request_, FRIDAY, None, "") is None
