"""RS-5: Vega-Lite charts that fit the data. Specifications that do more than draw are rejected."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import orjson
import pytest
from jsonschema import Draft7Validator

from orchestrator.res.charts import MOST_POINTS, Drawn, NotDrawn, draw, find_chart_fault

MONTHS = [{"month": "2026-01-01", "sales": 3}, {"month": "2026-02-01", "sales": 5.5}]
TEAMS = [{"team": "red", "points": 3}, {"team": "blue", "points": 7}]
PAIRS = [{"weight": 1.5, "height": 2}, {"weight": 2.5, "height": 4}]
NUMBERS = [{"age": 31}, {"age": 44}, {"age": None}]


@cache
def validator() -> Any:
    """Return a validator for Vega-Lite's schema."""
    place = files("altair.vegalite.v6.schema") / "vega-lite-schema.json"
    return Draft7Validator(orjson.loads(place.read_bytes()))


def make_spec(**parts: Any) -> dict[str, Any]:
    drawn = draw(TEAMS)
    assert isinstance(drawn, Drawn)
    return {**drawn.spec, **parts}


@pytest.mark.parametrize(
    ("rows", "kind", "mark"),
    [
        (MONTHS, "line", "line"),
        (TEAMS, "bar", "bar"),
        (PAIRS, "scatter", "point"),
        (NUMBERS, "histogram", "bar"),
    ],
)
def test_the_kind_of_chart_follows_from_the_columns(rows: list[Any], kind: str, mark: str) -> None:
    drawn = draw(rows, "A title")

    assert isinstance(drawn, Drawn)
    assert (drawn.chart_type, drawn.spec["mark"]["type"]) == (kind, mark)
    assert list(validator().iter_errors(drawn.spec)) == []
    assert find_chart_fault(drawn.spec) is None


def test_a_kind_that_is_named_is_taken_if_it_fits() -> None:
    named, unfit = draw(PAIRS, chart_type="histogram"), draw(PAIRS, chart_type="line")

    assert isinstance(named, Drawn)
    assert isinstance(unfit, Drawn)
    assert (named.chart_type, unfit.chart_type) == ("histogram", "scatter")


def test_names_with_dots_are_no_paths() -> None:
    drawn = draw([{"a.b": "x", "c[0]": 1}])

    assert isinstance(drawn, Drawn)
    assert drawn.spec["encoding"]["x"]["field"] == r"a\.b"
    assert drawn.spec["encoding"]["y"]["field"] == r"c\[0\]"


@pytest.mark.parametrize("rows", [[], [{"name": "a"}], None, "rows", [{"n": 1}] * (MOST_POINTS + 1)])
def test_what_cannot_be_drawn_says_why(rows: Any) -> None:
    drawn = draw(rows)

    assert isinstance(drawn, NotDrawn)
    assert drawn.why


@pytest.mark.parametrize(
    "spec",
    [
        make_spec(data={"url": "https://evil.example/rows.json"}),
        make_spec(usermeta={"embedOptions": {"loader": {"baseURL": "https://evil.example"}}}),
        make_spec(params=[{"name": "p", "bind": {"element": "body"}}]),
        make_spec(transform=[{"calculate": "alert(1)", "as": "x"}]),
        make_spec(mark={"type": "image", "url": "https://evil.example/x.png"}),
        make_spec(mark={"type": "bar", "href": "javascript:alert(1)"}),
        make_spec(mark={"type": "bar", "tooltip": {"signal": "alert(1)"}}),
        make_spec(encoding={"href": {"field": "team"}}),
        make_spec(encoding={"x": {"field": "team", "axis": {"labelExpr": "alert(1)"}}}),
        make_spec(encoding={"x": {"field": "team", "scale": {"domain": {"signal": "alert(1)"}}}}),
        make_spec(encoding={"x": {"field": {"repeat": "column"}}}),
        make_spec(encoding={"x": {"field": "team", "condition": {"test": "alert(1)", "value": 1}}}),
        make_spec(data={"values": [{"team": {"deep": 1}}]}),
        make_spec(data={"values": []}),
        make_spec(layer=[{"mark": "bar", "encoding": {"url": {"field": "x"}}}]),
        make_spec(layer=[{"data": {"url": "x"}, "mark": "bar", "encoding": {"x": {"field": "x"}}}]),
        ["bar"],
    ],
)
def test_a_specification_that_does_more_than_draw_is_refused(spec: Any) -> None:
    assert find_chart_fault(spec)
