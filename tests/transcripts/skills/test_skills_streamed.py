"""RS-4: a skill's answer is streamed while the model writes it, and retracted if it is not the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from orchestrator.pex.skill_outcome import FINISH
from orchestrator.pex.skills.streamed import StreamedText
from orchestrator.turns.event import Event
from parley.testing.scripted_model import Rule
from tests.cases import for_each
from tests.transcripts.skills.skilled import Talk, answer, finish, judge, judged, talk
from tests.transcripts.test_ask_data import RULES, run

QUESTION = "how many cars have more cylinders than the usual six"
COUNTED = run("SELECT count(*) AS cars FROM cars WHERE cylinders > 6")
TEXT = "It is 108, which is more than a quarter of all that the table has, with “V” engines and the like."
GOOD: tuple[Rule, ...] = RULES


@asynccontextmanager
async def heard(t: Talk) -> AsyncGenerator[list[Event]]:
    """Return the live events of the conversation."""
    told: list[Event] = []
    keep = told.append
    async with t.simulator.live.listen(t.conversation.session_id) as events:

        async def hear() -> None:
            async for event in events:
                keep(event)

        task = asyncio.create_task(hear())
        try:
            yield told
            await asyncio.sleep(0)
        finally:
            task.cancel()


def pieces(told: list[Event]) -> list[tuple[int, str]]:
    return [(e.payload["offset"], e.payload["text"]) for e in told if e.type == "token"]


def shown(told: list[Event]) -> str:
    text = ""
    for offset, piece in pieces(told):
        text = text[:offset] + piece
    return text


async def ask(*replies: Any, rules: tuple[Rule, ...] = GOOD) -> tuple[dict[str, Any], list[Event]]:
    async with talk(*replies, rules=rules, domain="analytics") as t, heard(t) as told:
        return await t.say(QUESTION), told


async def test_an_answer_is_told_while_it_is_written() -> None:
    turn, told = await ask(COUNTED, answer(answer=TEXT))

    assert turn["properties"]["streamed"] is True
    assert len(pieces(told)) > 2
    assert turn["reply"].startswith(shown(told))
    assert len(shown(told)) > len(TEXT) / 2


async def test_numbers_that_no_row_has_are_not_told() -> None:
    invented = answer(
        answer="There are exactly as many of these in the table as you might think: 1,234 of them all."
    )
    turn, told = await ask(COUNTED, invented, answer(answer=TEXT))

    assert not any("1,234" in text for _, text in pieces(told))
    assert (0, "") in pieces(told)
    assert turn["reply"].startswith(shown(told))


async def test_what_is_revised_is_told_anew() -> None:
    faults = (RULES[0], *judge(judged("say where it is from"), judged()))
    better = TEXT.replace("It is 108", "The table cars has 108")
    turn, told = await ask(COUNTED, answer(answer=TEXT), answer(answer=better), rules=faults)

    assert (0, "") in pieces(told)
    assert shown(told).startswith("The table cars has 108")
    assert turn["reply"].startswith(shown(told))


async def test_what_comes_to_nothing_is_taken_back() -> None:
    """The text was streamed before the model reported failure."""
    failed = finish("failure", data={"answer": TEXT}, message="It broke.")
    turn, told = await ask(COUNTED, failed)

    assert shown(told) == ""
    assert turn["properties"]["streamed"] is False
    assert turn["completed"] == []


class Told:
    """A recorder of streamed text."""

    def __init__(self) -> None:
        self.text = ""

    async def take(self, piece: str) -> None:
        self.text += piece

    async def take_back(self) -> None:
        self.text = ""


@for_each(
    "arguments",
    [
        r'{"outcome": "success", "data": {"answer": "A \"B\" \\ C é \n\tD", "sources": ["x"]}}',
        r'{"data":{"sources":[],"answer":"back\\\\slash \\\" and end\\"}}',
        r'{"data": {"answer": ""}}',
        r'{"data": {"other": "no \"answer\": in it"}}',
    ],
)
async def test_a_text_is_read_at_every_length(arguments: str) -> None:
    """For every prefix, the streamed text is part of the whole."""
    words = Told()
    streamed = StreamedText(words, "answer")
    whole = json.loads(arguments)["data"].get("answer", "")
    for end in range(len(arguments) + 1):
        await streamed.take(FINISH, arguments[:end])
        assert whole.startswith(words.text)

    assert words.text == whole


async def test_calls_of_tools_are_not_told() -> None:
    words = Told()
    await StreamedText(words, "answer").take("sql_run", '{"answer": "no"}')

    assert words.text == ""
