"""Messages about a completed action change nothing before the user's decision (IR-4, RT-12)."""

from __future__ import annotations

from tests.cases import for_each
from tests.transcripts.test_never_the_wrong_deed import OFFER, after, begin, booked

ROME, MILAN = ("OSL", "FCO"), ("OSL", "MXP")
DECISIONS = ["keep_effect", "compensate_effect", "repeat_effect"]


@for_each(
    "words",
    [
        "I wanted to go to Milan, not Rome",
        "change the destination to milan",
        "actually book a flight to milan",
        "book a flight from oslo to milan on 3 december instead",
        "make that two passengers",
        "for two people",
        "actually make it milan",
        "hmm, milan would be better",
        "sorry, the origin should be bergen",
    ],
)
async def test_a_correction_asks_what_should_become_of_what_was_done(words: str) -> None:
    talk = await after(OFFER, "yes")
    turn = await talk.say(words)
    assert [action["name"] for action in turn["actions"]] == DECISIONS
    assert turn["tools"] == []
    assert await booked(talk) == [ROME]


@for_each(
    "words",
    ["actually make it the 5th", "in business class please", "what about the 5th?", "how about the evening?"],
)
async def test_a_correction_that_a_task_can_make_is_offered_as_that_change(words: str) -> None:
    talk = await after(OFFER, "yes")
    turn = await talk.say(words)
    assert [action["name"] for action in turn["actions"]] == ["confirm", "deny"]
    assert [tool["tool_id"] for tool in turn["tools"]] == ["booking_quote"]
    await talk.say("no")
    assert await booked(talk) == [ROME]


@for_each("words", ["keep it", "just leave it", "stop", "never mind", "undo it?", "change it", "yes"])
async def test_the_decision_is_taken_as_it_was_said(words: str) -> None:
    talk = await after(OFFER, "yes")
    await talk.say("no, I meant Milan")
    turn = await talk.say(words)
    assert await booked(talk) == [ROME]
    assert [action["name"] for action in turn["actions"]] in ([], DECISIONS)


async def test_what_stands_already_is_said_before_the_yes_to_something_alike() -> None:
    talk = await after(OFFER, "yes")
    turn = await talk.say("book a flight from oslo to milan on 3 december")
    assert "I've already booked your flight" in turn["reply"]
    assert "Shall I book it?" in turn["reply"]


async def test_what_the_user_has_cancelled_does_not_stand_any_more() -> None:
    """RT-12: although another task has undone it."""
    talk = await after(OFFER, "yes")
    for words in ("cancel it", "yes"):
        await talk.say(words)
    assert await booked(talk) == []
    turn = await talk.say("actually book a flight from oslo to milan on 3 december")
    assert "already booked" not in turn["reply"]
    assert "Shall I book it?" in turn["reply"]


async def test_a_stopped_plan_and_what_is_booked_are_told_as_they_are() -> None:
    """PL-4: bookings are a list without progress; after a stopped plan, completed steps remain."""
    talk = begin()
    for words in ("plan a trip to rome from oslo leaving 1 december and coming back on 5 december", "yes"):
        await talk.say(words)
    listed = await talk.say("what is booked")
    assert "You have 1 booking" in listed["reply"]
    assert "Back to listing" not in listed["reply"]
    await talk.say("stop")
    turn = await talk.say("how far are you")
    assert "Nothing is open right now. So far I've booked your flight" in turn["reply"]
    assert await booked(talk) == [ROME]


async def test_what_is_asked_for_and_not_had_gets_no_small_talk() -> None:
    talk = await after(OFFER, "yes")
    turn = await talk.say("send me a receipt")
    assert "nice" not in turn["reply"].casefold()
    assert turn["tools"] == []


async def test_nothing_is_done_again_where_nothing_is_wanted_otherwise() -> None:
    """Undoing is offered, with a confirmation; the word "with" never appears without a value."""
    talk = await after(OFFER, "yes")
    same = {"dact": "book_flight", "slot": "destination", "value": "FCO"}
    asked = await talk.act("change_slot", same)
    assert asked["reply"].splitlines()[1:] == ["1. Leave it as it is", "2. Undo it", "3. Do it again"]
    offered = await talk.say("2")
    assert "would be refunded. Shall I cancel it?" in offered["reply"]
    assert await booked(talk) == [ROME]
    await talk.say("yes")
    assert await booked(talk) == []


@for_each("words", ["actually make it milan", "milan instead please", "sorry, milan"])
async def test_a_place_alone_changes_where_one_goes(words: str) -> None:
    """RT-12: after booking a flight to Rome, “Milan” is not a request for a flight from Milan to Rome."""
    talk = await after(OFFER, "yes")
    await talk.say(words)
    turn = await talk.say("the second one")
    assert "from Oslo (OSL) to Milan (MXP)" in turn["reply"]
    assert await booked(talk) == []
    await talk.say("yes")
    assert await booked(talk) == [MILAN]


@for_each("words", ["cancel my booking", "add two bags to my booking"])
async def test_what_cannot_be_done_any_more_is_not_offered(words: str) -> None:
    talk = await after(OFFER, "yes")
    for said in ("cancel my booking", "yes"):
        await talk.say(said)
    turn = await talk.say(words)
    assert "is already canceled" in turn["reply"]
    assert "Shall I" not in turn["reply"]
