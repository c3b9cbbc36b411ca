"""PL-1: mistakes in declared plans, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.adapters.domains.folder import check_domain, load_domain
from orchestrator.dialogue.specification import Binding, Condition
from orchestrator.types import Dact
from tests.unit.domain.factories import ONTOLOGY, write_domain

PLAN = """\
  plan_trip:
    dax: "030"
    intent: Plan
    slots:
      origin: {type: source, entity: airport, priority: required}
    plan:
      - {name: look, flow: search_flights}
      - name: book
        flow: book_flight
        needs: [look]
        when: [not look.flight_id]
        slots: {origin: origin, flight_id: look.flight_id, cabin: {value: business}}
"""


def write(folder: Path, *changes: tuple[str, str]) -> Path:
    plan = PLAN
    for old, new in changes:
        assert old in plan
        plan = plan.replace(old, new, 1)
    return write_domain(folder, {"ontology.yaml": ONTOLOGY + plan})


def test_a_recipe_is_compiled(tmp_path: Path) -> None:
    flow = load_domain(write(tmp_path)).domain.flows[Dact("plan_trip")]
    look, book = flow.spec.recipe
    assert (look.name, look.dact) == ("look", "search_flights")
    assert book.slots == {
        "origin": Binding("origin"),
        "flight_id": Binding("flight_id", "look"),
        "cabin": Binding(value="business"),
    }
    assert book.when == (Condition(Binding("flight_id", "look"), negated=True),)


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        (("flow: book_flight", "flow: book_flihgt"), "1.flow", "unknown flow 'book_flihgt'"),
        (
            ("flow: search_flights", "flow: plan_trip"),
            "0.flow",
            "plan_trip is a Plan flow, which cannot be a plan step",
        ),
        (("name: book", "name: look"), "1.name", "duplicate step 'look'"),
        (
            ("needs: [look]", "needs: [lok]"),
            "1.needs.0",
            "'lok' is not an earlier step; did you mean 'look'?",
        ),
        (("needs: [look]", "needs: [book]"), "1.needs.0", "'book' is not an earlier step"),
        (
            ("look.flight_id, cabin", "look.price, cabin"),
            "1.slots.flight_id",
            "the step 'look' has no output 'price'",
        ),
        (
            ("look.flight_id, cabin", "later.flight_id, cabin"),
            "1.slots.flight_id",
            "'later' is not an earlier step",
        ),
        (("{origin: origin", "{origin: orgin"), "1.slots.origin", "the plan has no slot 'orgin'"),
        (("{origin: origin", "{orgin: origin"), "1.slots.orgin", "book_flight has no slot 'orgin'"),
        (("not look.flight_id", "not look.price"), "1.when.0", "the step 'look' has no output 'price'"),
        (("intent: Plan", "intent: Read"), "", "only flows with the intent Plan can have steps"),
    ],
)
def test_a_mistake_has_its_place(tmp_path: Path, change: tuple[str, str], place: str, message: str) -> None:
    problems = check_domain(write(tmp_path, change))
    wanted = f"flows.plan_trip.plan.{place}".rstrip(".")
    assert any(message in p.message and p.place.endswith(wanted) for p in problems), problems


def test_every_binding_is_written_as_it_is_read() -> None:
    for binding in (
        Binding("origin"),
        Binding("flight_id", "look"),
        Binding(value={"a": 1}),
        Binding(value="x"),
    ):
        assert Binding.read(binding.serialize()) == binding
