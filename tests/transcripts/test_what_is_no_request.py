"""Forbidden, reported, hypothetical and past requests start nothing (NL-8)."""

from __future__ import annotations

import pytest

from tests.trained import simulate, state_of
from tests.transcripts.not_requests import NOT_REQUESTS
from tests.transcripts.test_never_the_wrong_deed import OFFER, begin


async def test_what_is_no_request_starts_nothing() -> None:
    assert len(NOT_REQUESTS) > 200
    simulators = {name: simulate(name) for name in ("travel", "analytics")}
    started: list[str] = []
    for domain, words in NOT_REQUESTS:
        talk = simulators[domain].converse()
        turn = await talk.say(words)
        state = state_of(talk)
        if state["stack"] or turn["tools"] or turn["completed"]:
            started.append(words)
    assert started == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("don’t cancel my booking", "I won't"),
        ("I already booked a flight to Madrid", "already done"),
        ("my colleague wants to know whether you can cancel a booking", "someone else"),
        ("flights from Oslo to Lisbon on Sunday, but not in the evening", "“not in the evening”"),
    ],
)
async def test_it_is_said_how_it_was_understood(text: str, told: str) -> None:
    turn = await begin().say(text)
    assert told in turn["reply"]


@pytest.mark.parametrize(
    "text",
    [
        "don't cancel my booking, {}",
        "please don't forget to {}",
        "why don't you {}",
        "{}, but not a late one",
    ],
)
async def test_a_request_with_a_no_in_it_is_still_one(text: str) -> None:
    turn = await begin().say(text.format(OFFER))
    assert turn["flows"][0]["dact"] == "book_flight"
