"""FS-1 … FS-3, FS-6, FS-14: operations of a single flow."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from orchestrator.dialogue.base_flow import BaseFlow, Labels, ProblemKind
from orchestrator.dialogue.flow import PARENTS, RETIRED, ConverseFlow, load_flow, make_flow_class
from orchestrator.dialogue.lifecycle import COMPLETED, INTERRUPTED
from orchestrator.dialogue.progress import Candidate, Consent, Grant, Progress
from orchestrator.dialogue.slots import SlotSource
from orchestrator.dialogue.specification import Family, Priority, SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.errors import IllegalTransition
from orchestrator.types import Dact, FlowId, ToolId, TurnId
from tests.cases import for_each
from tests.unit.dialogue.factories import (
    BOOK_FLIGHT,
    CHAT,
    CHECK_BOOKING,
    FIND_HOTEL,
    FLOW_TYPES,
    PLAN_TRIP,
    make_slot,
    make_spec,
)
from tests.wording import english


@for_each("family", list(Family))
def test_fs1_each_family_has_a_parent_without_slots(family: Family) -> None:
    cls = make_flow_class(make_spec("do_it", family=family))
    assert cls.__mro__[1] is PARENTS[family]
    assert cls.__mro__[-2] is BaseFlow
    assert not hasattr(PARENTS[family], "spec")
    assert cls.__name__ == "DoItFlow"


def test_fs1_a_class_may_be_written_in_python() -> None:
    class Greet(ConverseFlow):
        spec = make_spec("greet", family=Family.CONVERSE)

        def needs_to_think(self) -> bool:
            return True

    flow = Greet(1.0)
    assert flow.needs_to_think()
    assert load_flow(flow.serialize(), {Dact("greet"): Greet}).serialize() == flow.serialize()


def test_fs2_labels_fill_slots_and_problems_say_why() -> None:
    flow = BOOK_FLIGHT(0.0)
    problems = flow.fill_slots_by_label(
        {
            "origin": Mention("LHR", text="Heathrow"),
            "destination": Mention(None, "San Jose", candidates=("SJC", "SJO")),
            "date": "2026-02-30",
            "seat": Mention(None, "??", invalid="A seat looks like 12A."),
            "pet": "dog",
        },
        turn_id=TurnId("turn_1"),
    )
    assert [(problem.slot, problem.kind) for problem in problems] == [
        ("destination", ProblemKind.SEVERAL),
        ("date", ProblemKind.INVALID),
        ("seat", ProblemKind.INVALID),
        ("pet", ProblemKind.UNKNOWN_SLOT),
    ]
    assert problems[0].candidates == ("SJC", "SJO")
    assert problems[2].why == "A seat looks like 12A."
    assert list(flow.slots) == ["origin"]
    assert flow.slots["origin"].turn_id == "turn_1"
    assert flow.slots["origin"].text == "Heathrow"


def test_names_of_slots_that_do_not_exist_are_not_repeated_at_length() -> None:
    (problem,) = BOOK_FLIGHT(0.0).fill_slots_by_label({"x\u202e" * 10_000: 1})
    assert problem.kind is ProblemKind.UNKNOWN_SLOT
    assert len(english(problem.why)) < 150
    assert "\u202e" not in english(problem.why)


def test_fs4_an_invalid_value_does_not_displace_a_valid_one() -> None:
    flow = BOOK_FLIGHT(0.0)
    flow.fill_slots_by_label({"date": "2026-03-01"})
    flow.fill_slots_by_label({"date": "2026-03-32"})
    assert flow.value("date") == "2026-03-01"


def test_fs3_required_slots_in_order() -> None:
    flow = BOOK_FLIGHT(0.0)
    assert [slot.name for slot in flow.missing()] == ["origin", "destination", "date"]
    assert not flow.is_filled()
    assert flow.needs_to_think()
    flow.fill_slots_by_label({"origin": "LHR", "destination": "JFK", "date": "2026-03-01"})
    assert flow.is_filled()
    assert not flow.needs_to_think()


def test_fs3_one_of_each_elective_group() -> None:
    flow = FIND_HOTEL(0.0)
    assert [slot.name for slot in flow.missing()] == ["city", "price"]
    assert [slot.name for slot in flow.open_slots()] == ["city", "near", "price", "stars"]
    flow.fill_slots_by_label({"near": "the river"})
    assert [slot.name for slot in flow.missing()] == ["price"]
    flow.fill_slots_by_label({"stars": 9})
    assert not flow.is_filled()
    flow.fill_slots_by_label({"stars": 4})
    assert flow.is_filled()


def test_fs3_a_stored_value_that_no_longer_passes_its_type_does_not_count() -> None:
    flow = FIND_HOTEL(0.0)
    flow.fill_slots_by_label({"city": "Rome", "stars": 4})
    body = flow.serialize()
    body["slots"]["stars"]["value"] = 17
    flow = load_flow(body, FLOW_TYPES)
    assert [slot.name for slot in flow.missing()] == ["price"]


def test_defaults_count_as_values() -> None:
    cls = make_flow_class(make_spec("go", make_slot("speed", priority=Priority.REQUIRED, default="slow")))
    flow = cls(0.0)
    assert flow.is_filled()
    assert flow.value("speed") == "slow"
    assert flow.values() == {"speed": "slow"}
    flow.fill_slots_by_label({"speed": "fast"})
    assert flow.values() == {"speed": "fast"}
    flow.clear("speed")
    assert flow.values() == {"speed": "slow"}


class Finder:
    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.asked: list[list[str]] = []

    async def find_values(self, flow: BaseFlow, slots: Sequence[SlotSpec]) -> Labels:
        self.asked.append([slot.name for slot in slots])
        return self.labels


async def test_fs2_missing_values_are_looked_for_in_context_then_in_memory() -> None:
    flow = BOOK_FLIGHT(0.0)
    flow.fill_slots_by_label({"origin": "LHR"})
    context, memory = Finder({"destination": "JFK", "origin": "CDG"}), Finder({"date": "never"})
    problems = await flow.fill_slot_values(context, memory)
    assert context.asked == [["destination", "date"]]
    assert memory.asked == [["date"]]
    assert flow.value("origin") == "LHR"
    assert flow.value("destination") == "JFK"
    assert [problem.slot for problem in problems] == ["date"]
    await flow.fill_slot_values(None, Finder({"date": "2026-03-01"}))
    assert flow.slots["date"].source is SlotSource.MEMORY
    await flow.fill_slot_values(context, None)
    assert len(context.asked) == 1


def test_fs6_flows_do_not_share_values() -> None:
    first, second = BOOK_FLIGHT(0.0), BOOK_FLIGHT(0.0)
    first.fill_slots_by_label({"origin": "LHR"})
    assert second.value("origin") is None
    assert first.flow_id != second.flow_id


def test_fs14_turns_are_held_and_bounded() -> None:
    flow = CHAT(0.0)
    for number in (1, 1, 2):
        flow.note_turn(TurnId(f"turn_{number}"))
    assert flow.turn_ids == ["turn_1", "turn_2"]
    for number in range(3, 100):
        flow.note_turn(TurnId(f"turn_{number}"))
    assert len(flow.turn_ids) == 20
    assert flow.turn_ids[0] == "turn_1"
    assert flow.turn_ids[-1] == "turn_99"


def test_a_value_said_again_stays_confirmed_and_another_does_not() -> None:
    flow = BOOK_FLIGHT(0.0)
    flow.fill_slots_by_label({"origin": "LHR"})
    flow.confirm("origin", "seat")
    flow.fill_slots_by_label({"origin": "LHR"})
    assert flow.slots["origin"].confirmed
    flow.fill_slots_by_label({"origin": "CDG"})
    assert not flow.slots["origin"].confirmed


def test_fs2_a_flow_comes_back_from_json() -> None:
    flow = BOOK_FLIGHT(5.0, flow_id=FlowId("flow_1"), plan_id=FlowId("flow_0"))
    flow.fill_slots_by_label({"origin": Mention("LHR", "Heathrow"), "date": "2026-03-01"})
    flow.confirm("origin")
    flow.become(INTERRUPTED)
    flow.interrupted_at, flow.interruption, flow.completed_at = 6.0, "asked for a hotel", 7.0
    flow.outputs = {"booking_ref": "BK-1", "legs": [{"from": "LHR"}]}
    flow.notes = {"shown": [1, 2]}
    flow.consent = Consent(Candidate(ToolId("t"), {"to": ["a"]}, {}, "f", agreed=True), Grant("a", "c"))
    flow.progress = Progress(doubted=True, undo_first=(FlowId("flow_7"),), scratchpad=({"text": "x"},))
    flow.note_turn(TurnId("turn_1"))
    body = json.loads(json.dumps(flow.serialize()))
    again = load_flow(body, FLOW_TYPES)
    assert type(again) is BOOK_FLIGHT
    assert again.serialize() == body
    again.notes["shown"].append(3)
    again.outputs["legs"].append({})
    assert flow.serialize() == body
    for name in vars(flow):
        if name not in {"notes", "outputs"}:
            assert getattr(again, name) == getattr(flow, name), name


@pytest.mark.parametrize("cls", [BOOK_FLIGHT, PLAN_TRIP])
def test_a_flow_whose_type_left_the_domain_is_kept_as_it_is(cls: type[BaseFlow]) -> None:
    flow = cls(5.0)
    flow.fill_slots_by_label({"origin": "LHR"})
    again = load_flow(flow.serialize(), {})
    assert again.serialize() == flow.serialize()
    assert again.spec.intent == RETIRED


def test_a_finished_flow_stays_as_it_is() -> None:
    flow = CHECK_BOOKING(0.0)
    flow.become(COMPLETED)
    with pytest.raises(IllegalTransition, match="from Completed to Pending"):
        flow.become(INTERRUPTED)
