"""Misinterpretations by a model cause no lasting action without a yes (PX-18, RT-12)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from orchestrator.types import DEFAULT_TENANT
from parley.simulator import Conversation
from parley.testing.scripted_model import Answer, Computed, Reply, Request, Rule
from tests.cases import for_each
from tests.conversation import scripted
from tests.trained import simulate
from tests.transcripts.test_never_the_wrong_deed import TRIP, booked


@asynccontextmanager
async def misled(
    meanings: dict[str, dict[str, Any]], domain: str = "analytics"
) -> AsyncIterator[Conversation]:
    """Start a conversation with scripted model interpretations, even wrong ones."""

    def understand(request: Request) -> Reply:
        empty: dict[str, Any] = {"intent": None, "flows": [], "slots": {}, "target": None, "digression": None}
        return Answer(json={"kind": "unknown", **empty, **meanings.get(request.said, {})})

    async with scripted(Rule(prompt="nlu_think", replies=(Computed(understand),))) as (_, pool):
        simulator = simulate(domain, models=pool, sections={"nlu": {"mode": "system2"}})
        yield simulator.converse()


def as_task(dact: str, **slots: Any) -> dict[str, Any]:
    return {"kind": "task", "flows": [{"dact": dact, "score": 0.95}], "slots": slots}


SAVE = "keep a copy of cars that is called autos"


async def test_what_a_model_alone_understands_is_asked_about_before_it_lasts() -> None:
    """PX-18: although the task needs no yes if System 1 agrees."""
    async with misled({SAVE: as_task("save_result", table="iris", new_name="autos")}) as talk:
        turn = await talk.say(SAVE)

        assert turn["ambiguity"]["level"] == "confirmation"
        assert await saved(talk) == []
        await talk.say("yes")
        assert await saved(talk) == ["autos"]


async def test_a_question_is_no_yes_whatever_a_model_takes_it_for() -> None:
    ask = "is that really right"
    async with misled({ask: {"kind": "confirmation"}}) as talk:
        await talk.say("describe iris")
        await talk.say("save it as plants")
        offer = await talk.say("drop the table plants")
        turn = await talk.say(ask)
        assert await saved(talk) == ["plants"]
        assert offer["ambiguity"]["level"] == turn["ambiguity"]["level"] == "confirmation"
        await talk.say("yes")
        assert await saved(talk) == []


MISREAD: tuple[dict[str, Any], ...] = (
    *({"kind": kind} for kind in ("task", "slot_value", "confirmation", "resumption", "chitchat", "unknown")),
    *(
        {"kind": "digression", "digression": one}
        for one in ("question", "clarification", "help", "status", "page")
    ),
    *({"kind": kind, "digression": "question"} for kind in ("unknown", "chitchat")),
)


@for_each("heard", MISREAD, ids=lambda one: "-".join(one.values()))
async def test_a_correction_that_a_model_misreads_at_an_offer_is_named(heard: dict[str, Any]) -> None:
    """IR-6: for any misinterpretation, even with invented quotes."""
    ask, correct = (
        "book a flight from Oslo to Helsinki on 1 december for 1 person",
        "rather than Helsinki, Madrid",
    )
    meant = as_task("book_flight", origin="Oslo", destination="Helsinki", date="2026-12-01", passengers=1)
    misheard = {**heard, "not_understood": ["please", "the"]}
    if heard["kind"] == "unknown":
        misheard["slots"] = {"destination": "Madrid"}
    async with misled({ask: meant, correct: misheard}, "travel") as talk:
        offer = await talk.say(ask)
        assert offer["ambiguity"]["level"] == "confirmation"
        assert "Helsinki" in offer["reply"]

        turn = await talk.say(correct)

        assert "Madrid" in turn["reply"], turn["reply"]
        assert "“please”" not in turn["reply"], turn["reply"]
        assert await booked(talk) == []


@for_each("words", ["sorry, on december 12", "no, Madrid", "in business", "no, make it: call Anna at four"])
async def test_a_correction_read_as_another_task_changes_nothing_silently(words: str) -> None:
    """IR-6: during an offer, values without a word of the other task are not a request for it."""
    _, _, last = words.rpartition(" ")
    ask = "book a flight from Oslo to Helsinki on 1 december for 1 person"
    meant = as_task("book_flight", origin="Oslo", destination="Helsinki", date="2026-12-01", passengers=1)
    searching = as_task("search_flights", origin="Oslo", destination="Madrid", date="2026-12-12")
    async with misled({ask: meant, words: searching}, "travel") as talk:
        await talk.say(ask)

        turn = await talk.say(words)

        assert "I didn't understand" in turn["reply"], turn["reply"]
        assert f"{last}”" in turn["reply"], turn["reply"]
        assert turn["ambiguity"]["level"] == "confirmation"
        assert await booked(talk) == []


async def test_a_correction_read_as_a_correction_of_a_lookup_is_named() -> None:
    """IR-6: “rather on december 12” during an offer changes no search that was done before."""
    find, ask, correct = (
        "flights from Oslo to Helsinki on 1 december",
        "book a flight from Oslo to Helsinki on 1 december",
        "rather on december 12",
    )
    slots = {"origin": "Oslo", "destination": "Helsinki", "date": "2026-12-01"}
    misheard = {"kind": "correction", "target": "search_flights", "slots": {"date": "2026-12-12"}}
    heard = {
        find: as_task("search_flights", **slots),
        ask: as_task("book_flight", **slots),
        correct: misheard,
    }
    async with misled(heard, "travel") as talk:
        await talk.say(find)
        offer = await talk.say(ask)

        turn = await talk.say(correct)

        assert "december 12" in turn["reply"], turn["reply"]
        assert turn["reply"].endswith(offer["reply"]), turn["reply"]
        assert turn["tools"] == []
        assert await booked(talk) == []


@for_each("praise", ["great, thanks", "wonderful!"])
@for_each(
    "heard",
    [{"kind": "denial"}, {"kind": "cancellation"}, as_task("cancel_booking"), as_task("check_booking")],
)
async def test_praise_books_nothing_where_a_model_has_heard_no_yes(
    praise: str, heard: dict[str, Any]
) -> None:
    """PX-18: praise may also end the conversation, and a yes with praise is not plain."""
    ask = "book the cheapest flight from oslo to rome on 1 december for 1 person"
    meant = as_task("book_flight", origin="Oslo", destination="Rome", date="2026-12-01", passengers=1)
    for said, done in ((praise, []), (f"yes, {praise}", []), ("yes", [("OSL", "FCO")])):
        async with misled(
            {ask: meant, "the cheapest one": {"kind": "slot_value"}, said: heard}, "travel"
        ) as talk:
            turn = await talk.say(ask)
            if turn["ambiguity"]["level"] != "confirmation":
                turn = await talk.say("the cheapest one")
            assert turn["ambiguity"]["level"] == "confirmation"
            await talk.say(said)
            assert await booked(talk) == done


async def test_a_decision_about_what_was_done_is_not_a_models_to_name() -> None:
    """RT-12: undoing needs the user's choice."""
    undo = {"kind": "correction", "target": "compensate_effect"}
    change = {**as_task("plan_trip"), "kind": "correction", "slots": {"destination": "Paris"}}
    trip = as_task(
        "plan_trip", origin="Oslo", destination="Rome", date="2026-12-01", return_date="2026-12-05"
    )
    async with misled(
        {TRIP.format("rome"): trip, "yes": {"kind": "confirmation"}, "to paris": change, "hm": undo}, "travel"
    ) as talk:
        for words in (TRIP.format("rome"), "yes", "to paris"):
            turn = await talk.say(words)
        assert [action["name"] for action in turn["actions"]][:2] == ["keep_effect", "compensate_effect"]

        await talk.say("hm")

        assert await booked(talk) == [("OSL", "FCO")]


