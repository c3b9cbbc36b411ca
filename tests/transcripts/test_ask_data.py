"""The analytics skill: model-written SQL, checked, run, repaired, and compared with its rows."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from domains.analytics.catalogue import TABLES, Column
from domains.analytics.engine import Rows, quote
from parley.testing.scripted_model import Answer, Computed, Reply, Request, Rule
from tests.cases import for_each
from tests.transcripts.skills.skilled import answer, call, finish, judged, talk

_FILE = Path(__file__).parents[1] / "unit" / "analytics" / "sql_questions.yaml"
QUESTIONS: dict[str, list[dict[str, str]]] = yaml.load(_FILE.read_text(encoding="utf-8"), yaml.CSafeLoader)


EVERY = 3
"""The short form runs one in this many questions of a kind, the long form all."""


def questions(kind: str, *names: str) -> Any:
    """Return the questions of a kind as test cases, with these parts."""
    cases = [
        pytest.param(
            *(one[name] for name in names), id=one["say"], marks=[pytest.mark.slow] if place % EVERY else []
        )
        for place, one in enumerate(QUESTIONS[kind])
    ]
    return pytest.mark.parametrize(names, cases)


ASKED = Answer(json={"kind": "task", "flows": [{"dact": "ask_data", "score": 0.95}], "slots": {}})
RULES = (Rule(prompt="nlu_think", replies=(ASKED,)), Rule(prompt="pex_reflect", replies=(judged(),)))
REFUSED = finish("failure", message="I cannot answer that from these tables.")


def run(statement: str) -> Reply:
    return call("sql_run", statement=statement)


def last_result(request: Request) -> dict[str, Any]:
    told = [json.loads(m["content"]) for m in request.messages if m["role"] == "tool"]
    return [result["data"] for result in told if "data" in result][-1]


def report(request: Request) -> Reply:
    """Report like a careful model: the number of rows, or the only value."""
    found = last_result(request)
    values = list(found["rows"][0].values()) if found["rows"] else []
    one = found["row_count"] == 1 and len(values) == 1
    return answer(answer=f"It is {values[0]}." if one else f"There are {found['row_count']} rows.")


@cache
def database() -> duckdb.DuckDBPyConnection:
    """Yield the catalogue's tables in a separate database, for direct queries."""
    connection = duckdb.connect()
    for table in TABLES.values():
        columns = ", ".join(
            f"CAST({quote(c.source) if c.source.isidentifier() else c.source} AS {c.type}) AS {quote(c.name)}"
            for c in table.columns
        )
        connection.execute(f"CREATE TABLE {quote(table.name)} AS SELECT {columns} FROM '{table.path}'")
    return connection


def expected(statement: str) -> list[dict[str, Any]]:
    cursor = database().execute(statement)
    columns = tuple(Column(str(one[0]), "") for one in cursor.description or ())
    return Rows(columns, cursor.fetchall()).to_objects()


def test_there_are_a_hundred_questions() -> None:
    said = [one["say"] for cases in QUESTIONS.values() for one in cases]
    assert len(said) == len(set(said)) == 100


@questions("answered", "say", "sql")
async def test_a_question_is_answered_with_the_rows_of_its_statement(say: str, sql: str) -> None:
    """PX-5, PX-10, PX-12: the frame has the database's result, and the statement."""
    async with talk(run(sql), Computed(report), rules=RULES, domain="analytics") as t:
        turn = await t.say(say)

        rows = expected(sql)
        assert turn["completed"] == ["ask_data"]
        assert turn["frame"]["data"] == rows[:512]
        assert turn["frame"]["rows"] == len(rows)
        assert turn["code_snippet"]["language"] == "sql"


@questions("repaired", "say", "wrong", "told", "sql")
async def test_a_statement_that_fails_is_repaired(say: str, wrong: str, told: str, sql: str) -> None:
    """AG-6: the model gets the error of the database or the guardrail."""
    async with talk(run(wrong), run(sql), Computed(report), rules=RULES, domain="analytics") as t:
        turn = await t.say(say)

        assert told in t.told(1)
        assert turn["completed"] == ["ask_data"]
        assert turn["frame"]["data"] == expected(sql)[:512]


