"""RS-5: Vega-Lite charts that fit the data."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import orjson
import pytest
from jsonschema import Draft7Validator

from orchestrator.res.charts import MOST_POINTS, Drawn, NotDrawn, draw

MONTHS = [{"month": "2026-01-01", "sales": 3}, {"month": "2026-02-01", "sales": 5.5}]
TEAMS = [{"team": "red", "points": 3}, {"team": "blue", "points": 7}]
PAIRS = [{"weight": 1.5, "height": 2}, {"weight": 2.5, "height": 4}]
NUMBERS = [{"age": 31}, {"age": 44}, {"age": None}]


@cache
def validator() -> Any:
    """Return a validator for Vega-Lite's schema."""
    place = files("altair.vegalite.v6.schema") / "vega-lite-schema.json"
    return Draft7Validator(orjson.loads(place.read_bytes()))


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


def test_a_kind_that_is_named_is_taken_if_it_fits() -> None:
    named, unfit = draw(PAIRS, chart_type="histogram"), draw(TEAMS, chart_type="scatter")

    assert isinstance(named, Drawn)
    assert isinstance(unfit, Drawn)
    assert (named.chart_type, unfit.chart_type) == ("histogram", "bar")


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
