"""PX-10: model-written code is checked before any of it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from orchestrator.domain.guarding import Language, Statement
from orchestrator.tools.guardrails.apply import apply_guardrails
from orchestrator.tools.guardrails.extraction import extract_code
from orchestrator.tools.guardrails.sql import rename_in_sql
from orchestrator.tools.guardrails.verdict import ApprovedCode, Category, RejectedCode
from tests.cases import for_each
from tests.unit.tools.guardrail_samples import (
    ALLOWED_IMPORTS,
    ENTITIES,
    Sample,
    make_database,
    read_benign,
    read_hostile,
)

HOSTILE_PYTHON = read_hostile("python")
HOSTILE_SQL = read_hostile("sql")
BENIGN_PYTHON = read_benign("python")
BENIGN_SQL = read_benign("sql")


@for_each("sample", [s for s in HOSTILE_PYTHON if s.guard], ids=str)
def test_hostile_python_is_rejected_with_its_category(sample: Sample) -> None:
    verdict = apply_guardrails(sample.code, Language.PYTHON, None, allowed_imports=ALLOWED_IMPORTS)

    assert isinstance(verdict, RejectedCode), verdict
    assert verdict.category == sample.guard, verdict
    assert verdict.message.endswith((".", "?"))


@for_each("sample", [s for s in HOSTILE_SQL if s.guard], ids=str)
def test_hostile_sql_is_rejected_with_its_category(sample: Sample) -> None:
    verdict = apply_guardrails(sample.code, Language.SQL, ENTITIES)

    assert isinstance(verdict, RejectedCode), verdict
    assert verdict.category == sample.guard, verdict
    assert verdict.message.endswith((".", "?"))


HARMLESS = {
    "type with three arguments",
    "regular expression",
    "global",
    "dunder captured in a match",
    "dunder by walrus",
    "dunder as a keyword",
    "function named like a dunder",
}
"""Samples that run and return their own values: the interpreter has nothing else to offer them."""


def test_hundreds_of_samples_are_stopped_each_with_its_category() -> None:
    """The sandbox or the connection stops those that pass the guardrails."""
    stopped = [
        s for s in HOSTILE_PYTHON if s.guard or s.alone not in {None, "returned"} or s.name in HARMLESS
    ]
    refused = [s for s in HOSTILE_SQL if s.guard or s.alone == "refused"]

    assert (stopped, refused) == (HOSTILE_PYTHON, HOSTILE_SQL)
    assert min(len(stopped), len(refused)) >= 160
    assert len({s.code for s in (*stopped, *refused)}) == len(stopped) + len(refused)


def test_every_category_is_reached_by_a_sample() -> None:
    reached = {s.guard for s in (*HOSTILE_PYTHON, *HOSTILE_SQL)}

    assert reached >= {category.value for category in Category}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    path = make_database(tmp_path_factory.mktemp("database") / "tables.duckdb")
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


@for_each("sample", BENIGN_SQL, ids=str)
def test_benign_sql_passes_and_answers_as_it_was_written(
    sample: Sample, database: duckdb.DuckDBPyConnection
) -> None:
    verdict = apply_guardrails(sample.code, Language.SQL, ENTITIES)

    assert isinstance(verdict, ApprovedCode), verdict
    original = extract_code(sample.code, Language.SQL)
    assert isinstance(original, str)
    rows = database.execute(verdict.code).fetchall()
    assert len(rows) == sample.rows
    if sample.same:
        assert rows == database.execute(original).fetchall()


@for_each("sample", BENIGN_PYTHON, ids=str)
def test_benign_python_passes_as_one_function(sample: Sample) -> None:
    verdict = apply_guardrails(sample.code, Language.PYTHON, None, allowed_imports=ALLOWED_IMPORTS)

    assert isinstance(verdict, ApprovedCode), verdict
    tree = ast.parse(verdict.code)
    assert len([node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]) == 1
    assert "#" not in verdict.code


def test_approved_sql_holds_no_comments() -> None:
    verdict = apply_guardrails("select 1 /* ; drop table x */ -- and more", Language.SQL, {})

    assert isinstance(verdict, ApprovedCode)
    assert verdict.code == "SELECT 1"


@for_each(
    ("code", "suggestion"),
    [
        ("select * from slaes", "sales"),
        ("select regoin from sales", "region"),
        ("select c.nmae from customers c", "name"),
        ("select s.amuont from sales s, unnest([1]) as t(x)", "amount"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest_known_one(code: str, suggestion: str) -> None:
    verdict = apply_guardrails(code, Language.SQL, ENTITIES)

    assert isinstance(verdict, RejectedCode)
    assert verdict.category is Category.UNKNOWN_ENTITY
    assert verdict.suggestion == suggestion
    assert suggestion in verdict.message


def test_a_name_is_replaced_in_names_alone() -> None:
    code = "select regoin, 'regoin' from sales where regoin = 'no regoin' -- regoin"

    renamed = rename_in_sql(code, "regoin", "region")

    assert renamed == "select region, 'regoin' from sales where region = 'no regoin' -- regoin"


def test_python_may_read_known_keys_and_its_own() -> None:
    code = (
        "def f(rows):\n    out = {'total': 0}\n"
        "    for row in rows:\n        out['total'] += row['amount']\n    return out['total']"
    )

    assert isinstance(apply_guardrails(code, Language.PYTHON, ENTITIES), ApprovedCode)
    rejected = apply_guardrails(code.replace("amount", "ammount"), Language.PYTHON, ENTITIES)
    assert isinstance(rejected, RejectedCode)
    assert (rejected.category, rejected.suggestion) == (Category.UNKNOWN_ENTITY, "amount")


def test_an_empty_registry_allows_no_table_and_none_checks_none() -> None:
    assert isinstance(apply_guardrails("select * from t", Language.SQL, {}), RejectedCode)
    assert isinstance(apply_guardrails("select a from t", Language.SQL, None), ApprovedCode)
    file = apply_guardrails("select * from 't.csv'", Language.SQL, None)
    assert isinstance(file, RejectedCode)
    assert file.category is Category.FORBIDDEN_SOURCE


CHANGES = {
    Statement.INSERT: "insert into sales (id) values (5)",
    Statement.UPDATE: "update sales set amount = 1 where id = 2",
    Statement.DELETE: "delete from sales where id = 2",
    Statement.CREATE_TABLE: "create table totals as select region, sum(amount) as total from sales group by 1",
    Statement.ALTER_TABLE: "alter table sales add column note text",
    Statement.DROP_TABLE: "drop table sales",
}


@pytest.mark.parametrize(("kind", "code"), CHANGES.items(), ids=str)
def test_a_tool_takes_exactly_the_changes_it_names(kind: Statement, code: str, tmp_path: Path) -> None:
    allowed = apply_guardrails(code, Language.SQL, ENTITIES, statements=frozenset({kind}))
    others = frozenset(Statement) - {kind}
    refused = apply_guardrails(code, Language.SQL, ENTITIES, statements=others)

    assert isinstance(allowed, ApprovedCode), allowed
    with duckdb.connect(str(make_database(tmp_path / "t.duckdb"))) as connection:
        connection.execute(allowed.code)
    assert isinstance(refused, RejectedCode)
    assert refused.category is Category.NOT_READ_ONLY


@for_each(
    "code",
    [
        "create view v as select 1",
        "create macro m(x) as x",
        "create secret s (type s3)",
        "drop schema main cascade",
        "drop view v",
        "insert into sales select * from read_csv('x')",
        "create table t as select * from '/etc/passwd'",
        "insert into hidden values (1)",
        "with gone as (delete from sales returning *) insert into sales select * from gone",
        "drop table hidden",
        "create table '/tmp/x.csv' as select 1",
    ],
)
def test_a_tool_that_changes_data_still_takes_only_tables_and_known_names(code: str) -> None:
    statements = frozenset(Statement)

    assert isinstance(apply_guardrails(code, Language.SQL, ENTITIES, statements=statements), RejectedCode)


def test_a_domain_names_the_modules() -> None:
    code = "import random\ndef f():\n    return random.random()"

    assert isinstance(apply_guardrails(code, Language.PYTHON, None), RejectedCode)
    assert isinstance(
        apply_guardrails(code, Language.PYTHON, None, allowed_imports=ALLOWED_IMPORTS), RejectedCode
    )
    approved = apply_guardrails(code, Language.PYTHON, None, allowed_imports=("random",))
    assert isinstance(approved, ApprovedCode)


def test_the_block_of_the_right_language_is_taken() -> None:
    answer = "```sql\nselect 1\n```\nthen\n```python\ndef f():\n    return 1\n```"

    python = apply_guardrails(answer, Language.PYTHON, None)
    sql = apply_guardrails(answer, Language.SQL, None)

    assert isinstance(python, ApprovedCode)
    assert isinstance(sql, ApprovedCode)
    assert sql.code == "SELECT 1"


@pytest.mark.parametrize("language", list(Language))
def test_an_answer_without_code_is_empty_or_no_code(language: Language) -> None:
    for answer, categories in (("", {Category.EMPTY}), ("```\n```", {Category.EMPTY})):
        verdict = apply_guardrails(answer, language, None)
        assert isinstance(verdict, RejectedCode)
        assert verdict.category in categories
    refusal = apply_guardrails("I am sorry, I cannot help with that.", language, None)
    assert isinstance(refusal, RejectedCode)


DEEP = [
    "-" * 19_000 + "1",
    "not " * 4_900 + "1",
    "lambda:" * 2_800 + "1",
    "a" + ".b" * 9_900,
    "a**" * 6_000 + "1",
]


@for_each("expression", DEEP, ids=lambda text: text[:6])
def test_deep_python_is_rejected_rather_than_exhausting_the_parser(expression: str) -> None:
    verdict = apply_guardrails(expression, Language.PYTHON, None)

    assert isinstance(verdict, RejectedCode)
    assert verdict.category is Category.TOO_DEEP


@for_each("language", list(Language))
@for_each(
    "answer",
    [
        "`" * 99_000,
        "~" * 99_000,
        "```" + " " * 99_000,
        "```" + "a" * 99_000,
        "```" + " " * 49_000 + "a" * 49_000,
    ],
    ids=["backquotes", "tildes", "spaces", "letters", "spaces and letters"],
)
def test_a_fence_that_never_ends_is_read_once(answer: str, language: Language) -> None:
    """Trying every possible interpretation would take minutes for each."""
    verdict = apply_guardrails(answer, language, None)

    assert isinstance(verdict, RejectedCode)
    assert verdict.category in {Category.TOO_LARGE, Category.SYNTAX, Category.EMPTY}


def test_size_is_bounded_before_anything_is_parsed() -> None:
    long = "def f():\n    return 1\n" + "# x\n" * 10_000

    verdict = apply_guardrails(long, Language.PYTHON, None)

    assert isinstance(verdict, RejectedCode)
    assert verdict.category is Category.TOO_LARGE
