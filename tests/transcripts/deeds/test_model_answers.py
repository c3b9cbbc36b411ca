"""Correct, sloppy and wrong answers of models: a recorded set, judged by actions and replies (NL-9, PX-18)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from orchestrator.memory.tokenizer import count_tokens
from orchestrator.types import JsonObject
from parley.simulator import Conversation
from parley.testing.scripted_model import Answer, Rule, ScriptedModel
from tests.cases import for_each
from tests.conversation import scripted
from tests.trained import simulate
from tests.transcripts.test_misled_by_a_model import saved
from tests.transcripts.test_never_the_wrong_deed import booked

FLY, SAVE = (
    "i must be in rome on 3 december, coming from oslo, so get me there",
    "put a copy of cars aside and call it autos",
)
DOMAINS = {FLY: "travel", SAVE: "analytics"}
RIGHT = {
    FLY: {
        "kind": "task",
        "intent": "Book",
        "flows": [{"dact": "book_flight", "score": 0.95}],
        "slots": {"origin": "Oslo", "destination": "Rome", "date": "2026-12-03"},
        "target": None,
        "digression": None,
    },
    SAVE: {
        "kind": "task",
        "intent": "Keep",
        "flows": [{"dact": "save_result", "score": 0.95}],
        "slots": {"table": "cars", "new_name": "autos"},
        "target": None,
        "digression": None,
    },
}
MOST_TOKENS = {FLY: 2_000, SAVE: 3_000}
"""Maximum tokens for the first message of a conversation, without the schema, estimated like budgets."""


@asynccontextmanager
async def answered(said: str, *answers: Answer) -> AsyncIterator[tuple[Conversation, ScriptedModel]]:
    """Hold a conversation in a message's domain, with a model that gives this answer to each message."""
    async with scripted(Rule(prompt="nlu_think", replies=answers)) as (model, pool):
        simulator = simulate(DOMAINS[said], models=pool, sections={"nlu": {"mode": "system2"}})
        yield simulator.converse(), model


async def done(talk: Conversation) -> list[Any]:
    return [*await booked(talk), *await saved(talk)]


async def agree_if_asked(talk: Conversation, turn: JsonObject) -> None:
    if turn["ambiguity"] is not None:
        await talk.act(turn["actions"][0]["name"], turn["actions"][0]["payload"])


DONE = {FLY: [("OSL", "FCO")], SAVE: ["autos"]}


def sloppy(said: str) -> dict[str, str]:
    """Yield correct answers in careless forms, as models write them."""
    right = RIGHT[said]
    text, slots = json.dumps(right), dict(right["slots"])
    dact = right["flows"][0]["dact"]
    other = {"dact": "list_bookings" if said == FLY else "list_tables", "score": 0.2}
    return {
        "right": text,
        "fenced": f"```json\n{json.dumps(right, indent=2)}\n```",
        "prose around it": f"Sure! Here is what the user means:\n```\n{text}\n```\nLet me know if you need more.",
        "prose without a fence": f"The answer is {text} I hope this helps.",
        "trailing commas": text.replace("}]", "},]")[:-1] + ",}",
        "names in other cases": json.dumps(
            {**right, "flows": [{"dact": dact.replace("_", " ").title(), "score": 1}],
             "slots": {name.title().replace("_", "-"): value for name, value in slots.items()}}
        ),
        "extra keys": json.dumps({**right, "reasoning": "It says so.", "confidence": {"overall": "high"}}),
        "several flows": json.dumps({**right, "flows": [other, *right["flows"], {"dact": "no_such", "score": 0.9}]}),
        "values in other cases": json.dumps({**right, "slots": {n: str(v).upper() for n, v in slots.items()}}),
        "null among the values": json.dumps({**right, "slots": {**slots, "cabin": None, "by": None}}),
    }  # fmt: skip


@for_each("said", [FLY, SAVE])
@for_each("how", sloppy(FLY))
async def test_an_answer_that_means_the_right_thing_is_understood(said: str, how: str) -> None:
    """With one short model call, and one yes if the task needs it."""
    async with answered(said, Answer(text=sloppy(said)[how])) as (talk, model):
        turn = await talk.say(said)
        assert turn["flags"].get("degraded") is not True
        (asked,) = model.requests_for("nlu_think")
        assert sum(count_tokens(str(one["content"])) for one in asked.messages) <= MOST_TOKENS[said]
        await agree_if_asked(talk, turn)
        assert await done(talk) == DONE[said], turn["reply"]


CUT = {"cut_at": 60, "finish_reason": "length"}


