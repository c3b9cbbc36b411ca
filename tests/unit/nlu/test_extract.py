"""Typed extractors: accepted and rejected values, and robustness (NL-2)."""

import re
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.domain.locales import separators_of
from orchestrator.nlu.system1.extract.answers import core_of, find_booleans, read_answer
from orchestrator.nlu.system1.extract.dates import find_dates
from orchestrator.nlu.system1.extract.gazetteer import Gazetteer
from orchestrator.nlu.system1.extract.names import find_codes, find_names, find_patterns, find_quotes
from orchestrator.nlu.system1.extract.numbers import find_money, find_numbers, read_separators
from orchestrator.nlu.system1.extract.times import find_times
from orchestrator.nlu.text import Utterance, clean, tokenize
from tests.unit.nlu.flights import TODAY, system1


def said(text: str) -> Utterance:
    return tokenize(clean(text))


def dates(text: str) -> list[object]:
    return [item.reading.value for item in find_dates(said(text), TODAY)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today", "2026-11-20"),
        ("tomorrow", "2026-11-21"),
        ("the day after tomorrow", "2026-11-22"),
        ("on sunday", "2026-11-22"),
        ("next friday", "2026-11-27"),
        ("monday next week", "2026-11-23"),
        ("in two weeks", "2026-12-04"),
        ("in 3 days", "2026-11-23"),
        ("a week from today", "2026-11-27"),
        ("this weekend", "2026-11-21"),
        ("next month", "2026-12-01"),
        ("the 3rd of May", "2027-05-03"),
        ("May 3rd", "2027-05-03"),
        ("3 May 2027", "2027-05-03"),
        ("March the twenty-first", "2027-03-21"),
        ("December 24, 2026", "2026-12-24"),
        ("2026-12-24", "2026-12-24"),
        ("24.12.2026", "2026-12-24"),
        ("12/24/2026", "2026-12-24"),
        ("the 25th", "2026-11-25"),
        ("the 3rd", "2026-12-03"),
        ("Feb 29", "2028-02-29"),
    ],
)
def test_dates(text: str, expected: str) -> None:
    assert dates(text) == [expected]


def test_a_numeric_date_of_two_readings_has_both_as_candidates() -> None:
    (found,) = find_dates(said("03/04/2027"), TODAY)
    assert found.reading.value is None
    assert set(found.reading.candidates) == {"2027-04-03", "2027-03-04"}


@pytest.mark.parametrize("text", ["February 30", "31 April 2027", "2026-02-30", "2026-13-01", "99/99/2026"])
def test_days_that_do_not_exist_are_invalid(text: str) -> None:
    (found,) = find_dates(said(text), TODAY)
    assert found.reading.value is None
    assert found.reading.invalid


@pytest.mark.parametrize("text", ["I may come", "second class", "march on", "12 monkeys", "the one", "satay"])
def test_words_that_only_look_like_dates(text: str) -> None:
    assert dates(text) == []


@given(st.dates(date(2027, 1, 1), date(2035, 12, 31)))
def test_every_written_day_is_read_back(day: date) -> None:
    for form in ("%Y-%m-%d", "%d %B %Y", "%B %d, %Y"):
        assert dates(day.strftime(form)) == [day.isoformat()]


@given(st.integers(0, 400))
def test_days_ahead(days: int) -> None:
    assert dates(f"in {days} days") == [(TODAY + timedelta(days=days)).isoformat()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7:30 pm", "19:30"),
        ("at 7 pm", "19:00"),
        ("12 am", "00:00"),
        ("19:30", "19:30"),
        ("half past six", "06:30"),
        ("quarter to seven pm", "18:45"),
        ("noon", "12:00"),
        ("midnight", "00:00"),
        ("5 in the evening", "17:00"),
        ("morning 9:15", "09:15"),
        ("6 o'clock", "06:00"),
    ],
)
def test_times(text: str, expected: str) -> None:
    assert [item.reading.value for item in find_times(said(text))] == [expected]


@pytest.mark.parametrize("text", ["at 25:70", "99 to 5"])
def test_a_time_that_does_not_exist_is_invalid(text: str) -> None:
    (found,) = find_times(said(text))
    assert (found.reading.value, bool(found.reading.invalid)) == (None, True)


@given(st.times())
def test_every_clock_time_is_read_back(moment) -> None:
    text = moment.strftime("%H:%M")
    assert [item.reading.value for item in find_times(said(text))] == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", [2]),
        ("1,200", [1200]),
        ("-3.5", [-3.5]),
        ("twenty five", [25]),
        ("twenty-five", [25]),
        ("two hundred and five", [205]),
        ("three thousand", [3000]),
        ("two adults and three children", [2, 3]),
        ("B12", []),
    ],
)
def test_numbers(text: str, expected: list[float]) -> None:
    assert [item.reading.value for item in find_numbers(said(text))] == expected


