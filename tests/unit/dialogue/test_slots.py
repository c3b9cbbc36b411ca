"""FS-4: slot types store valid values in canonical form, and explain why they reject others."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.dialogue.slots import (
    EVERY_TYPE,
    LIBRARY_TYPES,
    SLOT_TYPES,
    UNIVERSAL_TYPES,
    Rejected,
    SlotSource,
    SlotType,
    SlotTypes,
    SlotValue,
    Valid,
)
from orchestrator.dialogue.storage.serialization import load
from tests.cases import for_each
from tests.unit.dialogue.factories import make_slot
from tests.wording import english

CABIN = {"values": ("economy", "business"), "synonyms": {"cheap": "economy"}}
ACCEPTED: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("base", {}, "  two   words ", "two words"),
    ("base", {}, 3, 3),
    ("base", {}, False, False),
    ("group", {}, "one", ["one"]),
    ("group", {}, ["a", " a", "b", 1, True], ["a", "b", 1, True]),
    ("source", {}, "LHR", "LHR"),
    ("target", {"values": ("LHR", "JFK")}, "lhr", "LHR"),
    ("removal", {}, "the second row", "the second row"),
    ("removal", {}, ["a", "b"], ["a", "b"]),
    ("free_text", {}, "line one\r\nline\x00 two\u202e", "line one\nline two"),
    ("free text", {}, "👩\u200d🚀 ok", "👩\u200d🚀 ok"),
    ("level", {"minimum": 1, "maximum": 9}, "3", 3),
    ("level", {}, "1,250.50", 1250.5),
    ("level", {}, 4.0, 4),
    ("range", {}, [1, 2.5], [1, 2.5]),
    ("range", {"minimum": 0, "maximum": 900}, [None, "200"], [0, 200]),
    ("range", {}, {"low": 3, "high": 3}, [3, 3]),
    ("exact", {"pattern": "BK-[0-9]{5}"}, " BK-12345 ", "BK-12345"),
    ("exact", {"values": ("A", "b")}, "b", "b"),
    ("exact", {}, 4711, "4711"),
    ("dictionary", {}, {"a": [1, None, {"b": True}]}, {"a": [1, None, {"b": True}]}),
    ("category", CABIN, "BUSINESS", "business"),
    ("category", CABIN, "Cheap", "economy"),
    ("category", {"values": ("1", "2")}, 2, "2"),
    ("category", {"entity": "job"}, "tyre", "tyre"),  # NLU finds the entity's values
    ("checklist", {"entity": "job"}, ["tyre", "brakes", "tyre"], ["brakes", "tyre"]),
    ("checklist", CABIN, ["business", "cheap", "economy"], ["economy", "business"]),
    ("checklist", CABIN, "business", ["business"]),
    ("date", {}, "2028-02-29", "2028-02-29"),
    ("time", {}, "9:05", "09:05"),
    ("money", {"values": ("EUR",)}, "12.50", {"amount": 12.5, "currency": "EUR"}),
    ("money", {}, {"amount": 3, "currency": "usd"}, {"amount": 3, "currency": "USD"}),
    ("number", {"minimum": 0}, "7", 7),
    ("boolean", {}, "Yes", True),
    ("boolean", {}, False, False),
]
TURNED_AWAY: list[tuple[str, dict[str, Any], Any, str]] = [
    ("base", {}, "  ", "empty"),
    ("base", {}, "x" * 501, "500 characters"),
    ("base", {}, {"a": 1}, "must be text"),
    ("group", {}, [], "at least one"),
    ("group", {}, ["x"] * 65, "at most 64"),
    ("group", {}, [["x"]], "must be text"),
    ("source", {"entity": "airport"}, ["LHR", "JFK"], "one airport"),
    ("target", {"values": ("LHR", "JFK")}, "CDG", "LHR or JFK"),
    ("removal", {}, [], "at least one"),
    ("free_text", {"maximum": 5}, "too long", "limit is 5"),
    ("free_text", {}, "\x00\u202e", "empty"),
    ("free_text", {}, 3, "must be text"),
    ("level", {"minimum": 1, "maximum": 9}, 10, "between 1 and 9"),
    ("level", {"minimum": 1}, 0, "at least 1"),
    ("level", {"maximum": 9}, "10", "at most 9"),
    ("level", {}, float("nan"), "must be a number"),
    ("level", {}, float("inf"), "must be a number"),
    ("level", {}, True, "must be a number"),
    ("level", {}, "nan", "must be a number"),
    ("level", {}, "1e400", "must be a number"),
    ("level", {}, "9" * 50, "must be a number"),
    ("level", {}, "٣", "must be a number"),
    ("level", {}, 10**5000, "too large"),
    ("range", {}, [5, 1], "wrong way around"),
    ("range", {}, [None, 5], "must be a number"),
    ("range", {}, [1], "two numbers"),
    ("range", {}, [1, 2, 3], "two numbers"),
    ("range", {"minimum": 0, "maximum": 10}, [1, 11], "between 0 and 10"),
    ("exact", {"pattern": "BK-[0-9]{5}"}, "bk-12345", "BK-[0-9]{5}"),
    ("exact", {"pattern": "BK-[0-9]{5}", "description": "as in BK-12345."}, "x", "as in BK-12345"),
    ("exact", {"values": ("A", "b")}, "a", "exactly A or b"),
    ("exact", {}, "two words", "one word"),
    ("exact", {}, 10**5000, "must be text"),
    ("exact", {}, "x" * 129, "limit is 128"),
    ("dictionary", {}, {}, "named values"),
    ("dictionary", {}, [1], "named values"),
    ("dictionary", {}, {"a": float("nan")}, "too large or too deeply nested"),
    ("dictionary", {}, {str(n): n for n in range(65)}, "at most 64"),
    ("category", CABIN, "first", "economy or business"),
    ("category", CABIN, ["economy"], "must be text"),
    ("category", CABIN, 10**5000, "must be text"),
    ("checklist", CABIN, ["economy", "pool"], "pool"),
    ("checklist", CABIN, [], "at least one"),
    ("date", {}, "2027-02-29", "February 2027 has days 1 to 28"),
    ("date", {}, "2027-13-01", "months 1 to 12"),
    ("date", {}, "0000-01-01", "year 0"),
    ("date", {}, "9999-01-01", "too far"),
    ("date", {}, "31.3.2026", "such as 2026-03-31"),
    ("date", {}, "20260331", "such as 2026-03-31"),
    ("date", {}, 20260331, "such as 2026-03-31"),
    ("time", {}, "24:00", "00:00 to 23:59"),
    ("time", {}, "12:60", "00:00 to 23:59"),
    ("time", {}, "noon", "such as 09:30"),
    ("money", {}, 5, "currency"),
    ("money", {}, {"amount": -5, "currency": "EUR"}, "negative"),
    ("money", {"values": ("EUR", "USD")}, {"amount": 5, "currency": "GBP"}, "EUR or USD"),
    ("money", {}, {"currency": "EUR"}, "must be a number"),
    ("money", {}, {"amount": 5, "currency": ["EUR"]}, "currency"),
    ("number", {"minimum": 0}, -1, "at least 0"),
    ("boolean", {}, "perhaps", "yes or no"),
    ("boolean", {}, 1, "yes or no"),
    ("base", {}, None, "no value yet"),
    ("unheard_of", {}, "x", "don't know the type"),
]


def number_cases(cases: list[tuple[str, dict[str, Any], Any, Any]]) -> list[str]:
    return [f"{case[0]}-{number}" for number, case in enumerate(cases)]


@for_each(("kind", "details", "value", "kept"), ACCEPTED, ids=number_cases(ACCEPTED))
def test_fitting_values_are_kept_in_canonical_form(kind: str, details: Any, value: Any, kept: Any) -> None:
    verdict = EVERY_TYPE.validate(value, make_slot("thing", kind, **details))
    assert isinstance(verdict, Valid)
    assert verdict == Valid(kept)
    assert type(verdict.value) is type(kept)


@for_each(("kind", "details", "value", "why"), TURNED_AWAY, ids=number_cases(TURNED_AWAY))
def test_other_values_are_turned_away_with_a_reason(kind: str, details: Any, value: Any, why: str) -> None:
    verdict = EVERY_TYPE.validate(value, make_slot("thing", kind, **details))
    assert isinstance(verdict, Rejected)
    assert why in english(verdict.why)
    assert english(verdict.why).endswith((".", "…"))


def test_deep_nesting_is_turned_away() -> None:
    nested: dict[str, Any] = {}
    for _ in range(30_000):
        nested = {"a": nested}
    assert isinstance(EVERY_TYPE.validate(nested, make_slot("thing", "dictionary")), Rejected)


def test_a_reason_never_repeats_invisible_or_endless_text() -> None:
    verdict = EVERY_TYPE.validate("no\u202e date\x00 " + "x" * 100_000, make_slot("day", "date"))
    assert isinstance(verdict, Rejected)
    assert "\u202e" not in english(verdict.why)
    assert "\x00" not in english(verdict.why)
    assert len(english(verdict.why)) < 200


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(value=json_values, kind=st.sampled_from(sorted(SLOT_TYPES)))
def test_any_json_is_judged_and_what_was_kept_is_kept_again(value: Any, kind: str) -> None:
    spec = make_slot("thing", kind, values=("EUR", "USD") if kind != "exact" else (), minimum=0, maximum=100)
    verdict = EVERY_TYPE.validate(value, spec)
    if isinstance(verdict, Valid):
        assert EVERY_TYPE.validate(verdict.value, spec) == verdict
    else:
        assert verdict.why


def test_twelve_types_are_universal() -> None:
    assert len(UNIVERSAL_TYPES) == 12


def test_a_domain_brings_its_own_types() -> None:
    even = SlotType("even", lambda value, _: Valid(value) if value % 2 == 0 else Rejected("Odd."))
    types = SlotTypes({"even": even, "date": LIBRARY_TYPES["date"]})
    assert types.validate(4, make_slot("n", "even")) == Valid(4)
    assert types.validate(3, make_slot("n", "even")) == Rejected("Odd.")
    assert types.validate("2026-01-01", make_slot("n", "date")) == Valid("2026-01-01")
    assert isinstance(types.validate("12:00", make_slot("n", "time")), Rejected)


def test_a_slot_value_comes_back_from_json() -> None:
    held = SlotValue(["a"], SlotSource.INHERITED, None, confirmed=True, text="an a")
    again = load(SlotValue, held.serialize())
    assert again == held
    again.value.append("b")
    assert held.value == ["a"]
