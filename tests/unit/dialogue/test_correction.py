"""IR-4, RT-12: corrections before and after an effect, and the values that depend on them."""

from __future__ import annotations

from orchestrator.dialogue.base_flow import ProblemKind
from orchestrator.dialogue.changes.correction import Change, Correction, apply_changes, correct, reopen
from orchestrator.dialogue.flow import BaseFlow, make_flow_class
from orchestrator.dialogue.lifecycle import ACTIVE, COMPLETED
from orchestrator.dialogue.slots import SlotSource
from orchestrator.dialogue.understanding import Mention
from orchestrator.types import TurnId
from tests.unit.dialogue.factories import BOOK_FLIGHT


def make_flow() -> BaseFlow:
    flow = BOOK_FLIGHT(0.0)
    flow.fill_slots_by_label({"origin": "LHR", "destination": "JFK", "date": "2026-03-01"})
    flow.fill_slots_by_label({"seat": "12A"}, source=SlotSource.TOOL)
    flow.confirm()
    return flow


def test_a_correction_replaces_the_value_and_clears_what_no_longer_holds() -> None:
    flow = make_flow()
    result = correct(flow, {"destination": Mention("CDG", "Paris")}, turn_id=TurnId("turn_2"))
    assert result.changed == (Change("destination", "JFK", "CDG"),)
    assert result.cleared == ("seat",)
    assert flow.value("destination") == "CDG"
    assert flow.slots["destination"].turn_id == "turn_2"
    assert "seat" not in flow.slots
    assert not flow.slots["date"].confirmed
    assert flow.slots["origin"].confirmed


def test_dependents_that_are_corrected_as_well_are_not_cleared() -> None:
    flow = make_flow()
    result = correct(flow, {"destination": "CDG", "date": "2026-04-01", "seat": "1C"})
    assert result.cleared == ()
    assert flow.value("seat") == "1C"


def test_the_same_value_again_is_no_correction() -> None:
    flow = make_flow()
    assert correct(flow, {"destination": "JFK"}) == Correction()
    assert flow.value("seat") == "12A"


def test_an_invalid_correction_changes_nothing() -> None:
    flow = make_flow()
    before = flow.serialize()
    result = correct(flow, {"date": "2026-02-30", "destination": Mention(candidates=("CDG", "ORY"))})
    assert [problem.kind for problem in result.problems] == [ProblemKind.INVALID, ProblemKind.SEVERAL]
    assert result.changed == ()
    assert flow.serialize() == before


def test_a_domain_class_may_know_what_still_holds() -> None:
    class Free(make_flow_class(BOOK_FLIGHT.spec)):  # type: ignore[misc]
        def still_holds(self, name: str) -> bool:
            return name == "seat"

    flow = Free(0.0)
    flow.fill_slots_by_label({"origin": "LHR", "date": "2026-03-01", "seat": "12A"})
    assert correct(flow, {"origin": "LGW"}).cleared == ("date",)


def test_the_decision_is_carried_out_on_a_fresh_flow() -> None:
    flow = make_flow()
    flow.become(COMPLETED)
    before = flow.serialize()
    fresh = reopen(flow, 9.0)
    assert apply_changes(fresh, {"destination": "CDG"}) == ("seat",)
    assert fresh.status == ACTIVE
    assert fresh.value("origin") == "LHR"
    assert fresh.progress.reopened_from == flow.flow_id
    assert flow.serialize() == before
