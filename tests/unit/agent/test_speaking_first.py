"""Reminders and external events in a conversation: set, moved, canceled and displayed (RT-31)."""

from __future__ import annotations

import pytest

from orchestrator.turns.scheduled import EventStatus, NewEvent
from orchestrator.turns.turn import TurnInput
from parley.simulator import Conversation
from tests.trained import converse_after

DAY_S = 86400.0


@pytest.fixture
async def talk() -> Conversation:
    """Start a conversation on a Friday, with a flight booked for the next Friday at 10:00."""
    conversation = await converse_after("travel", "Book a flight from Oslo to Madrid on Friday 27 November")
    booked = await conversation.say("yes")
    assert booked["completed"] == ["book_flight"], booked["reply"]
    return conversation


async def _to_come(talk: Conversation) -> list[str]:
    events = await talk.simulator.scheduled.of_session(talk.tenant_id, talk.session_id)
    return [
        event.not_before.isoformat(timespec="minutes")[:16]
        for event in events
        if event.status is EventStatus.SCHEDULED
    ]


async def test_a_reminder_is_set_moved_and_told(talk: Conversation) -> None:
    told = await talk.say("remind me an hour before")
    assert (told["completed"], told["tools"][0]["tool_id"]) == (["remind_flight"], "reminder_set")
    before = await _to_come(talk)
    await talk.say("make it two hours before")
    after = await _to_come(talk)
    assert len(before) == len(after) == 1
    assert after < before
    [turn] = await talk.wait(8 * DAY_S)
    assert turn["reply"].startswith("Reminder: your flight ")
    assert turn["completed"] == ["tell_reminder"]
    assert await talk.wait(8 * DAY_S) == [], "once"


@pytest.mark.parametrize(
    "words", ["don't", "no, don't", "Don't remind me", "cancel the reminder", "do not remind me of my flight"]
)
async def test_a_reminder_is_called_off(talk: Conversation, words: str) -> None:
    await talk.say("remind me of my flight")
    told = await talk.say(words)
    assert told["reply"] == "OK, I won't remind you."
    assert await talk.wait(8 * DAY_S) == []


async def test_a_task_that_is_interrupted_by_a_reminder_goes_on(talk: Conversation) -> None:
    await talk.say("remind me a day before my flight")
    await talk.say("book a flight to Lisbon")
    [turn] = await talk.wait(8 * DAY_S)
    assert "Reminder: your flight" in turn["reply"]
    assert turn["reply"].endswith("Where would you like to fly from?")
    assert [flow["dact"] for flow in turn["flows"]] == ["book_flight"]


async def test_a_reminder_of_a_cancelled_booking_says_so(talk: Conversation) -> None:
    await talk.say("remind me a day before my flight")
    await talk.say("cancel my booking")
    assert (await talk.say("yes"))["completed"] == ["cancel_booking"]
    [turn] = await talk.wait(8 * DAY_S)
    assert "is canceled" in turn["reply"]


async def test_an_outside_event_is_told_from_the_present_state(talk: Conversation) -> None:
    listed = await talk.say("list my bookings")
    payload = {"booking_ref": listed["reply"].partition("- ")[2][:6]}
    event = NewEvent(talk.session_id, talk.tenant_id, "flight_changed", payload, "key")
    await talk.simulator.scheduled.schedule(event)
    [turn] = await talk.wait(1)
    assert turn["completed"] == ["check_flight_status"]
    assert "gate" in turn["reply"]


async def test_a_user_cannot_send_an_event(talk: Conversation) -> None:
    action = {"name": "event", "payload": {"name": "flight_reminder"}}
    turn = await talk.submit(TurnInput(action=action, form="action"))
    assert turn["completed"] == []
    assert turn["tools"] == []