@questions("refused", "say", "sql", "why")
async def test_what_may_not_be_done_is_refused_with_the_reason(say: str, sql: str, why: str) -> None:
    """PX-10: nothing is executed; the tables are unchanged."""
    count = run("SELECT count(*) AS n FROM cars")
    async with talk(run(sql), REFUSED, count, Computed(report), rules=RULES, domain="analytics") as t:
        turn = await t.say(say)

        assert '"ok":false' in t.told(1).replace(" ", "")
        assert why in t.told(1)
        assert turn["completed"] == []
        assert turn["frame"] is None
        assert "I cannot answer that from these tables." in turn["reply"]
        assert (await t.say("how many rows does cars have now"))["frame"]["data"] == [{"n": 406}]


async def test_a_number_that_no_row_has_goes_back_to_the_model() -> None:
    """PX-6: an answer is compared with its rows."""
    invented = answer(answer="There are 1,234 of them.")
    statement = "SELECT count(*) AS cars FROM cars WHERE cylinders > 6"
    async with talk(run(statement), invented, Computed(report), rules=RULES, domain="analytics") as t:
        turn = await t.say("how many cars have more cylinders than the usual six")

        assert "neither the rows nor the question contains 1,234" in t.told()
        assert "1,234" not in turn["reply"]
        assert "108" in turn["reply"]


async def test_an_answer_without_a_statement_is_not_taken() -> None:
    """PX-6: general knowledge is not an answer."""
    statement = "SELECT name, weight FROM cars ORDER BY weight DESC LIMIT 1"
    known = answer(answer="The heaviest car is the pontiac safari.")
    async with talk(known, run(statement), Computed(report), rules=RULES, domain="analytics") as t:
        turn = await t.say("what is the heaviest car")

        assert "call sql_run" in t.told(1)
        assert turn["frame"]["data"] == expected(statement)


STREAK = """
def longest_streak(rows):
    best = current = 0
    for before, after in zip(rows, rows[1:]):
        current = current + 1 if after["price"] > before["price"] else 0
        best = max(best, current)
    return {"months": best}
"""
PRICES = "SELECT price FROM stocks WHERE symbol = 'AAPL' ORDER BY date"


def compute(statement: str, code: str) -> Reply:
    return call("row_compute", statement=statement, code=code)


async def test_what_sql_cannot_say_is_computed_with_python() -> None:
    """PX-10: with the rows of a statement, and displayed with its code."""
    prices = [row["price"] for row in expected(PRICES)]
    best = current = 0
    for before, after in pairwise(prices):
        current = current + 1 if after > before else 0
        best = max(best, current)
    async with talk(compute(PRICES, STREAK), Computed(report), rules=RULES, domain="analytics") as t:
        turn = await t.say("for how many months in a row did AAPL rise at most")

        assert turn["frame"]["data"] == [{"months": best}]
        assert f"It is {best}." in turn["reply"]
        assert turn["code_snippet"]["language"] == "python"
        assert "def longest_streak" in turn["code_snippet"]["code"]


async def test_python_may_name_what_the_statement_names() -> None:
    statement = "SELECT avg(mpg) AS mean_mpg FROM cars"
    code = "def f(rows):\n    return round(rows[0]['mean_mpg'])\n"
    async with talk(compute(statement, code), Computed(report), rules=RULES, domain="analytics") as t:
        turn = await t.say("what is the mean mpg of all, rounded")

        assert turn["frame"]["data"] == [{"result": 24}]


@for_each(
    ("statement", "code", "why"),
    [
        (PRICES, "def f(rows):\n    return open('/etc/passwd').read()\n", "forbidden_name"),
        (PRICES, "import os\n\ndef f(rows):\n    return os.getcwd()\n", "forbidden_import"),
        (PRICES, "def f(rows):\n    return rows[0]['prize']\n", "Did you mean 'price'?"),
        (PRICES, "def f(rows):\n    return rows[9999]\n", "IndexError"),
        ("DROP TABLE stocks", STREAK, "not_read_only"),
        ("SELECT * FROM seattle", STREAK, "At most 2,000 rows go into Python"),
        ("SELECT 1 AS price", STREAK, "Read from a table"),
    ],
)
async def test_python_that_cannot_be_run_is_repaired(statement: str, code: str, why: str) -> None:
    """PX-10: the model gets the reason, and nothing is displayed."""
    replies = (compute(statement, code), compute(PRICES, STREAK), Computed(report))
    async with talk(*replies, rules=RULES, domain="analytics") as t:
        turn = await t.say("for how many months in a row did AAPL rise at most")

        assert why in t.told(1)
        assert turn["completed"] == ["ask_data"]


