"""Questions about tables, against what plain SQL or arithmetic gives."""

from __future__ import annotations

import pytest

from domains.analytics.policies.read_policies import choose_staging
from domains.analytics.statements.conditions import parse_condition
from domains.analytics.statements.parts import Values
from domains.analytics.store.engine import engine
from domains.analytics.store.workspace import Workspace
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.testing.memory import MemoryRecords
from tests.unit.analytics.factories import Office, a_call


def count(table: str, test: str) -> object:
    return engine().run(f"SELECT count(*) FROM in0 WHERE {test}", {}, [f"base:{table}"]).rows[0][0]


@pytest.mark.parametrize(
    ("table", "said", "meant"),
    [
        ("cars", "where origin is Japan and horsepower over 100", "origin = 'Japan' AND horsepower > 100"),
        (
            "cars",
            "with hp between 100 and 120 and origin is usa",
            "horsepower BETWEEN 100 AND 120 AND origin = 'USA'",
        ),
        ("cars", "where origin is Japan or Europe", "origin IN ('Japan', 'Europe')"),
        ("cars", "where origin is not USA", "origin <> 'USA'"),
        ("cars", "where weight is not over 2000", "weight <= 2000"),
        ("cars", "where name does not contain ford", "name NOT LIKE '%ford%'"),
        ("cars", "whose miles per gallon is missing", "mpg IS NULL"),
        ("cars", "where hp is not missing", "horsepower IS NOT NULL"),
        ("cars", "where name contains 'ford'", "name LIKE '%ford%'"),
        ("cars", "where name starts with ford", "name LIKE 'ford%'"),
        ("cars", "where year is 1975", "year(year) = 1975"),
        ("cars", "where the year is before 1972", "year(year) < 1972"),
        ("stocks", "where price > 100 and date after 2008", "price > 100 AND year(date) > 2008"),
        ("stocks", "where date is at least 2005-06-01", "date >= DATE '2005-06-01'"),
        ("weather", "where temp max is at most -1", "temp_max <= -1"),
        ("airports", 'where city is "Colorado Springs"', "city = 'Colorado Springs'"),
    ],
)
async def test_conditions_mean_what_they_say(table: str, said: str, meant: str) -> None:
    workspace = Workspace(MemoryRecords(), "nobody", [])
    values = Values()
    test = parse_condition(said, workspace.sheet(table)).write(values)
    found = await workspace.read(
        f"SELECT count(*) FROM in0 WHERE {test}", values.named, workspace.sheet(table)
    )
    assert found.rows[0][0] == count(table, meant)
    assert found.rows[0][0] != 0


@pytest.mark.parametrize(
    ("said", "category", "words"),
    [
        ("where horsepwer is 5", FailureCategory.NOT_FOUND, "Did you mean horsepower"),
        ("where horsepower is over many", FailureCategory.VALIDATION_ERROR, "needs a number"),
        ("where horsepower is over nan", FailureCategory.VALIDATION_ERROR, "needs a number"),
        ("where year is after yesterday", FailureCategory.VALIDATION_ERROR, "needs a day"),
        ("where wheels", FailureCategory.VALIDATION_ERROR, "cannot read"),
        ("where origin is Japan or weight over 10", FailureCategory.VALIDATION_ERROR, "cannot read"),
        ("where origin is Japan and", FailureCategory.VALIDATION_ERROR, "cannot read"),
        ("where origin is Japan but not Europe", FailureCategory.VALIDATION_ERROR, "in quotes"),
        ("where origin is Japan and Europe", FailureCategory.VALIDATION_ERROR, "cannot read"),
        ("where name is " + "x" * 600, FailureCategory.VALIDATION_ERROR, "cannot read"),
    ],
)
def test_conditions_that_mean_nothing_say_why(said: str, category: FailureCategory, words: str) -> None:
    sheet = Workspace(MemoryRecords(), "nobody", []).sheet("cars")
    with pytest.raises(ToolFailure, match=words) as failure:
        parse_condition(said, sheet)
    assert failure.value.category is category


async def test_a_long_result_comes_in_pages_of_512_rows() -> None:
    """PX-12: the first page with a `table_id` for the rest."""
    tables = Office().tables
    call = a_call()
    first = await tables.query(table="airports", call=call, order="iata")
    assert (len(first["rows"]), first["row_count"]) == (512, 3376)
    pages = [await tables.page(first["table_id"], number, call) for number in range(1, 8)]
    assert [len(page["rows"]) for page in pages] == [512] * 6 + [304]
    assert pages[0]["rows"] == first["rows"]
    codes = [row["iata"] for page in pages for row in page["rows"]]
    assert codes == sorted(codes)
    assert len(set(codes)) == 3376


