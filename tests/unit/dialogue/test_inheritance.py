"""FS-7, IR-5: values that a new task inherits."""

from __future__ import annotations

from typing import Any

from orchestrator.dialogue.changes.inheritance import inherit
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.questions import AskSlot
from orchestrator.dialogue.records import Shown
from orchestrator.dialogue.slots import SlotSource
from orchestrator.dialogue.specification import Family, Priority
from orchestrator.dialogue.state import DialogueState
from orchestrator.types import Dact, JsonObject, SessionId, ToolId
from tests.unit.dialogue.factories import make_flow_class, make_slot, make_spec

FIND = make_flow_class(
    make_spec(
        "find_table",
        make_slot("city", priority=Priority.REQUIRED),
        make_slot("cuisine"),
        make_slot("party", "number", default=2),
        family=Family.READ,
        description="Find a table.",
        outputs=("city", "cuisine", "party"),
    )
)
BOOK = make_flow_class(
    make_spec(
        "book_table",
        make_slot("name", priority=Priority.REQUIRED),
        make_slot("city", priority=Priority.REQUIRED),
        make_slot("street", priority=Priority.REQUIRED),
        make_slot("party", "number", priority=Priority.REQUIRED),
        description="Book a table.",
        inputs=("name", "city", "street", "party"),
    )
)
ORDER = make_flow_class(
    make_spec(
        "order_table",
        make_slot("name", priority=Priority.REQUIRED),
        make_slot("city", priority=Priority.REQUIRED),
        make_slot("party", "number", priority=Priority.REQUIRED),
        description="Order a table.",
        inputs=("name", "city", "party"),
        confirm=True,
    )
)
HOTEL = make_flow_class(
    make_spec(
        "find_hotel",
        make_slot("town", priority=Priority.REQUIRED, same_as=("find_table.city",)),
        make_slot("nights", "number", priority=Priority.REQUIRED),
        family=Family.READ,
        description="Find a hotel.",
    )
)
ROWS = [
    {"name": "Old Mill", "city": "Oslo", "street": "Mill Lane 3"},
    {"name": "Olive Tree", "city": "Oslo", "street": "High Street 1"},
]


def make_state(**said: Any) -> DialogueState:
    """Return a state after a search with these values, whose rows were displayed."""
    state = DialogueState.new(SessionId("session_1"))
    search = FIND(1.0)
    state.stack.push(search, 1.0)
    search.fill_slots_by_label(said)
    state.stack.complete(search, 1.0)
    state.archive(state.stack.pop_finished(1.0))
    state.note_shown(Shown(ToolId("table_find"), Dact("find_table"), "name", [*ROWS]))
    return state


def begin(state: DialogueState, cls: type[BaseFlow], **said: Any) -> BaseFlow:
    flow = cls(2.0)
    flow.fill_slots_by_label(said)
    inherit(state, flow, said=said)
    return flow


def test_what_is_missing_comes_from_the_row_that_is_named() -> None:
    flow = begin(make_state(city="Oslo"), BOOK, name="Old Mill", party=4)
    assert (flow.value("street"), flow.value("city")) == ("Mill Lane 3", "Oslo")
    assert flow.slots["street"].source is SlotSource.INHERITED


def test_of_several_rows_that_fit_only_what_they_say_alike_is_taken() -> None:
    flow = begin(make_state(), BOOK, city="Oslo", party=4)
    assert "street" not in flow.slots


def test_what_was_said_and_did_not_decide_stays_open() -> None:
    state, flow = make_state(city="Oslo"), BOOK(2.0)
    flow.fill_slots_by_label({"name": "Old Mill"})
    inherit(state, flow, said={"name": "Old Mill", "street": "the other one"})
    assert "street" not in flow.slots


def test_a_default_contradicts_nothing_and_what_was_said_does() -> None:
    assert begin(make_state(city="Bergen"), BOOK, party=4).value("city") == "Bergen"
    assert "city" not in begin(make_state(city="Bergen", party=3), BOOK, party=4).slots


def test_a_search_begun_again_keeps_what_does_not_change() -> None:
    again = begin(make_state(city="Oslo", cuisine="Greek"), FIND, cuisine="Thai")
    assert (again.value("city"), again.value("cuisine")) == ("Oslo", "Thai")
    fresh = begin(make_state(city="Oslo", cuisine="Greek"), FIND, city="Bergen")
    assert "cuisine" not in fresh.slots


def test_the_row_that_is_talked_about_is_taken_by_what_asks_first() -> None:
    state = make_state(city="Oslo")
    assert begin(state, ORDER, party=4).value("name") == "Old Mill"
    state.talk_about(1)
    assert begin(state, ORDER).value("name") == "Olive Tree"
    assert "name" not in begin(state, BOOK, party=4).slots  # without a question to the user


def test_no_row_is_taken_by_who_wants_another_place_or_names_a_row() -> None:
    assert "name" not in begin(make_state(city="Oslo"), ORDER, city="Bergen").slots
    assert begin(make_state(city="Oslo"), ORDER, name="Blue Door").value("name") == "Blue Door"


def test_rows_of_an_earlier_task_are_still_known() -> None:
    state = make_state(city="Oslo")
    state.note_shown(Shown(ToolId("hotel_find"), Dact("find_hotel"), "hotel", [{"hotel": "Fjord"}]))
    assert begin(state, ORDER, party=2).value("name") == "Old Mill"


def test_a_value_by_another_name_is_taken_where_the_message_refers_or_nothing_else_is_missing() -> None:
    state, flow = make_state(city="Oslo"), HOTEL(2.0)
    assert inherit(state, flow, said={}) == []
    assert "town" not in flow.slots
    assert inherit(state, flow, said={}, refers=True) == ["town"]
    assert flow.slots["town"].source is SlotSource.INHERITED
    assert begin(make_state(city="Oslo"), HOTEL, nights=2).value("town") == "Oslo"


def test_what_is_asked_for_again_is_not_taken_as_it_was() -> None:
    """PX-18: the user wants a different value, which is not known yet."""
    state = make_state(city="Oslo", cuisine="Greek", party=4)
    again = FIND(2.0)
    state.stack.push(again, 2.0)
    state.ambiguity.declare(AskSlot(flow_id=again.flow_id, slot="party"))
    flow = begin(state, ORDER, name="Old Mill")
    assert (flow.value("city"), "party" in flow.slots) == ("Oslo", False)


def test_rows_with_the_same_texts_are_named_with_their_keys() -> None:
    times: list[JsonObject] = [
        {"time": at, "dentist": who} for at, who in (("08:00", "hale"), ("09:30", "osei"), ("11:00", "hale"))
    ]
    shown = Shown(ToolId("times_find"), Dact("find_times"), "time", times)
    assert [shown.name(row["time"]) for row in times] == ["08:00, hale", "09:30, osei", "11:00, hale"]