async def test_the_tables_are_offered_to_the_model() -> None:
    """NL-7: the catalogue's tables, and the user's own current tables."""
    statement = "SELECT name, mpg AS economy FROM cars WHERE mpg > 40"
    async with talk(run(statement), Computed(report), REFUSED, rules=RULES, domain="analytics") as t:
        await t.say("which cars are thrifty")
        saved = await t.say("save this as thrifty")
        await t.say("which of these is the thriftiest")

        assert "saved thrifty: 9 rows" in saved["reply"]

        offered = str(t.asked[-1].messages)
        assert "daily weather in Seattle" in offered
        assert "economy" in offered


def requery(*replies: Reply) -> tuple[Rule, ...]:
    return (*RULES, Rule(prompt="pex_requery", replies=replies))


def rewritten(statement: str | None, change: str = "") -> Answer:
    return Answer(json={"statement": statement, "change": change})


NONE = "SELECT name FROM cars WHERE origin = 'Swedn'"
SOME = "SELECT name FROM cars WHERE origin = 'Japan'"
NO_ROWS = answer(answer="There are none.")


def repairs(t: Any) -> list[str]:
    return [one.payload["how"] for one in t.simulator.signals if one.payload.get("rung") == "repair"]


async def test_a_query_without_rows_is_replaced_and_the_result_told() -> None:
    """AG-6, tier 1: a model's other query, guarded and run like the first."""
    rules = requery(rewritten(SOME, "the value is spelled Japan."))
    async with talk(run(NONE), NO_ROWS, rules=rules, domain="analytics") as t:
        turn = await t.say("show cars from Japn")

        [asked] = t.model.requests_for("pex_requery")
        assert "it found no rows" in str(asked.messages)
        assert turn["completed"] == ["ask_data"]
        assert turn["frame"]["data"] == expected(SOME)
        assert "Japan" in turn["code_snippet"]["code"]
        assert "There are none." not in turn["reply"]
        assert "My first query found nothing, so I ran another: the value is spelled Japan." in turn["reply"]
        assert repairs(t) == ["requery"]


async def test_no_better_query_leaves_the_result_as_it_was() -> None:
    async with talk(run(NONE), NO_ROWS, rules=requery(rewritten(None)), domain="analytics") as t:
        turn = await t.say("show cars from Swedn")

        assert turn["completed"] == ["ask_data"]
        assert turn["reply"] == "There are none."
        assert turn["frame"]["data"] == []
        assert repairs(t) == []


async def test_at_most_four_queries_take_the_place_of_one() -> None:
    rules = requery(*(rewritten(f"{NONE} AND mpg = {at}") for at in range(9)))
    async with talk(run(NONE), NO_ROWS, rules=rules, domain="analytics") as t:
        turn = await t.say("show cars from Swedn")

        assert repairs(t) == ["requery"] * 4
        last = t.model.requests_for("pex_requery")[-1]
        assert "mpg = 2" in str(last.messages)
        assert turn["reply"] == "There are none."


async def test_a_failed_statement_is_replaced_after_the_skill_gave_up() -> None:
    broken = run("SELECT name FROM cars WHERE nonsense(mpg) ORDER BY")
    rules = requery(rewritten("DROP TABLE cars"), rewritten(SOME, "without the broken part."))
    async with talk(broken, REFUSED, rules=rules, domain="analytics") as t:
        turn = await t.say("show cars from Japan")

        assert turn["completed"] == ["ask_data"]
        assert turn["frame"]["data"] == expected(SOME)
        assert "My first query couldn't be run, so I ran another: without the broken part." in turn["reply"]


async def test_a_misspelled_name_is_corrected_without_a_model() -> None:
    """The cheap repair comes first."""
    async with talk(
        run("SELECT name FROM cars WHERE orgin = 'Japan'"), REFUSED, rules=requery(), domain="analytics"
    ) as t:
        turn = await t.say("show cars from Japan")

        assert turn["frame"]["data"] == expected(SOME)
        assert "I read “orgin” in the query as “origin”." in turn["reply"]
        assert (repairs(t), t.model.requests_for("pex_requery")) == (["correct_name"], [])
