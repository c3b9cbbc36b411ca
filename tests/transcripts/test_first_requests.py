"""In a first request or an answer to an open question every content word is used or quoted (IR-6)."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from parley.simulator import Simulator
from tests.cases import for_each
from tests.trained import state_of
from tests.transcripts.first_requests import ANSWERS, REQUESTS, Line
from tests.transcripts.test_never_the_wrong_deed import begin, booked


@cache
def simulator() -> Simulator:
    return begin().simulator


async def find_fault(said: tuple[str, ...], line: Line) -> str | None:
    """Send messages and a line; return words that were dropped or quoted without reason."""
    words, taken, word = line
    talk = simulator().converse()
    for one in said:
        await talk.say(one)
    turn = await talk.say(words)
    assert await booked(talk) == []
    state = state_of(talk)
    flows: list[dict[str, Any]] = [*state["stack"], *state["completed"]]
    values = {name: str(one["value"]) for flow in flows for name, one in flow["slots"].items()}
    told = re.findall(r"(?:didn't understand|into account:) ([^.]*)", turn["reply"])
    quoted = " ".join(re.findall(r"“([^”]*)”", " ".join(told))).casefold()
    if word == "-":
        if quoted:
            return f"quoted {quoted}: {turn['reply']}"
    elif word and word not in quoted:
        return f"“{word}” is neither taken nor quoted: {turn['reply']}"
    wrong = {name: values.get(name) for name, value in taken.items() if values.get(name) != value}
    return f"{wrong}: {turn['reply']}" if wrong else None


@for_each("line", REQUESTS, ids=[one[0] for one in REQUESTS])
async def test_a_first_request_is_taken_or_quoted(line: Line) -> None:
    assert await find_fault((), line) is None


@for_each("line", ANSWERS, ids=[one[0] for one in ANSWERS])
async def test_an_answer_is_taken_or_quoted(line: Line) -> None:
    assert await find_fault(("book a flight from oslo",), line) is None
