"""Names, values and formulas that try to be more than they are (PX-10)."""

from __future__ import annotations

import asyncio

import duckdb
import pytest

from domains.analytics.statements.formulas import write_formula
from domains.analytics.statements.parts import Values, quote
from domains.analytics.store.engine import Engine, Recipe
from domains.analytics.store.workspace import Workspace
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.testing.memory import MemoryRecords
from tests.unit.analytics.factories import Office, a_call

NAMES = [
    'x"; DROP TABLE base.cars; --',
    "name FROM in0; ATTACH 'evil.db'; --",
    '"name", (SELECT 1)',
    "name) FROM in0 UNION SELECT current_setting('secret_directory') --",
    "*",
    "in0",
    "base.cars",
    "../../etc/passwd",
    "name\0",
    "",
    "   ",
    "a" * 5000,
    "𝓷𝓪𝓶𝓮",
    "' OR '1'='1",
]


@pytest.mark.parametrize("name", NAMES)
async def test_a_hostile_name_is_only_an_unknown_name(name: str) -> None:
    office = Office()
    attempts = [
        office.tables.preview(table=name, call=a_call()),
        office.tables.query(table="cars", columns=[name], call=a_call()),
        office.tables.query(table="cars", order=name, call=a_call()),
        office.tables.aggregate(table="cars", function="average", column=name, call=a_call()),
        office.tables.aggregate(table="cars", by=name, call=a_call()),
        office.edits.drop(table="cars", column=name, call=a_call()),
        office.reshaping.split(table="cars", by=name, call=a_call()),
        office.charts.draw(table="cars", by=name, call=a_call()),
    ]
    failures = await asyncio.gather(*attempts, return_exceptions=True)
    assert {getattr(failure, "category", failure) for failure in failures} == {FailureCategory.NOT_FOUND}
    assert {type(failure) for failure in failures} == {ToolFailure}
    assert (await office.tables.aggregate(table="cars", call=a_call()))["rows"] == [{"count": 406}]


@pytest.mark.parametrize("name", NAMES)
async def test_a_hostile_new_name_is_turned_away(name: str) -> None:
    with pytest.raises(ToolFailure, match="cannot be a name") as failure:
        await Office().edits.rename(table="cars", column="weight", new_name=name, call=a_call())
    assert failure.value.category is FailureCategory.VALIDATION_ERROR


@pytest.mark.parametrize(
    "value",
    ["' OR 1=1 --", '"; DROP TABLE base.cars; --', "$v0", "%", "_", "\\", "x') UNION SELECT 1 --", "𝓙apan"],
)
async def test_a_hostile_value_is_only_compared(value: str) -> None:
    office = Office()
    with pytest.raises(ToolFailure, match=r"has no row with origin|cannot read the condition"):
        await office.tables.query(table="cars", condition=f"where origin is {value}", call=a_call())
    inserted = await office.edits.insert(table="cars", values={"name": value}, call=a_call())
    assert inserted["row_count"] == 407
    shown = await office.tables.page(inserted["table_id"], 1, a_call())
    assert shown["rows"][-1]["name"] == value


@pytest.mark.parametrize(
    "formula",
    [
        "(SELECT count(*) FROM base.airports)",
        "read_csv('/etc/passwd')",
        "read_text('/etc/passwd')",
        "getenv('HOME')",
        "current_setting('memory_limit')",
        "weight; DROP TABLE base.cars",
        "weight FROM base.airports",
        "base.airports.name",
        "in0.weight",
        "*",
        "COLUMNS('.*')",
        "random()",
        "sleep_ms(10000)",
        "repeat('x', 1000000000)",
        "CAST(weight AS BLOB)",
        "weight::BLOB",
        "length(name) OVER ()",
        "sum(weight)",
        "CASE WHEN true THEN 1 END",
        "(weight, name)",
        "[weight]",
        "{'a': weight}",
        "$v0",
        "?",
        "weight, name",
        "weight IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "'" + "a" * 400 + "'",
        "((((((((((((((((weight))))))))))))))))",
        "1 --",
        "",
    ],
)
def test_a_formula_is_plain_arithmetic_or_nothing(formula: str) -> None:
    """PX-10: only what is listed gets through; a comment is no part of it."""
    sheet = Workspace(MemoryRecords(), "nobody", []).sheet("cars")
    if formula == "1 --":
        assert write_formula(formula, sheet, Values()) == "$v0"
        return
    with pytest.raises(ToolFailure):
        write_formula(formula, sheet, Values())


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("horsepower / weight", 130 / 3504),
        ("round(weight / 2000, 1)", 1.8),
        ("-weight * 2 + 8", -7000),
        ("upper(name)", "CHEVROLET CHEVELLE MALIBU"),
        ("concat(name, ', ', origin)", "chevrolet chevelle malibu, USA"),
        ("year(year) + 1", 1971),
        ("weight / 0", None),
        ("horsepower > 100 and cylinders = 8", True),
    ],
)
async def test_formulas_compute_what_they_say(formula: str, expected: object) -> None:
    office = Office()
    found = await office.edits.derive(table="cars", formula=f"fresh = {formula}", call=a_call())
    assert found["rows"][0]["fresh"] == pytest.approx(expected)


@pytest.fixture(scope="module")
def engine() -> Engine:
    """One for all that it refuses, as a worker has one for all that its users ask."""
    return Engine()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/etc/*')",
        "COPY base.cars TO 'stolen.csv'",
        "ATTACH 'elsewhere.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '64GB'",
        "PRAGMA database_list; SELECT * FROM '/etc/passwd'",
    ],
)
def test_the_engine_itself_reaches_nothing_outside(statement: str, engine: Engine) -> None:
    """Even a statement that got through would find the doors locked."""
    with pytest.raises((duckdb.Error, ToolFailure)):
        engine.run(statement, {}, [])


def test_a_statement_without_end_is_interrupted() -> None:
    quick = Engine(longest_s=0.2)
    with pytest.raises(ToolFailure, match="took too long") as failure:
        quick.run(
            "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range % 7 = b.range % 11",
            {},
            [],
        )
    assert failure.value.category is FailureCategory.TIMEOUT
    assert quick.run("SELECT count(*) FROM in0", {}, ["base:cars"]).rows == [(406,)]


async def test_a_result_without_bounds_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("domains.analytics.store.engine.MOST_ROWS", 1000)
    with pytest.raises(ToolFailure, match="more than 1,000 rows"):
        await Office().reshaping.merge(table="seattle", other_table="san_francisco", call=a_call())


@pytest.mark.parametrize("name", ['a"b', 'a""', "a\0b", '"'])
def test_quoted_names_stay_in_their_quotes(name: str) -> None:
    quoted = quote(name)
    assert quoted[0] == quoted[-1] == '"'
    assert '"' not in quoted[1:-1].replace('""', "")
    assert "\0" not in quoted


def test_tables_that_are_kept_leave_memory_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker makes tables for years: what it keeps makes room, and is made again when it is asked for."""
    monkeypatch.setattr("domains.analytics.store.engine.MEMORY", "24MB")
    small = Engine()
    recipes = {
        f"made-{number}": Recipe(f"made-{number}", f"SELECT *, {number} AS n FROM in0", {}, ("base:cars",))
        for number in range(200)
    }

    made = [small.make(node, recipes).rows for node in recipes]

    assert made == [406] * len(recipes)
    first = small.run("SELECT max(n) FROM in0", {}, ["made-0"], recipes)
    assert first.rows == [(0,)]
    with pytest.raises(ToolFailure, match="needs more memory than I may use"):
        small.run("SELECT array_agg(a.range) FROM range(100000000) a", {}, [])
