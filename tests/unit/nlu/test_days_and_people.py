"""NL-2: days as users name them, and people who are named instead of counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.nlu.system1.corrections import find_rejected
from orchestrator.nlu.system1.extract.dates import find_dates, find_days
from orchestrator.nlu.system1.extract.extractor import Extractor
from orchestrator.nlu.system1.extract.numbers import count_people
from orchestrator.nlu.system1.extract.times import find_times, in_part_of_day, nearest_hour
from orchestrator.nlu.text import clean, tokenize
from tests.unit.nlu.flights import BOOK

FRIDAY = date(2026, 11, 20)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("on 4.12. please", "2026-12-04"),
        ("24. 12.", "2026-12-24"),
        ("a week from tomorrow", "2026-11-28"),
        ("two weeks from friday", "2026-12-04"),
        ("the first monday of march", "2027-03-01"),
    ],
)
def test_a_day_is_found(said: str, value: str) -> None:
    [found] = find_dates(tokenize(clean(said)), FRIDAY)
    assert found.reading.value == value


@pytest.mark.parametrize(
    "text", ["the first monday of may 0000", "the first monday of may 9999", "31.12.9999"]
)
def test_a_day_of_the_first_or_last_years_is_invalid(text: str) -> None:
    [found, *_] = find_days(tokenize(f"{text} to friday"), FRIDAY)
    assert (found.reading.value, bool(found.reading.invalid)) == (None, True)


def test_a_rejected_name_is_not_a_time() -> None:
    visit = replace(BOOK, slots={"time": SlotSpec("time", "time")})
    said = tokenize("not Anna")
    found = Extractor([visit], {}, frozenset()).find(said, FRIDAY)
    assert [one.text for one in found] == ["Anna"]
    assert find_rejected(said, found, visit, {"time": "10:30"}) is None


def test_a_weekday_follows_the_day_before_it() -> None:
    found = find_days(tokenize("from monday to friday"), FRIDAY)
    assert [one.reading.value for one in found] == ["2026-11-23", "2026-11-27"]


def test_a_stretch_of_days_is_a_choice_among_them() -> None:
    [week] = find_dates(tokenize("any flights next week?"), FRIDAY)
    [weekend] = find_dates(tokenize("the first weekend of december"), FRIDAY)
    [first] = find_dates(tokenize("in the first week of december"), FRIDAY)
    assert week.reading.candidates == tuple(f"2026-11-{day}" for day in range(23, 30))
    assert first.reading.candidates == tuple(f"2026-12-0{day}" for day in range(1, 8))
    assert weekend.reading.candidates == ("2026-12-05", "2026-12-06")


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("a flight for me and my girlfriend", 2),
        ("with 2 kids", 3),
        ("with my wife and two children", 4),
        ("my husband and I", 2),
        ("two adults and a child", 3),
        ("I want to fly with a friend", 2),
        ("for my boss", None),
        ("I want to fly to Rome", None),
    ],
)
def test_people_are_counted(said: str, count: int | None) -> None:
    found = count_people(tokenize(said.lower()))
    assert (None if found is None else found[0]) == count


@pytest.mark.parametrize(
    ("value", "said", "part", "meant"),
    [
        ("08:30", "half past eight", "evening", "20:30"),
        ("08:30", "half past eight in the morning", "evening", "08:30"),
        ("08:30", "half past eight", None, "08:30"),
        ("03:30", "half past three", None, "15:30"),
        ("04:00", "four o'clock", None, "16:00"),
        ("04:00", "four o'clock in the morning", None, "04:00"),
        ("03:30", "03:30", None, "03:30"),
        ("03:30", "3:30", None, "03:30"),
        ("19:00", "19:00", "evening", "19:00"),
    ],
)
def test_an_hour_is_taken_for_the_part_of_the_day_that_is_asked_about(
    value: str, said: str, part: str | None, meant: str
) -> None:
    assert in_part_of_day(value, said, part) == meant


@pytest.mark.parametrize(
    ("value", "said", "held", "meant"),
    [
        ("04:00", "at 4", "15:00", "16:00"),
        ("09:00", "nine o'clock", "10:30", "09:00"),
        ("03:30", "half past three", "10:00", "15:30"),
        ("03:00", "3 in the night", "15:00", "03:00"),
        ("10:30", "10:30", "21:00", "10:30"),
    ],
)
def test_an_hour_counts_from_the_one_on_the_table(value: str, said: str, held: str, meant: str) -> None:
    """IR-6."""
    assert nearest_hour(value, said, held) == meant


@pytest.mark.parametrize(
    ("said", "value"), [("tuesday at 9", "09:00"), ("at ten, please", "10:00"), ("at 3 on monday", "03:00")]
)
def test_a_bare_hour_is_found(said: str, value: str) -> None:
    [found] = find_times(tokenize(said))
    assert found.reading.value == value


@pytest.mark.parametrize("said", ["at 9 euros", "look at 2 flights", "at 3.5"])
def test_not_each_number_behind_at_is_an_hour(said: str) -> None:
    assert find_times(tokenize(said)) == []
