"""Tables that owners list, describe, query, save and drop. Each owner has separate tables."""

from __future__ import annotations

import pytest

from domains.analytics.engine import Engine
from domains.analytics.workspace import MOST_SAVED
from orchestrator.errors import FailureCategory, ToolFailure
from tests.cases import for_each
from tests.unit.analytics.factories import Office, a_call

FAST = "SELECT name, horsepower FROM cars WHERE horsepower > 200 ORDER BY horsepower DESC"


async def test_a_statement_names_saved_tables_like_given_ones() -> None:
    office = Office()
    found = await office.tables.run_sql(statement=FAST, call=a_call())
    await office.tables.save(table="cars", table_id=found["table_id"], new_name="fast cars", call=a_call())

    counted = await office.tables.run_sql(statement="SELECT count(*) AS n FROM fast_cars", call=a_call())

    assert (found["row_count"], counted["rows"]) == (10, [{"n": 10}])
    assert "fast_cars" in [one["table"] for one in (await office.tables.list(call=a_call()))["tables"]]
    assert found["code"] == FAST


async def test_a_saved_table_outlives_the_one_that_it_was_made_from() -> None:
    office = Office()
    await office.tables.save(table="iris", new_name="plants", call=a_call())
    found = await office.tables.run_sql(statement="SELECT DISTINCT species FROM plants", call=a_call())
    await office.tables.save(table="plants", table_id=found["table_id"], new_name="kinds", call=a_call())
    await office.tables.drop(table="plants", call=a_call())

    assert (await office.tables.describe(table="kinds", call=a_call()))["row_count"] == 3
    with pytest.raises(ToolFailure, match="no table 'plants'"):
        await office.tables.describe(table="plants", call=a_call())


async def test_a_repeated_call_saves_and_drops_once() -> None:
    """RT-9: the call's key finds the outcome of both."""
    office = Office()
    assert await office.tables.outcome(idempotency_key="one", call=a_call()) == {"status": "not_done"}
    first = await office.tables.save(table="wheat", new_name="grain", call=a_call("one"))
    assert await office.tables.save(table="wheat", new_name="grain", call=a_call("one")) == first
    assert (await office.tables.outcome(idempotency_key="one", call=a_call()))["data"] == first
    with pytest.raises(ToolFailure, match="already a table grain"):
        await office.tables.save(table="cars", new_name="grain", call=a_call())

    dropped = await office.tables.drop(table="grain", call=a_call("two"))
    assert await office.tables.drop(table="grain", call=a_call("two")) == dropped
    assert (await office.tables.outcome(idempotency_key="two", call=a_call()))["data"] == dropped
    with pytest.raises(ToolFailure, match="no table 'grain'"):
        await office.tables.drop(table="grain", call=a_call())
    assert (await office.tables.save(table="cars", new_name="grain", call=a_call()))["row_count"] == 406


@for_each("name", ["cars", "Jobs", "", "   ", "1st", "!", "a" * 61, 'x"; DROP TABLE cars; --' + "a" * 60])
async def test_a_name_that_a_table_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(ToolFailure, match=r"not a valid name|built-in table"):
        await Office().tables.save(table="iris", new_name=name, call=a_call())


async def test_a_workspace_has_a_limit() -> None:
    office = Office()
    for number in range(MOST_SAVED):
        await office.tables.save(table="iris", new_name=f"copy_{number}", call=a_call())
    with pytest.raises(ToolFailure, match="drop one first"):
        await office.tables.save(table="iris", new_name="one_more", call=a_call())


async def test_owners_do_not_see_each_others_tables() -> None:
    office = Office()
    ada, bert = a_call(user="ada"), a_call(user="bert")
    found = await office.tables.run_sql(statement=FAST, call=ada)
    await office.tables.save(table="cars", table_id=found["table_id"], new_name="fast", call=ada)

    for attempt in (
        office.tables.describe(table="fast", call=bert),
        office.tables.page(found["table_id"], 1, bert),
        office.tables.save(table="cars", table_id=found["table_id"], new_name="mine", call=bert),
        office.tables.drop(table="fast", call=bert),
    ):
        with pytest.raises(ToolFailure) as failure:
            await attempt
        assert failure.value.category is FailureCategory.NOT_FOUND


async def test_a_long_result_has_pages() -> None:
    """PX-12"""
    office = Office()
    found = await office.tables.run_sql(statement="SELECT * FROM airports ORDER BY iata", call=a_call())
    assert (len(found["rows"]), found["row_count"]) == (512, 3376)

    pages = [(await office.tables.page(found["table_id"], one, a_call()))["rows"] for one in range(1, 8)]

    codes = [row["iata"] for page in pages for row in page]
    assert (len(codes), codes) == (3376, sorted(codes))
    with pytest.raises(ToolFailure, match="no page 8"):
        await office.tables.page(found["table_id"], 8, a_call())


@for_each(
    "statement",
    [
        "SELECT 1 AS n",
        "SELECT * FROM nothing",
        "SELECT nothing FROM cars",
        "SELECT * FROM cars, read_csv('/etc/passwd')",
        "SELECT * FROM cars, '/etc/passwd'",
    ],
)
async def test_a_statement_that_reads_anything_else_fails(statement: str) -> None:
    """PX-10: even if the guardrails let it pass."""
    with pytest.raises(ToolFailure) as failure:
        await Office().tables.run_sql(statement=statement, call=a_call())
    assert failure.value.category is FailureCategory.VALIDATION_ERROR


@for_each("name", ['x"; DROP TABLE cars; --', "*", "../../etc/passwd", "name\0", "' OR '1'='1"])
async def test_a_hostile_name_is_an_unknown_name(name: str) -> None:
    office = Office()
    for attempt in (
        office.tables.describe(table=name, call=a_call()),
        office.charts.draw(table="cars", by=name, call=a_call()),
        office.exports.export(table=name, call=a_call()),
    ):
        with pytest.raises(ToolFailure) as failure:
            await attempt
        assert failure.value.category is FailureCategory.NOT_FOUND
    assert (await office.tables.describe(table="cars", call=a_call()))["row_count"] == 406


def test_a_statement_that_takes_too_long_is_interrupted() -> None:
    endless = "SELECT count(*) FROM airports a, airports b, airports c, airports d WHERE a.iata < b.iata"
    with pytest.raises(ToolFailure) as failure:
        Engine(longest_s=0.2).run(endless)
    assert failure.value.category is FailureCategory.TIMEOUT
