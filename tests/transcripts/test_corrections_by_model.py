"""Corrections interpreted by a model: the flow in the interpretation identifies the task."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator.types import JsonObject
from parley.simulator import Conversation
from tests.transcripts.test_misled_by_a_model import as_task, misled

UNDO = "Undo it and do it again with Lisbon (LIS)"
HEARD: dict[str, JsonObject] = {
    "fly me from Oslo to Madrid": as_task("book_flight", origin="Oslo", destination="Madrid"),
    "on Friday": {**as_task("book_flight", date="2026-11-27"), "kind": "slot_value"},
    "yes": {"kind": "confirmation"},
    "Lisbon, I meant": {**as_task("book_flight", destination="Lisbon"), "kind": "correction"},
    "well, fix the booking accordingly": {"kind": "correction", "target": UNDO},
    "what would that cost me": {"kind": "correction", "target": UNDO},
    "hm, compensate somehow": {"kind": "correction", "target": "compensate_effect"},
    "hands off what is booked": {"kind": "slot_value", "target": "Leave it as it is"},
}
"""The model's interpretations. It reads other messages as unknown."""


@pytest.fixture
async def talk() -> AsyncIterator[Conversation]:
    async with misled(HEARD, "travel") as talk:
        yield talk


async def correct_what_is_booked(talk: Conversation) -> JsonObject:
    for words in ("fly me from Oslo to Madrid", "on Friday", "yes"):
        await talk.say(words)
    return await talk.say("Lisbon, I meant")


async def test_a_correction_of_what_is_booked_asks_what_should_happen(talk: Conversation) -> None:
    """IR-4, RT-12, NL-7: no task is running, and the named flow was completed."""
    turn = await correct_what_is_booked(talk)
    names = [action["name"] for action in turn["actions"]]
    assert names == ["keep_effect", "compensate_effect", "repeat_effect"]
    assert turn["tools"] == []


async def test_a_number_chooses_an_option_whatever_a_model_would_make_of_it(talk: Conversation) -> None:
    """NL-2, RT-12: a model can't express a displayed option."""
    await correct_what_is_booked(talk)
    turn = await talk.say("2")
    assert [tool["tool_id"] for tool in turn["tools"]] == ["booking_cancel", "flight_offer"]


async def test_what_a_model_takes_for_a_decision_is_done_after_a_yes(talk: Conversation) -> None:
    """RT-12, PX-18: the model may be right."""
    await correct_what_is_booked(talk)
    turn = await talk.say("well, fix the booking accordingly")
    assert f"Do you mean “{UNDO}”?" in turn["reply"]
    assert turn["tools"] == []
    turn = await talk.say("yes")
    assert [tool["tool_id"] for tool in turn["tools"]] == ["booking_cancel", "flight_offer"]


@pytest.mark.parametrize("words", ["what would that cost me", "hm, compensate somehow"])
async def test_a_decision_that_nobody_made_undoes_nothing(talk: Conversation, words: str) -> None:
    """RT-12, PX-18: the model may be wrong, and name the question's subject or an unknown option."""
    await correct_what_is_booked(talk)
    assert (await talk.say(words))["tools"] == []
    turn = await talk.say("hands off what is booked")
    assert turn["tools"] == []
    assert "left it as it is" in turn["reply"]
