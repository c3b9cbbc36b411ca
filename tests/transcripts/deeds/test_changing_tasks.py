"""Changing an earlier task's result is preferred to repeating that task (IR-4)."""

from __future__ import annotations

from orchestrator.types import JsonObject
from parley.simulator import Conversation
from tests.trained import converse_after


async def booked() -> Conversation:
    conversation = await converse_after("clinic", "book a cleaning on Tuesday at 10:00")
    done = await conversation.say("yes")
    assert done["completed"] == ["book_appointment"], done["reply"]
    return conversation


async def appointments(conversation: Conversation) -> list[JsonObject]:
    turn = await conversation.say("show my appointments")
    return turn["frame"]["data"]


async def test_a_correction_after_the_booking_moves_it() -> None:
    conversation = await booked()
    offered = await conversation.say("sorry, on Wednesday instead")
    assert [flow["dact"] for flow in offered["flows"]] == ["move_appointment"]
    assert offered["flows"][0]["slots"]["code"] == "D0001"
    assert "Shall I go ahead?" in offered["reply"]
    moved = await conversation.say("yes")
    assert (moved["completed"], [tool["tool_id"] for tool in moved["tools"]]) == (
        ["move_appointment"],
        ["appointment_move"],
    )
    [row] = await appointments(conversation)
    assert (row["code"], row["day"], row["time"]) == ("D0001", "2026-11-25", "10:00")


async def test_a_no_leaves_it_as_it_was() -> None:
    conversation = await booked()
    await conversation.say("sorry, on Wednesday instead")
    refused = await conversation.say("no, never mind")
    assert refused["tools"] == []
    [row] = await appointments(conversation)
    assert row["day"] == "2026-11-24"


async def test_what_the_changing_task_has_no_slot_for_is_asked_about() -> None:
    conversation = await booked()
    asked = await conversation.say("sorry, a filling instead")
    assert asked["flows"] == []
    assert "1. Leave it as it is" in asked["reply"]
