"""Checks of model outputs: code by the guardrails (PX-10), results by a model (PX-11)."""

from __future__ import annotations

import pytest

from parley.testing.scripted_model import Answer, Fail, Reply
from tests.cases import for_each
from tests.transcripts.skills.skilled import DRAFT, QUERY, REVISED, answer, call, judge, judged, talk


@for_each(
    ("sql", "category"),
    [
        ("DROP TABLE parts", "not_read_only"),
        ("SELECT 1; SELECT 2", "not_one_statement"),
        ("SELECT * FROM read_csv('/etc/passwd')", "forbidden_"),
        ("SELECT colour FROM parts", "unknown_entity"),
        ("SELECT * FROM partz", "unknown_entity"),
        ("ATTACH 'x.db'", "forbidden_statement"),
    ],
)
async def test_sql_that_is_rejected_reaches_no_tool_and_comes_back_as_a_reason(
    sql: str, category: str
) -> None:
    """PX-10: with its category; only registered tables and columns can be used."""
    async with talk(call("data_query", sql=sql), call("data_query", sql=QUERY), answer(answer="it")) as t:
        turn = await t.say("ask the data")

        assert turn["reply"] == "Answer: it"
        assert category in t.told(1)
        assert len(t.lab.queries) == 1
        assert any(check == "guardrail" and why.startswith(category) for check, why in t.failed_checks)


async def test_a_tool_gets_the_code_that_was_judged_and_not_what_was_written() -> None:
    """PX-10: fences, prose and comments are removed."""
    written = f"Here you are:\n```sql\n{QUERY} -- and more\n```"
    async with talk(call("data_query", sql=written), answer(answer="it")) as t:
        await t.say("ask the data")

        assert t.lab.queries == [QUERY]


TOTAL = "def total(numbers):\n    return sum(numbers)\n"
READS_A_FILE = "def total(numbers):\n    return open('/etc/passwd').read()\n"
IMPORTS = "import os\n\ndef total(numbers):\n    return os.getpid()\n"
NEVER_ENDS = "def total(numbers):\n    while True:\n        pass\n"


async def test_python_of_a_model_runs_in_the_sandbox() -> None:
    """PX-10."""
    async with talk(call("number_compute", code=TOTAL, numbers=[1, 2, 39]), answer(value=42)) as t:
        assert (await t.say("compute a number"))["reply"] == "The number is 42."
        assert '"value":42' in t.told()


@pytest.mark.parametrize(
    ("code", "category"),
    [(READS_A_FILE, "forbidden_name"), (IMPORTS, "forbidden_import"), ("x = 1", "not_one")],
)
async def test_python_that_is_rejected_comes_back_as_a_reason(code: str, category: str) -> None:
    """PX-10."""
    wrong, right = (call("number_compute", code=one, numbers=[1]) for one in (code, TOTAL))
    async with talk(wrong, right, answer(value=1)) as t:
        assert (await t.say("compute a number"))["reply"] == "The number is 1."
        assert category in t.told(1)


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