@pytest.mark.parametrize("said", [FLY, SAVE])
async def test_an_answer_that_was_cut_off_is_asked_for_again(said: str) -> None:
    text = json.dumps(RIGHT[said])
    async with answered(said, Answer(text=text, **CUT), Answer(text=text)) as (talk, model):
        turn = await talk.say(said)
        assert len(model.requests_for("nlu_think")) == 2
        await agree_if_asked(talk, turn)
        assert await done(talk) == DONE[said]


@for_each("said", [FLY, SAVE])
@for_each(
    "answer",
    [
        Answer(text='{"kind": "task", "flows": [{"dact": "book_flight"', **{**CUT, "cut_at": None}),
        Answer(text="I would rather not say."),
        Answer(json={"kind": "Buchung", "flows": [], "slots": {}}),
        Answer(json={"kind": "task", "flows": "book_flight", "slots": ["Oslo", "Rome"]}),
        Answer(text=""),
    ],
    ids=["always cut off", "prose alone", "a kind that there is not", "another shape", "nothing"],
)
async def test_what_is_no_answer_leaves_the_message_to_system_1(said: str, answer: Answer) -> None:
    async with answered(said, answer) as (talk, _model):
        turn = await talk.say(said)
        assert turn["flags"]["degraded"] is True
        assert await done(talk) in ([], DONE[said])  # System 1 may interpret it equally well


def wrong(said: str, **changed: Any) -> str:
    return json.dumps({**RIGHT[said], **changed})


def task(dact: str, **slots: Any) -> dict[str, Any]:
    return {"flows": [{"dact": dact, "score": 0.99}], "slots": slots}


WRONG: list[tuple[str, str]] = [
    (FLY, wrong(FLY, **task("buy_aeroplane", destination="Rome"))),
    (FLY, wrong(FLY, slots={"origin": "Oslo", "destination": "Paris", "date": "2026-12-24"})),
    (FLY, wrong(FLY, slots={"origin": "Atlantis", "destination": "Rome", "date": "never", "passengers": "many"})),
    (FLY, wrong(FLY, **task("cancel_booking", booking_ref="ABC123"))),
    (FLY, wrong(FLY, kind="confirmation")),
    (FLY, wrong(FLY, kind="correction", target="Undo it and do it again with Rome")),
    (SAVE, wrong(SAVE, **task("sell_table", table="cars"))),
    (SAVE, wrong(SAVE, **task("export", table="penguins"))),
    (SAVE, wrong(SAVE, **task("cancel_schedule", number=1))),
]  # fmt: skip


@for_each(("said", "answer"), WRONG)
async def test_a_wrong_answer_does_nothing_by_itself(said: str, answer: str) -> None:
    """Unknown flows, invented values, an invented yes: at most, the assistant asks about them."""
    async with answered(said, Answer(text=answer)) as (talk, _model):
        turn = await talk.say(said)
        assert await done(talk) == []
        assert any(one in turn["reply"] for one in ("?", "n't", "not sure")), turn["reply"]
        assert turn["flows"] == [] or turn["ambiguity"] is not None, turn["reply"]


@pytest.mark.parametrize("changed", [{"kind": "confirmation"}, {"kind": "correction", "target": "undo"}])
async def test_values_that_begin_a_task_ask_for_it_whatever_kind_is_named(changed: dict[str, str]) -> None:
    async with answered(SAVE, Answer(text=wrong(SAVE, **changed))) as (talk, _model):
        turn = await talk.say(SAVE)
        await agree_if_asked(talk, turn)
        assert await done(talk) == DONE[SAVE]


@for_each("said", [FLY, SAVE])
@for_each(
    "answer",
    [
        {"kind": "confirmation"},
        {"kind": "confirmation", "target": "Yes, everything"},
        {"kind": "slot_value", "slots": {"flight_number": "XX999", "table": "penguins"}},
        {"kind": "slot_value", "target": "the option that was not shown"},
        {"kind": "task", "flows": [{"dact": "no_such_flow", "score": 1.0}]},
    ],
    ids=["a yes", "a yes with words", "a row that was not shown", "an option that was not shown", "no such flow"],
)  # fmt: skip
async def test_what_nobody_has_said_agrees_to_nothing(said: str, answer: dict[str, Any]) -> None:
    """The user asks something while a yes is expected; only the user's own yes acts."""
    offered = wrong(said)
    asked = json.dumps(
        {"intent": None, "flows": [], "slots": {}, "target": None, "digression": None, **answer}
    )
    async with answered(said, Answer(text=offered), Answer(text=asked)) as (talk, _model):
        offer = await talk.say(said)
        assert offer["ambiguity"]["level"] == "confirmation", offer["reply"]
        await talk.say("hm, what would that mean for me then")
        assert await done(talk) == []
