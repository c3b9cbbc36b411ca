"""PL-8: steps that users forbid or add, without a model and with a wrong model."""

from __future__ import annotations

from typing import Any

import pytest

from parley.simulator import Conversation
from tests.cases import for_each
from tests.transcripts.test_never_the_wrong_deed import booked
from tests.transcripts.test_no_yes_no_deed import DEEDS, MODELS, offered

OUT, BACK = ("OSL", "FCO"), ("FCO", "OSL")


async def end_by_yes(talk: Conversation, turn: dict[str, Any]) -> dict[str, Any]:
    """Agree to every offer."""
    while turn["ambiguity"] is not None and turn["ambiguity"]["level"] == "confirmation":
        turn = await talk.say("yes")
    return turn


@for_each("model", ["none", "wrong"])
@for_each(
    ("words", "done"),
    [
        ("please don't book the return", [OUT]),
        ("you needn't book the return flight", [OUT]),
        ("I'd rather not book the outbound flight", [BACK]),
        ("never book the outbound one, please", [BACK]),
        ("do not book anything", []),
        ("please never book any of it", []),
    ],
)
async def test_a_forbidden_step_is_left_out(words: str, done: list[tuple[str, str]], model: str) -> None:
    async with offered(DEEDS["plan"], MODELS[model]) as talk:
        turn = await talk.say(words)

        assert await booked(talk) == []
        assert "I'll leave out" in turn["reply"]
        await talk.branch().say("what a pity about that")
        assert await booked(talk) == []
        await end_by_yes(talk, turn)
        assert await booked(talk) == done


@pytest.mark.parametrize(
    "words", ["don't change the return flight", "don't cancel the outbound", "don't book it"]
)
async def test_what_a_plan_does_not_do_leaves_its_steps(words: str) -> None:
    async with offered(DEEDS["plan"], ()) as talk:
        turn = await talk.say(words)

        assert await booked(talk) == []
        assert "I'll leave out" not in turn["reply"]
        assert {"plan_trip", "book_flight"} <= {flow["dact"] for flow in turn["flows"]}


@for_each(
    ("words", "request_"),
    [
        ("afterwards, please add two bags", "add two bags"),
        ("add a bag once everything is booked", "add a bag"),
        ("show me flights from Rome to Paris on 9 december after that", "show me flights from Rome to Paris"),
        ("and when the flights are booked, change my booking", "change my booking"),
    ],
)
async def test_a_request_for_later_comes_after_the_plan(words: str, request_: str) -> None:
    async with offered(DEEDS["plan"], ()) as talk:
        turn = await talk.say(words)

        assert f"After that, I'll get to “{request_}" in turn["reply"]
        assert await booked(talk) == []
        assert turn["ambiguity"]["level"] == "confirmation"
        await talk.say("yes")
        ended = await talk.say("yes")
        assert await booked(talk) == sorted([OUT, BACK])
        assert f"Now to “{request_}" in ended["reply"]


@for_each(
    ("words", "quoted"),
    [
        ("also reserve a hotel after that", "hotel"),
        ("at the end, water my plants", "water my plants"),
        ("don't send the e-mail", "mail"),
        ("please don't order the taxi", "taxi"),
    ],
)
async def test_what_a_plan_cannot_do_is_named(words: str, quoted: str) -> None:
    async with offered(DEEDS["plan"], ()) as talk:
        turn = await talk.say(words)

        assert "I didn't understand" in turn["reply"]
        assert quoted in turn["reply"]
        assert await booked(talk) == []


async def test_a_plan_tells_its_current_step() -> None:
    """PL-4: in the stored record, as steps are completed and skipped."""
    async with offered(DEEDS["plan"], ()) as talk:
        told = [current_step(talk)]
        await talk.say("yes")
        told.append(current_step(talk))
        await talk.say("skip the return flight")
        told.append(current_step(talk))

    assert told == ["book_outbound", "book_return", None]


def current_step(talk: Conversation) -> str | None:
    [plan] = talk.simulator.store.sessions[talk.session_id].plans.values()
    return plan.record.body["current_step"]


@pytest.mark.parametrize(
    ("words", "label", "bags"),
    [
        ("also add a bag to the outbound flight", "add a bag to the outbound flight", {OUT: 1}),
        ("and please add 2 bags to the return too", "add 2 bags to the return", {BACK: 2}),
        ("then put 3 bags on the way back", "put 3 bags on the way back", {BACK: 3}),
    ],
)
async def test_a_step_that_the_user_adds_is_part_of_the_plan(
    words: str, label: str, bags: dict[tuple[str, str], int]
) -> None:
    """PL-8: it waits for the step whose result it needs, and appears in the progress."""
    async with offered(DEEDS["plan"], ()) as talk:
        added = await talk.say(words)

        assert f"I've added “{label}” to the plan" in added["reply"]
        assert await booked(talk) == []
        [plan] = talk.simulator.store.sessions[talk.session_id].plans.values()
        assert (plan.record.body["progress"], "add_baggage" in plan.record.body["remaining"]) == (
            "3 of 7",
            True,
        )
        assert label in (await talk.say("what is left to do?"))["reply"]
        offer = await talk.say("yes")
        offer = offer if "Shall I add" in offer["reply"] else await talk.say("yes")
        assert "Shall I add" in offer["reply"]
        ended = await end_by_yes(talk, offer)
        assert await booked(talk) == sorted([OUT, BACK])
        assert await count_bags(talk) == bags
        assert "planned and booked" in ended["reply"]


async def test_a_step_for_what_is_booked_already_and_one_that_falls_away_with_its_own() -> None:
    async with offered(DEEDS["plan"], ()) as talk:
        await talk.say("yes")
        await talk.say("also add a bag to the outbound flight")
        await talk.say("add 2 bags to the return")
        left = await talk.say("don't reserve the way back")

        assert "I'll leave out “book the return flight”" in left["reply"]
        assert "Left out: add 2 bags to the return" in left["reply"]
        assert "Shall I add it?" in left["reply"]
        ended = await talk.say("yes")
        assert (await booked(talk), await count_bags(talk)) == ([OUT], {OUT: 1})
        assert "Not done" not in ended["reply"]


async def count_bags(talk: Conversation) -> dict[tuple[str, str], int]:
    held = await talk.simulator.records[talk.tenant_id].find("bookings")
    return {(one["origin"], one["destination"]): one["bags"] for one in held if one.get("bags")}
