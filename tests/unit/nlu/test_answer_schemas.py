"""Schemas of models' answers to NLU, and the interpretation of answers."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.nlu.answer_schemas import UNDERSTANDING, read_pairs, understanding_schema, values_schema
from orchestrator.nlu.validate import requestable_flows


def flows() -> list[Any]:
    domain = load_domain("travel").domain
    return requestable_flows({dact: flow.spec for dact, flow in domain.flows.items()})


def test_names_come_from_closed_sets() -> None:
    """NL-2, NL-4: kinds, flows and slots of the domain, except those that only plans or tools use."""
    answer = understanding_schema(flows())["properties"]

    dacts = answer["flows"]["items"]["properties"]["dact"]["enum"]
    names = answer["slots"]["items"]["properties"]["name"]["enum"]
    assert "book_flight" in dacts
    assert "compare_fares" not in dacts
    assert {"origin", "flight_id", "preference"} <= set(names)
    assert "outbound_fares" not in names
    assert "plan_change" not in answer["kind"]["enum"]


GOOD = {
    "kind": "task",
    "intent": "Find",
    "flows": [{"dact": "search_flights", "score": 0.9}],
    "slots": [{"name": "origin", "value": "Oslo"}],
    "target": "",
    "digression": None,
    "not_understood": ["cheap"],
}


def test_the_answer_of_the_model_protocol_fits() -> None:
    """The protocol's form, and the object in scripts and recordings."""
    schema: Any = Draft202012Validator(understanding_schema(flows()))
    judge: Any = Draft202012Validator(UNDERSTANDING)

    assert schema.is_valid(GOOD)
    assert judge.is_valid(GOOD)
    assert judge.is_valid({"kind": "task", "flows": [], "slots": {"origin": "Oslo"}})
    assert not schema.is_valid(GOOD | {"flows": [{"dact": "fly_to_the_moon", "score": 1}]})
    assert not schema.is_valid(GOOD | {"kind": "diborrajjj"})
    assert not schema.is_valid(GOOD | {"slots": [{"name": "data", "value": {"utterance": {}}}]})


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("base", "Oslo", "Oslo"),
        ("level", "2", 2),
        ("number", "-2.5", -2.5),
        ("level", "two", "two"),
        ("group", "name, price", ["name", "price"]),
        ("checklist", "wifi", ["wifi"]),
        ("money", "9.50 eur", {"amount": 9.5, "currency": "EUR"}),
        ("money", "12", 12),
        ("range", "10..20", [10, 20]),
        ("range", "10 to 20", [10, 20]),
        ("range", "..20", [None, 20]),
        ("date", "2026-11-27", "2026-11-27"),
        ("exact", "12", "12"),
    ],
)
def test_a_value_that_is_written_as_text_is_read_by_its_slot(kind: str, written: str, value: Any) -> None:
    """NL-2"""
    slot = SlotSpec("slot", kind)
    assert dict(read_pairs([{"name": "slot", "value": written}], {"slot": slot})) == {"slot": value}
    assert dict(read_pairs({"slot": written}, {"slot": slot})) == {"slot": written}


def test_values_of_one_flow_are_asked_for_by_name() -> None:
    """NL-5"""
    schema = values_schema([SlotSpec("day", "date"), SlotSpec("seats", "level")])
    assert schema["properties"]["slots"]["items"]["properties"]["name"]["enum"] == ["day", "seats"]
