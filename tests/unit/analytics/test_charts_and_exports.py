"""Valid Vega-Lite charts, exports without spreadsheet injection, reports, schedules."""

from __future__ import annotations

import csv
import io

import orjson
import pytest

from domains.analytics.exports import write_text
from orchestrator.errors import ToolFailure
from orchestrator.res.charts import Drawn, draw
from tests.unit.analytics.factories import Office, a_call
from tests.unit.res.test_charts import validator

CHARTS = [
    {"table": "barley", "kind": "bar", "column": "yield", "by": "site"},
    {"column": "yield", "by": "site"},
    {"table": "cars", "kind": "bar"},
    {"table": "stocks", "kind": "bar", "column": "price", "by": "symbol", "function": "maximum"},
    {"table": "stocks", "kind": "line", "column": "price"},
    {"table": "wheat", "kind": "line", "column": "wages", "by": "year"},
    {"table": "cars", "kind": "scatter", "column": "mpg", "by": "weight"},
    {"table": "iris", "kind": "scatter"},
    {"table": "weather", "kind": "histogram", "column": "wind"},
]


@pytest.mark.parametrize(
    "inputs", CHARTS, ids=lambda inputs: f"{inputs.get('kind')} of {inputs.get('table')}"
)
async def test_every_chart_is_valid_vega_lite(inputs: dict[str, str]) -> None:
    """RS-5"""
    found = await Office().charts.draw(call=a_call(), **inputs)
    drawn = draw(found["rows"], found["title"], found["chart_type"])
    assert isinstance(drawn, Drawn)
    chart = drawn.spec
    errors = [error.message for error in validator().iter_errors(chart)]
    assert errors == []
    names = {chart["encoding"][axis]["field"] for axis in ("x", "y")}
    assert all(names <= row.keys() for row in chart["data"]["values"])


def test_the_schema_turns_away_what_is_no_chart() -> None:
    assert not validator().is_valid({"mark": "pie chart", "encoding": {"x": {"field": 3}}})


async def test_a_result_is_drawn_as_it_is() -> None:
    """If the result lacks the column, the chart uses the table."""
    office = Office()
    statement = "SELECT origin, avg(mpg) AS mean FROM cars GROUP BY origin ORDER BY origin"
    asked = await office.tables.run_sql(statement=statement, call=a_call())
    source = {"table": "cars", "table_id": asked["table_id"]}

    drawn = await office.charts.draw(call=a_call(), **source)
    other = await office.charts.draw(call=a_call(), **source, kind="histogram", column="weight")

    assert drawn["rows"] == asked["rows"]
    assert other["title"] == "weight of cars"


async def test_a_histogram_counts_every_row_once() -> None:
    found = await Office().charts.draw(table="weather", kind="histogram", column="wind", call=a_call())
    assert sum(row["rows"] for row in found["rows"]) == 1461


async def test_a_chart_without_numbers_says_what_it_needs() -> None:
    with pytest.raises(ToolFailure, match="is not a numeric column"):
        await Office().charts.draw(table="cars", kind="histogram", column="name", call=a_call())


async def test_an_export_holds_the_whole_table() -> None:
    office = Office()
    found = await office.exports.export(table="airports", call=a_call())
    document = await office.exports.document(found["document_id"], a_call())
    rows = list(csv.DictReader(io.StringIO(document["text"])))
    assert (len(rows), rows[0]["name"]) == (3376, "Thigpen")
    with pytest.raises(ToolFailure, match="no such document"):
        await office.exports.document(found["document_id"], a_call(user="bert"))


async def test_an_export_as_json_reads_back() -> None:
    office = Office()
    asked = await office.tables.run_sql(statement="SELECT * FROM wheat WHERE year > 1800", call=a_call())
    found = await office.exports.export(
        table="wheat", table_id=asked["table_id"], format="json", call=a_call()
    )
    document = await office.exports.document(found["document_id"], a_call())
    assert orjson.loads(document["text"]) == asked["rows"]
    assert found["what"] == "the last result"


@pytest.mark.parametrize("cell", ["=1+1", "+cmd", "-2", "@SUM(A1)", "\tx"])
def test_a_cell_is_no_formula_for_a_spreadsheet(cell: str) -> None:
    text = write_text(["a"], [{"a": cell}, {"a": -2}], "csv")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[1] == [f"'{cell}"]
    assert rows[2] == ["-2"]


async def test_a_report_summarizes_each_column() -> None:
    rows = (await Office().exports.report(table="cars", call=a_call()))["rows"]
    assert {row["column"]: row["summary"] for row in rows}["mpg"] == (
        "23.51 on average, 9.0 to 46.6, 1.97% missing"
    )


async def test_schedules_are_kept_once_and_cancelled() -> None:
    office = Office()
    first = await office.schedules.create(table="weather", every="week", call=a_call("key"))
    again = await office.schedules.create(table="weather", every="week", call=a_call("key"))
    assert first == again
    other = await office.schedules.create(table="cars", every="day", call=a_call())
    assert [row["number"] for row in (await office.schedules.list(call=a_call()))["rows"]] == [1, 2]
    await office.schedules.cancel(number=other["number"], call=a_call())
    assert [row["number"] for row in (await office.schedules.list(call=a_call()))["rows"]] == [1]
    with pytest.raises(ToolFailure, match="no schedule 7"):
        await office.schedules.cancel(number=7, call=a_call())
    with pytest.raises(ToolFailure, match="no schedule 1"):
        await office.schedules.cancel(number=1, call=a_call(user="bert"))