async def saved(talk: Conversation) -> list[str]:
    """Return the saved tables in the store."""
    records = talk.simulator.records.get(DEFAULT_TENANT)
    found = [] if records is None else await records.find("tables", {"status": "kept"}, limit=100)
    return [one["name"] for one in found]


async def test_a_booking_that_failed_is_not_told_as_done_with_its_plan() -> None:
    """PL-7: a substitute for a lasting step does not complete the step."""
    trip = as_task(
        "plan_trip", origin="Oslo", destination="Rome", date="2026-12-01", return_date="2026-12-05"
    )
    another = {**as_task("book_flight", flight_number="QX7636"), "kind": "correction"}
    async with misled(
        {TRIP.format("rome"): trip, "hm": another, "yes": {"kind": "confirmation"}}, "travel"
    ) as talk:
        for words in (TRIP.format("rome"), "hm", "yes"):
            turn = await talk.say(words)

    assert await booked(talk) == [("FCO", "OSL")]
    assert "planned and booked" not in turn["reply"]
    assert "Not done: book the outbound flight" in turn["reply"]


async def test_a_change_that_a_model_takes_for_something_else_is_not_passed_over() -> None:
    """PX-18: otherwise the old day would be offered again, and a yes would book it."""
    fly, later = "fly from oslo to rome on 2026-12-01", "make that 2026-12-03"
    for wrong in ({"kind": "chitchat"}, as_task("check_booking"), as_task("no_such_task")):
        meant = {**wrong, "slots": {"date": "2026-12-03"}}
        booking = as_task("book_flight", origin="Oslo", destination="Rome", date="2026-12-01")
        async with misled({fly: booking, later: meant}, "travel") as talk:
            await talk.say(fly)
            turn = await talk.say(later)
        assert "3 December" in turn["reply"], turn["reply"]
        assert turn["ambiguity"]["level"] == "confirmation"