@given(st.integers(0, 10**14))
def test_every_whole_number_is_read_back(number: int) -> None:
    assert [item.reading.value for item in find_numbers(said(f"{number:,}"))] == [number]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$50", {"amount": 50, "currency": "USD"}),
        ("20.50 euros", {"amount": 20.5, "currency": "EUR"}),
        ("two hundred dollars", {"amount": 200, "currency": "USD"}),
        ("GBP 1,200", {"amount": 1200, "currency": "GBP"}),
    ],
)
def test_money(text: str, value: dict[str, object]) -> None:
    assert [item.reading.value for item in find_money(said(text))] == [value]


@pytest.mark.parametrize(
    ("locale", "text", "value"),
    [
        ("de-DE", "1.500", 1500),
        ("de-DE", "1.234.567,5", 1234567.5),
        ("de-DE", "2,5", 2.5),
        ("de-DE", "1,234.56", 1234.56),
        ("fr-FR", "40 000", 40000),
        ("fr-FR", "40\u202f000,25", 40000.25),
        ("de-CH", "1'500.50", 1500.5),
        ("en-US", "1,500", 1500),
        ("en-US", "1.5", 1.5),
    ],
)
def test_numbers_are_read_as_the_user_writes_them(locale: str, text: str, value: float) -> None:
    (found,) = find_numbers(read_separators(said(f"take {text} of them"), separators_of(locale)))
    assert found.reading.value == value


@pytest.mark.parametrize("text", ["on 3.12. please", "3.12.2026", "at 10.30", "the 2, 3 or 4 of us"])
def test_separators_that_part_something_else_stay(text: str) -> None:
    assert read_separators(said(text), separators_of("de-DE")).text == text


def test_an_amount_ends_at_its_last_sign() -> None:
    (found,) = find_money(said("send $780 to Anna"))
    assert "send $780 to Anna"[found.start : found.end] == "$780"


def test_names_run_over_connecting_words_and_stop_at_sentences() -> None:
    common = frozenset({"find", "songs"})
    runs = [item.reading.value for item in find_names(said("Find Bank of America. It rocks"), common, [])]
    assert runs[0] == "Bank of America"


def test_a_comma_separates_two_names() -> None:
    found = [found.reading.value for found in find_names(tokenize("not Dr Berg, Dr Lund"), frozenset(), [])]
    assert found == ["Dr Berg", "Dr Lund"]


def test_codes_quotes_and_patterns() -> None:
    assert [item.reading.value for item in find_codes(said("my code is ab12cd"))] == ["AB12CD"]
    assert [item.reading.value for item in find_quotes(said('call it "two of them"'))] == ["two of them"]
    patterns = {"pattern:x": re.compile("[A-Z]{2} ?[0-9]{3,4}")}
    assert find_patterns(said("flight sk 1465 please"), patterns, frozenset())


def test_the_longest_known_name_wins() -> None:
    gazetteer = Gazetteer()
    gazetteer.add("entity:city", "York", "YRK")
    gazetteer.add("entity:city", "New York", "NYC")
    found = gazetteer.find(said("from New York to York"))
    assert [item.reading.value for item in found] == ["NYC", "YRK"]


@given(st.text(alphabet="abcdefgh ", min_size=4, max_size=30))
def test_every_name_that_was_added_is_found(name: str) -> None:
    gazetteer = Gazetteer()
    gazetteer.add("entity:x", name, "value")
    utterance = said(f"go to {name} please")
    expected = ["value"] if name.split() else []
    assert [item.reading.value for item in gazetteer.find(utterance)][:1] == expected


def test_booleans_follow_the_words_before() -> None:
    slot = SlotSpec("has_wifi", "category", values=("True", "False"))
    slots = {"has_wifi": slot}
    assert find_booleans(said("a room with wifi"), slots) == {"has_wifi": Mention("True", "wifi")}
    assert find_booleans(said("no wifi please"), slots) == {"has_wifi": Mention("False", "wifi")}


@pytest.mark.parametrize(
    ("text", "core"),
    [("it's Anna, please", "Anna"), ("I'd like window", "window"), ("my name is Bo Ek.", "Bo Ek")],
)
def test_the_core_of_an_answer(text: str, core: str) -> None:
    assert core_of(text) == core


@pytest.mark.parametrize(
    ("slot", "text", "value"),
    [
        (SlotSpec("when", "time"), "9", "09:00"),
        (SlotSpec("price", "money", values=("EUR",)), "300", {"amount": 300, "currency": "EUR"}),
        (SlotSpec("name", "base"), "it's Anna", "Anna"),
        (SlotSpec("tags", "group"), "red", ["red"]),
        (SlotSpec("ok", "boolean"), "yes please", True),
    ],
)
def test_whole_messages_as_answers(slot: SlotSpec, text: str, value: object) -> None:
    mention = read_answer(said(text), slot, system1().extractor.gazetteer, TODAY)
    assert mention is not None
    assert mention.value == value


@settings(max_examples=150)
@given(st.text(max_size=300))
def test_no_text_upsets_the_extractors(text: str) -> None:
    """Candidates are within the text and do not overlap, for any input."""
    utterance = said(text)
    candidates = system1().extractor.find(utterance, TODAY)
    edges = [0]
    for candidate in candidates:
        assert candidate.first >= edges[-1]
        assert candidate.last > candidate.first
        edges.append(candidate.last)
    assert edges[-1] <= len(utterance.words)
