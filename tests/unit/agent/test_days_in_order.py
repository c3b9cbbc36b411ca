"""Days in the wrong order are never displayed, offered or executed, in any task (IR-4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.types import DEFAULT_TENANT
from parley.simulator import Conversation
from tests.cases import for_each
from tests.trained import converse, converse_after
from tests.transcripts.test_misled_by_a_model import as_task, misled
from tests.unit.domain.factories import ONTOLOGY, edit, write_domain
from tests.unit.domain.test_mistakes import find

LOAN = "borrow Emma from 1 december to 5 december"
EARLY = "Wednesday 2 December is before the day you fetch it, Wednesday 9 December."
ASKED = "On which day do you bring it back?"


async def lent(talk: Conversation) -> list[tuple[str, str]]:
    """Return the days of the current loans in the store."""
    records = talk.simulator.records.get(DEFAULT_TENANT)
    found = [] if records is None else await records.find("loans", {"status": "made"})
    return [(loan["from"][5:], loan["until"][5:]) for loan in found]


def tools(turn: dict[str, Any]) -> list[str]:
    return [call["tool_id"] for call in turn["tools"]]


@for_each(
    "said",
    [
        ["borrow Emma from 9 december to 2 december"],
        ["borrow Emma", "9 december", "2 december"],
        ["borrow Emma back on 2 december", "9 december"],
        ["borrow Emma from 9 december to 12 december", "no, until 2 december"],
        ["borrow Emma from 9 december to 12 december", "yes, but bring it back on 2 december"],
        [LOAN, "no, from 9 december to 2 december"],
        [
            "borrow Emma from 9 december to 12 december",
            "no, bring it back on 2 december, at the harbour branch",
        ],
    ],
)
async def test_a_day_before_the_first_is_refused_and_asked_for(said: list[str]) -> None:
    """The answer names both days, and no tool is called."""
    talk = converse("library")
    for text in said:
        turn = await talk.say(text)
    assert EARLY in turn["reply"]
    assert turn["reply"].endswith(ASKED)
    assert tools(turn) == []
    assert "2 December to" not in turn["reply"]
    offer = await talk.say("14 december")
    assert "Monday 14 December" in offer["reply"]
    assert ("harbour" in offer["reply"]) is ("harbour" in said[-1])
    await talk.say("yes")
    assert await lent(talk) == [("12-09", "12-14")]


async def test_who_names_the_same_day_again_is_asked_for_the_first_one() -> None:
    """AM-4"""
    talk = await converse_after("library", "borrow Emma from 9 december to 2 december")
    turn = await talk.say("2 december")
    assert turn["reply"] == f"{EARLY} On which day do you fetch it?"
    await talk.say("1 december")
    await talk.say("yes")
    assert await lent(talk) == [("12-01", "12-02")]


async def test_after_it_was_done_both_days_are_changed_or_none() -> None:
    """RT-12: a repeated effect has its days in order."""
    talk = await converse_after("library", LOAN, "yes")
    refused = await talk.say("sorry, I meant until 29 november")
    assert refused["reply"] == "Sunday 29 November is before the day you fetch it, Tuesday 1 December."
    assert refused["actions"] == []
    asked = await talk.say("sorry, I meant from 9 december")
    assert "Undo it and do it again with Wednesday 9 December and Sunday 13 December" in asked["reply"]
    await talk.say("2")
    await talk.say("yes")
    assert await lent(talk) == [("12-09", "12-13")]


async def test_what_a_model_reads_is_held_to_the_order() -> None:
    """NL-5: in one message, and in a correction."""
    both = {"pickup_date": "2026-12-09", "return_date": "2026-12-02"}
    meanings = {
        "Emma, ninth to second": as_task("borrow_book", title="Emma", **both),
        "the twelfth": {"kind": "slot_value", "slots": {"return_date": "2026-12-12"}},
        "make it until the second": {"kind": "correction", "slots": {"return_date": "2026-12-02"}},
        "let us say the fifteenth": {"kind": "correction", "slots": {"pickup_date": "2026-12-15"}},
    }
    async with misled(meanings, "library") as talk:
        turn = await talk.say("Emma, ninth to second")
        assert turn["reply"] == f"{EARLY} {ASKED}"
        assert tools(turn) == []
        await talk.say("the twelfth")
        assert (await talk.say("make it until the second"))["reply"] == f"{EARLY} {ASKED}"
        await talk.say("the twelfth")
        moved = await talk.say("let us say the fifteenth")
        assert "from Saturday 12 December to Friday 18 December" in moved["reply"]
        await talk.say("yes")
        assert await lent(talk) == [("12-15", "12-18")]


@pytest.mark.parametrize(
    ("slot", "other", "message"),
    [
        ("date", "back", "unknown other date slot 'back'"),
        ("date", "date", "unknown other date slot 'date'"),
        ("date", "cabin", "unknown other date slot 'cabin'"),
        ("cabin", "date", "is allowed only for slots of type date"),
    ],
)
def test_a_day_that_may_not_be_before_what_is_no_other_day(
    tmp_path: Path, slot: str, other: str, message: str
) -> None:
    """IR-4: such an order would have no effect."""
    kind = "date" if slot == "date" else "category"
    ontology = edit(ONTOLOGY, (f"type: {kind},", f"type: {kind}, not_before: {other},"))

    found = find(write_domain(tmp_path, {"ontology.yaml": ontology}))

    assert found == {f"ontology.yaml: flows.book_flight.slots.{slot}.not_before": message}