async def test_a_step_of_plans_is_not_begun_by_itself() -> None:
    """Users can't name the fares that the step needs, so a request during an offer does not ask for them."""
    ask = "what are the outbound fares"
    meanings = {
        "fly me from oslo to rome on 3 december": as_task(
            "book_flight", origin="Oslo", destination="Rome", date="3 december"
        ),
        ask: as_task("compare_fares"),
    }
    async with misled(meanings, "travel") as talk:
        await talk.say("fly me from oslo to rome on 3 december")
        turn = await talk.say(ask)
        assert [flow["dact"] for flow in turn["flows"]] == ["book_flight"]
        assert turn["tools"] == []
        assert turn["reply"].endswith("Shall I book it?")


async def test_a_flow_that_only_events_start_cannot_be_requested() -> None:
    """NL-7: a reminder is due when its event arrives, whatever a model reads."""
    ask = "check in three bags to PX7K2M"
    async with misled({ask: as_task("tell_reminder", booking_ref="PX7K2M")}, "travel") as talk:
        turn = await talk.say(ask)

        assert "Reminder" not in turn["reply"], turn["reply"]
        assert [flow["dact"] for flow in turn["flows"]] == ["add_baggage"]


async def test_a_slot_that_a_model_invents_moves_no_task_to_another_flow() -> None:
    """NL-9: no table task has a slot `question`, and `table` is one of several unrequested slots."""
    ask = "how many orders were there in March by city?"
    for slots in ({"question": "orders in March"}, {"table": "orders"}, {"new_name": "March"}):
        async with misled({ask: as_task("ask_data", **slots)}) as talk:
            turn = await talk.say(ask)
            assert turn["reply"] == "I couldn't work this out just now.", (
                "the skill ran, and its model said nothing"
            )
            assert turn["ambiguity"] is None
            assert await saved(talk) == []


@for_each("dact", ["remember_preference", "drop_reminder", "forget_preference"])
async def test_what_only_a_model_wants_to_keep_or_drop_is_asked_about(dact: str) -> None:
    said = "what a lovely day"
    slots = {"remember_preference": {"preference": "I hate windows"}}.get(dact, {})
    async with misled({said: as_task(dact, **slots)}, "travel") as talk:
        turn = await talk.say(said)

        assert turn["ambiguity"]["level"] == "confirmation"
        assert turn["tools"] == []
