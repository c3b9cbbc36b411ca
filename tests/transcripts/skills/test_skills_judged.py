"""Checks of model outputs: code by the guardrails (PX-10), results by a model (PX-11)."""

from __future__ import annotations

import pytest

from parley.testing.scripted_model import Answer, Fail, Reply
from tests.transcripts.skills.skilled import DRAFT, QUERY, REVISED, answer, call, judge, judged, talk


async def test_a_tool_gets_the_code_that_was_judged_and_not_what_was_written() -> None:
    """PX-10: fences, prose and comments are removed."""
    written = f"Here you are:\n```sql\n{QUERY} -- and more\n```"
    async with talk(call("data_query", sql=written), answer(answer="it")) as t:
        await t.say("ask the data")

        assert t.lab.queries == [QUERY]


NEVER_ENDS = "def total(numbers):\n    while True:\n        pass\n"


async def test_python_that_never_ends_is_stopped_by_the_sandbox() -> None:
    """PX-10: with its category."""
    async with talk(call("number_compute", code=NEVER_ENDS, numbers=[1]), answer(value=0)) as t:
        await t.say("compute a number")
        assert '"category":"timeout"' in t.told()


async def test_code_in_a_result_is_judged_and_shown_on_the_frame() -> None:
    """PX-10, PX-12."""
    bad, good = answer(answer="x", code="DROP TABLE parts"), answer(answer="x", code=f"{QUERY} -- hidden")
    async with talk(bad, good) as t:
        turn = await t.say("ask the data")

        assert "not_read_only" in t.told()
        assert turn["frame"]["code"] == QUERY


async def test_a_result_with_faults_is_revised_once() -> None:
    """PX-11: generate, evaluate, revise; the revision is not evaluated again."""
    async with talk(DRAFT, REVISED, rules=judge(judged("It names no part."))) as t:
        turn = await t.say("write a report")

        assert turn["reply"] == "There are a bolt and a lens."
        assert len(t.model.requests_for("pex_reflect")) == 1
        assert "It names no part." in t.told()


async def test_a_good_result_is_left_alone() -> None:
    """PX-11."""
    async with talk(REVISED, rules=judge(judged())) as t:
        assert (await t.say("write a report"))["reply"] == "There are a bolt and a lens."
        assert len(t.asked) == 1


@pytest.mark.parametrize("verdict", [Fail(400), Answer(text="fine by me")])
async def test_a_result_that_nobody_could_judge_stands(verdict: Reply) -> None:
    """PX-11: a failed evaluation changes nothing."""
    async with talk(DRAFT, rules=judge(verdict)) as t:
        assert (await t.say("write a report"))["reply"] == "There are parts."


async def test_a_revision_that_fails_leaves_the_draft() -> None:
    """PX-11."""
    async with talk(DRAFT, Fail(400), rules=judge(judged("It names no part."))) as t:
        assert (await t.say("write a report"))["reply"] == "There are parts."
