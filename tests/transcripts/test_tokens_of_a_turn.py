"""Model tokens of a turn, as sent in each request."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from parley.testing.scripted_model import Answer, Computed, Request, Rule, ToolUse
from tests.tokens import parts_of, tokens_of
from tests.transcripts.skills.skilled import call, talk
from tests.transcripts.test_trip_advice import DAYS, advise

TRIP = "advise me on a trip from Oslo to Madrid on Friday"
CHAT = {"kind": "chitchat", "flows": [], "slots": []}
ADVICE = {
    "kind": "task",
    "flows": [{"dact": "trip_advice", "score": 0.95}],
    "slots": [
        {"name": "origin", "value": "Oslo"},
        {"name": "destination", "value": "Madrid"},
        {"name": "date", "value": "2026-11-27"},
    ],
}
SEARCH = call("flight_search", origin="OSL", destination="MAD", day=DAYS[1])


def understood(answer: dict[str, Any]) -> Rule:
    return Rule(prompt="nlu_think", replies=(Answer(json=answer),))


async def requests(
    text: str, *replies: Any, domain: str = "travel", answer: dict[str, Any] = CHAT
) -> list[Request]:
    rules = (understood(answer),)
    async with talk(*replies, rules=rules, domain=domain, nlu={"mode": "system2"}) as t:
        await t.say(text)
        return t.model.requests


@pytest.mark.parametrize(
    ("domain", "text", "most"),
    [("travel", "hello there", 950), ("travel", TRIP, 1000), ("analytics", "hello there", 1300)],
)
async def test_what_understanding_a_message_costs(domain: str, text: str, most: int) -> None:
    """CO-2: prompt, data and schema together; 1,943 in travel when every flow was described in full."""
    [asked] = await requests(text, domain=domain)

    assert asked.prompt_id == "nlu_think"
    assert tokens_of(asked) <= most, parts_of(asked)


async def test_what_a_trip_advice_costs() -> None:
    """CO-2: interpretation, a search, the advice; formerly 5,800 in all and 1,460 in the first step."""
    asked = await requests(TRIP, SEARCH, Computed(advise), answer=ADVICE)

    assert [one.prompt_id for one in asked] == ["nlu_think", "pex_skill", "pex_skill"]
    assert tokens_of(asked[1]) <= 800, parts_of(asked[1])
    assert sum(map(tokens_of, asked)) <= 3000, [parts_of(one) for one in asked]


async def test_the_beginning_of_a_request_stays_the_same() -> None:
    """CO-2: day, message and tasks follow the cacheable part; a skill's steps only append."""
    first, *steps = await requests(TRIP, SEARCH, SEARCH, Computed(advise), answer=ADVICE)
    [other] = await requests("hello there")

    assert first.messages[0] == other.messages[0]
    assert first.body["response_format"] == other.body["response_format"]
    assert "2026" not in first.messages[0]["content"]
    skill = [one for one in steps if one.prompt_id == "pex_skill"]
    for before, after in pairwise(skill):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.body["tools"] == before.body["tools"]


async def test_the_last_round_of_a_skill_keeps_its_tools() -> None:
    """CO-2: only an end is accepted there, and the request's beginning is unchanged."""
    endless = ToolUse(calls=(("flight_search", {"origin": "OSL", "destination": "MAD", "day": DAYS[1]}),))
    asked = await requests(TRIP, endless, answer=ADVICE)

    skill = [one for one in asked if one.prompt_id == "pex_skill"]
    assert len({repr(one.body["tools"]) for one in skill}) == 1
    choices = [one.body["tool_choice"] for one in skill]
    assert choices[0] == "required"
    assert {"type": "function", "function": {"name": "finish"}} in choices