async def test_a_short_result_needs_no_further_pages() -> None:
    found = await Office().tables.query(table="cars", condition="where origin is Japan", call=a_call())
    assert len(found["rows"]) == found["row_count"] == 79
    assert "table_id" not in found


@pytest.mark.parametrize("number", [0, 8, -1])
async def test_there_are_no_pages_beyond_the_last(number: int) -> None:
    tables = Office().tables
    with pytest.raises(ToolFailure, match="There are 7 pages"):
        await tables.page("base:airports", number, a_call())


async def test_nobody_reads_the_pages_of_others() -> None:
    office = Office()
    found = await office.tables.query(table="airports", order="city", call=a_call(user="anna"))
    with pytest.raises(ToolFailure, match="no such table"):
        await office.tables.page(found["table_id"], 1, a_call(user="bert"))


async def test_aggregates_agree_with_arithmetic() -> None:
    tables = Office().tables
    found = await tables.aggregate(
        table="electricity", function="sum", column="generation", by="source", call=a_call()
    )
    rows = (await tables.preview(table="electricity", call=a_call()))["rows"]
    for row in found["rows"]:
        expected = sum(one["generation"] for one in rows if one["source"] == row["source"])
        assert row["sum_generation"] == expected


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"function": "average"}, "Of which column"),
        ({"function": "average", "column": "name"}, "holds no numbers"),
        ({"function": "sum", "column": "hose"}, "has no column 'hose'"),
    ],
)
async def test_a_measure_that_makes_no_sense_says_why(inputs: dict[str, str], words: str) -> None:
    with pytest.raises(ToolFailure, match=words):
        await Office().tables.aggregate(table="cars", call=a_call(), **inputs)


async def test_outliers_lie_outside_of_the_fences() -> None:
    found = await Office().tables.find_outliers(table="cars", column="horsepower", call=a_call())
    assert [row["horsepower"] > 211 for row in found["rows"]] == [True] * found["row_count"]
    assert count("cars", "horsepower > 211.375 OR horsepower < -5.625") == found["row_count"]


async def test_correlations_are_ordered_by_strength() -> None:
    found = await Office().tables.correlate(table="cars", call=a_call())
    strengths = [abs(row["correlation"]) for row in found["rows"]]
    assert strengths == sorted(strengths, reverse=True)
    assert len(strengths) == 15


async def test_comparing_groups_that_are_not_there_says_so() -> None:
    with pytest.raises(ToolFailure, match="No column of cars has the value 'Atlantis'"):
        await Office().tables.compare(
            table="cars", column="mpg", first="Atlantis", second="Japan", call=a_call()
        )


@pytest.mark.parametrize(
    ("sources", "targets", "columns", "change"),
    [
        (2, 0, False, "merge"),
        (2, 1, True, "merge"),
        (3, 2, True, "merge"),
        (1, 2, True, "split_column"),
        (1, 5, True, "split_column"),
        (1, 1, True, "derive_column"),
        (1, 2, False, "insert_row"),
        (1, 1, False, "insert_row"),
        (1, 0, False, None),
    ],
)
def test_staging_goes_by_counts(sources: int, targets: int, columns: bool, change: str | None) -> None:
    """PX-16: the redirect of a query whose data do not exist."""
    assert choose_staging(sources, targets, columns=columns) == change


@pytest.mark.parametrize(
    ("inputs", "counts"),
    [
        ({"table": "cars", "columns": ["make", "series"]}, (1, 2)),
        ({"table": "cars", "columns": ["make", "name"]}, (1, 1)),
        ({"table": "cars", "condition": "where origin is Norway"}, (1, 1)),
        ({"table": "cars", "condition": "where origin is Norway or Sweden"}, (1, 2)),
        ({"table": "cars", "condition": "where horsepower is over 9000"}, (1, 0)),
        ({"table": "seattle", "other_table": "san_francisco"}, (2, 0)),
        ({"table": "seattle", "other_table": "seattle"}, (1, 0)),
    ],
)
async def test_a_survey_counts_sources_and_missing_targets(inputs: dict, counts: tuple[int, int]) -> None:
    """PX-16: what the redirect goes by."""
    found = await Office().tables.survey(call=a_call(), **inputs)
    assert (found["sources"], found["targets"]) == counts
