"""Only a plain yes confirms, for any offer and any interpretation by a model (PX-18)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from orchestrator.types import DEFAULT_TENANT, JsonObject
from parley.simulator import Conversation, Simulator
from parley.testing.scripted_model import Answer, Computed, Reply, Request, Rule
from tests.conversation import scripted
from tests.trained import simulate
from tests.transcripts.not_yes import NOT_YES

EVERY = 32
"""The short form sends one in 32 messages, from another one on for each deed and model."""


class Deed(NamedTuple):
    """An offer after some messages. `plain`: messages that are a yes to it."""

    domain: str
    said: tuple[str, ...]
    plain: tuple[str, ...] = ()


FLIGHT = "book a flight from oslo to rome on 3 december"
DEEDS = {
    "booking": Deed("travel", (FLIGHT,)),
    "cancellation": Deed("travel", (FLIGHT, "yes", "cancel my booking"), ("cancel it",)),
    "deletion": Deed("analytics", ("describe iris", "save it as plants", "drop the table plants")),
    "plan": Deed(
        "travel", ("plan a trip to rome from oslo leaving 1 december and coming back on 5 december",)
    ),
}
EMPTY: JsonObject = {"intent": None, "flows": [], "slots": {}, "target": None, "digression": None}
WRONG: tuple[JsonObject, ...] = (
    {"kind": "chitchat"},
    {"kind": "slot_value"},
    {"kind": "task", "flows": [{"dact": "book_flight", "score": 1.0}]},
    {"kind": "task", "flows": [{"dact": "drop_table", "score": 1.0}]},
    {"kind": "correction", "target": "confirm"},
    {"kind": "resumption"},
)
MODELS: dict[str, tuple[JsonObject, ...]] = {
    "none": (),
    "right": ({"kind": "denial"}, {"kind": "digression", "digression": "question"}, {"kind": "unknown"}),
    "wrong": WRONG,
    "yes-saying": ({"kind": "confirmation"},),
}


async def records_of(simulator: Simulator) -> JsonObject:
    """Return all records of the tools."""
    records = simulator.records.get(DEFAULT_TENANT)
    kinds = () if records is None else ("bookings", "tables", "rows")
    return {kind: await records.find(kind, {}, limit=100) for kind in kinds} if records else {}


@asynccontextmanager
async def offered(deed: Deed, heard: tuple[JsonObject, ...]) -> AsyncIterator[Conversation]:
    """Start a conversation with an offer. From then on, a model gives scripted interpretations."""
    simulator = simulate(deed.domain)
    talk = simulator.converse()
    for words in deed.said:
        turn = await talk.say(words)
    assert turn["ambiguity"]["level"] == "confirmation"
    if not heard:
        yield talk
        return
    asked = 0

    def understand(_request: Request) -> Reply:
        nonlocal asked
        asked += 1
        return Answer(json={**EMPTY, **heard[asked % len(heard)]})

    async with scripted(Rule(prompt="nlu_think", replies=(Computed(understand),))) as (_, pool):
        sections: dict[str, Any] = {"nlu": {"mode": "system2"}}
        beside = simulate(deed.domain, models=pool, sections=sections, beside=simulator)
        beside.now = simulator.now
        yield Conversation(beside, talk.session_id, talk.user_id)
        assert asked > 0


@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("deed", DEEDS)
async def test_what_is_no_plain_yes_does_nothing(deed: str, model: str, every: int) -> None:
    """For a booking, a cancellation, a deletion and a plan."""
    async with offered(DEEDS[deed], MODELS[model]) as talk:
        before = await records_of(talk.simulator)
        first = (len(MODELS) * [*DEEDS].index(deed) + [*MODELS].index(model)) * 2 % every
        for words in NOT_YES[first::every]:
            if words not in DEEDS[deed].plain:
                await talk.branch().say(words)
                assert await records_of(talk.simulator) == before, words
        turn = await talk.say("yes")
        assert await records_of(talk.simulator) != before, turn["reply"]


async def test_what_is_asked_for_beside_an_offer_does_nothing_unasked() -> None:
    """IR-6: seats need no question elsewhere, but “yes, with a window seat” may refer to the offer."""
    async with offered(DEEDS["cancellation"], ()) as talk:
        before = await records_of(talk.simulator)
        turn = await talk.say("yes, with a window seat")
        assert await records_of(talk.simulator) == before
        assert turn["ambiguity"]["level"] == "confirmation"
