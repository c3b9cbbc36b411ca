"""NL-7: values from a model, compared with the words of the conversation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.dialogue.records import History, Shown
from orchestrator.dialogue.slots import EVERY_TYPE
from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.memory.context_coordinator import ContextCoordinator
from orchestrator.nlu.grounding import Grounding
from orchestrator.nlu.nlu_context import NluContext, PastFlow
from orchestrator.nlu.system1.extract.extractor import Extractor
from orchestrator.nlu.validate import Validation
from orchestrator.types import Dact, ToolId
from tests.unit.nlu.flights import BOOK, SEARCH, TODAY, booking, confirming, system1
from tests.unit.nlu.test_modules import FLOW_MAP

VENUE = SlotSpec("venue", "exact", open=True, grounded=True)
DAY = SlotSpec("day", "date", grounded=True)
TIME = SlotSpec("time", "time", grounded=True)
ROWS = Shown(ToolId("find"), Dact("find"), "venue", [{"venue": "Old Mill", "garage": "False"}])


def told(*said: str) -> NluContext:
    history = History([{"role": "user", "text": text} for text in said])
    return NluContext(TODAY, history=ContextCoordinator(history))


@pytest.mark.parametrize(
    ("slot", "value", "text", "founded"),
    [
        (DAY, "2026-12-01", "on the 1st please", True),
        (DAY, "2026-12-14", "on the 1st please", False),
        (DAY, "2026-12-14", "that is good, book it", False),
        (TIME, "19:30", "at half past seven", True),
        (TIME, "19:00", "yes, at seven", True),
        (TIME, "20:00", 'around 8 o"clock at night', True),
        (TIME, "10:00", "that is good, book it", False),
        (VENUE, "Old Mill", "the old mill, please", True),
        (VENUE, "Old Mill", "that one", False),
        (VENUE, "2026-12-01", "on 2026-12-01", False),
    ],
)
def test_days_times_and_names_are_said_or_nobodys(
    slot: SlotSpec, value: str, text: str, founded: bool
) -> None:
    assert Grounding(system1().extractor, told(), text).is_founded(value, slot, BOOK) is founded


@pytest.mark.parametrize(("value", "founded"), [("Old Mill", True), ("False", False), ("Sea View", False)])
def test_a_row_is_called_as_it_was_displayed(value: str, founded: bool) -> None:
    context = replace(told(), shown=ROWS)
    assert Grounding(system1().extractor, context, "that one").is_founded(value, VENUE, BOOK) is founded


def test_what_an_earlier_task_calls_by_another_name_is_founded() -> None:
    town = replace(VENUE, name="town", same_as=("find.city",))
    past = PastFlow(replace(SEARCH, dact="find"), {"city": "Bergen"})
    context = replace(told(), completed=(past,))
    assert Grounding(system1().extractor, context, "a bus there").is_founded("Bergen", town, BOOK)


def validated(
    kind: MessageKind, context: NluContext, *dacts: str, text: str = "", **slots: object
) -> Understanding:
    scores = tuple(FlowScore(Dact(dact), 0.9) for dact in dacts)
    mentions = {name: Mention(value, str(value)) for name, value in slots.items()}
    flows = {dact: _grounded(flow) for dact, flow in FLOW_MAP.items()}
    understood = Understanding(kind, Source.SYSTEM2, text, flows=scores, slots=mentions)
    return Validation(flows, EVERY_TYPE, system1().extractor).validate(understood, context)[0]


def _grounded(flow: FlowSpec) -> FlowSpec:
    return replace(flow, slots={name: replace(slot, grounded=True) for name, slot in flow.slots.items()})


@pytest.mark.parametrize("kind", [MessageKind.SLOT_VALUE, MessageKind.CONFIRMATION])
def test_another_day_than_was_said_leaves_the_day_open(kind: MessageKind) -> None:
    """PX-18: the stored value is no longer wanted, so a confirmation of it does not count."""
    context = replace(confirming(), active=_grounded(BOOK))
    result = validated(kind, context, text="make it another day", date="2026-12-20")
    assert (result.kind, result.slots["date"].is_open) == (MessageKind.CORRECTION, True)


def test_what_a_new_task_was_given_and_nobody_said_is_asked_for() -> None:
    """FS-7: the value is not inherited from an earlier task either."""
    result = validated(MessageKind.TASK, told(), "book_flight", text="book it", date="2026-12-20")
    assert result.slots["date"].is_open


@pytest.mark.parametrize(
    ("kind", "dact"), [(MessageKind.CHITCHAT, "book_flight"), (MessageKind.TASK, "check_booking")]
)
def test_values_of_the_task_at_work_are_for_it(kind: MessageKind, dact: str) -> None:
    """Otherwise, the old value would be offered and confirmed again."""
    result = validated(kind, booking(), dact, text="on Sunday", date="2026-11-22")
    assert (result.kind, result.slots["date"].value) == (MessageKind.SLOT_VALUE, "2026-11-22")


@pytest.mark.parametrize(
    "kind", [MessageKind.SLOT_VALUE, MessageKind.CORRECTION, MessageKind.DENIAL, MessageKind.CHITCHAT]
)
def test_values_of_a_task_that_nobody_works_on_ask_for_it(kind: MessageKind) -> None:
    """The active task was started by mistake, or should wait."""
    result = validated(kind, booking(), "check_booking", text="PX4K2L is my reference", ref="PX4K2L")
    assert (result.kind, result.slots["ref"].value) == (MessageKind.TASK, "PX4K2L")


@pytest.mark.parametrize(
    ("kind", "dact"),
    [
        (MessageKind.CANCELLATION, "search_flights"),
        (MessageKind.CHITCHAT, "search_flights"),
        (MessageKind.DENIAL, "search_flights"),
        (MessageKind.TASK, "check_booking"),
    ],
)
def test_values_of_what_was_looked_up_look_it_up_again(kind: MessageKind, dact: str) -> None:
    context = replace(told(), completed=(PastFlow(SEARCH, {"origin": "OSL", "date": "2026-11-21"}),))
    result = validated(kind, context, dact, text="on Sunday", date="2026-11-22")
    assert (result.kind, result.slots["date"].value) == (MessageKind.CORRECTION, "2026-11-22")


def read(source: Source, text: str, **slots: Mention) -> Understanding:
    return Understanding(MessageKind.SLOT_VALUE, source, text, slots=slots)


def test_what_one_reader_has_not_understood_the_other_may_have() -> None:
    text = "on Sunday for two"
    model = read(Source.SYSTEM2, text, date=Mention(None, invalid="“Ann” is no day."), passengers=Mention(2))
    other = read(Source.SYSTEM1, text, date=Mention("2026-11-22"), passengers=Mention(2))
    assert model.with_undecided(other).slots["date"].value == "2026-11-22"


def test_words_that_are_another_slots_value_leave_no_row_open() -> None:
    """“Just one” is one passenger, although it could be a row."""
    text = "just one"
    rows = Mention(None, text, ("QX1", "QX2"))
    model = read(Source.SYSTEM2, text, passengers=Mention(1, "1"))
    assert model.with_undecided(read(Source.SYSTEM1, text, flight=rows)).slots.keys() == {"passengers"}
    assert read(Source.SYSTEM2, text).with_undecided(read(Source.SYSTEM1, text, flight=rows)).slots == {
        "flight": rows
    }


ROOMS = SlotSpec("number_of_rooms", "category", values=("1", "2", "3"))
DAYS = SlotSpec("stay_length", "number", description="Length of stay in days")
PLACE = SlotSpec("place", "exact", open=True, grounded=True)
STAY = replace(BOOK, dact="book_room", slots={one.name: one for one in (ROOMS, DAYS, DAY, PLACE)})


@pytest.mark.parametrize(
    ("slot", "value", "text", "contradicted"),
    [
        (DAYS, 3, "three rooms, and I will stay for 5 days", True),
        (ROOMS, "2", "three rooms, and I will stay for 5 days", True),
        (DAYS, 5, "three rooms, and I will stay for 5 days", False),
        (DAYS, 2, "two rooms please", True),
        (ROOMS, "2", "for me and my wife", False),
        (ROOMS, "3", "two more rooms", False),
        (ROOMS, "1", "1 hotel room with a view", False),
        (ROOMS, "3", "two rooms for us and one room for Ann", False),
        (DAYS, 7, "for a week", False),
    ],
)
def test_a_number_counts_what_the_words_count_by_it(
    slot: SlotSpec, value: object, text: str, contradicted: bool
) -> None:
    """PX-18: two numbers that a model has swapped are not offered."""
    assert Grounding(system1().extractor, told(), text).is_contradicted(value, slot, STAY) is contradicted


@pytest.mark.parametrize(
    ("value", "text", "contradicted"),
    [
        ("business", "a flight to Madrid in economy", True),
        ("business", "not in economy but in premium", False),
        ("business", "not in economy", False),
        ("business", "with more room for my legs", False),
        ("economy", "economy, and business on the way back", False),
    ],
)
def test_another_listed_value_in_the_message_contradicts_a_value(
    value: str, text: str, contradicted: bool
) -> None:
    grounding = Grounding(system1().extractor, told(), text)
    assert grounding.is_contradicted(value, BOOK.slots["cabin"], BOOK) is contradicted


def test_a_value_with_a_colon_is_not_always_a_time() -> None:
    flow = replace(BOOK, slots={"time": TIME})
    grounding = Grounding(Extractor([flow], {}, frozenset()), told(), "at 10:00")
    assert grounding.read_again(TIME, flow, {"time"}, ["gate:00"]) == Mention("10:00", "10:00")


def stay(kind: MessageKind, context: NluContext, text: str, **slots: object) -> Understanding:
    mentions = {name: Mention(value, str(value)) for name, value in slots.items()}
    understood = Understanding(
        kind, Source.SYSTEM2, text, flows=(FlowScore(Dact("book_room"), 0.9),), slots=mentions
    )
    flows = {**FLOW_MAP, "book_room": STAY}
    return Validation(flows, EVERY_TYPE, system1().extractor).validate(understood, context)[0]


def values(understood: Understanding) -> dict[str, object]:
    return {name: one.value for name, one in understood.slots.items()}


def test_numbers_that_a_model_has_exchanged_are_read_in_the_words() -> None:
    text = "I need three rooms, and will stay for 5 days"
    result = stay(MessageKind.TASK, told(), text, number_of_rooms="5", stay_length="3")
    assert values(result) == {"number_of_rooms": "3", "stay_length": 5}


def test_values_that_are_none_where_a_model_has_put_them_change_places() -> None:
    result = stay(MessageKind.TASK, told(), "2 rooms on the 1st", number_of_rooms="2026-12-01", day="2")
    assert values(result) == {"number_of_rooms": "2", "day": "2026-12-01"}


@pytest.mark.parametrize(("text", "day"), [("on the 1st", "2026-12-01"), ("on the 1st or the 3rd", None)])
def test_what_nobody_said_is_read_in_the_words_where_they_leave_no_choice(text: str, day: str | None) -> None:
    assert values(stay(MessageKind.TASK, told(), text, day="2026-12-20")) == {"day": day}


def test_a_bare_name_is_not_taken_for_what_nobody_said() -> None:
    """“As” is not a place."""
    assert values(stay(MessageKind.TASK, told(), "As soon as possible", place="Sea View")) == {"place": None}


def test_a_day_that_a_model_names_as_it_was_written_is_decided() -> None:
    """Only the local classifier reads “From 2026-12-04 to 2026-12-08, with two days in Rome” as a range of days."""
    text = "from 2026-12-04 to 2026-12-08, with two days in Rome"
    stretch = Mention(None, "2026-12-04", ("2026-12-04", "2026-12-05"))
    model = read(Source.SYSTEM2, text, date=Mention("2026-12-04", "2026-12-04"))
    assert model.with_undecided(read(Source.SYSTEM1, text, date=stretch)).slots["date"].value == "2026-12-04"
