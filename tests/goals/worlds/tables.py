"""The tables of the analytics domain as their files have them: what a judge counts by itself."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

_FILES = {"cars": "cars.json", "iris": "iris.json", "weather": "seattle-weather.csv", "barley": "barley.json"}
_NAMES = {
    "Name": "name", "Miles_per_Gallon": "mpg", "Cylinders": "cylinders", "Displacement": "displacement",
    "Horsepower": "horsepower", "Weight_in_lbs": "weight", "Acceleration": "acceleration", "Year": "year",
    "Origin": "origin", "sepalLength": "sepal_length", "sepalWidth": "sepal_width", "petalLength": "petal_length",
    "petalWidth": "petal_width", "weather": "conditions",
}  # fmt: skip
_CONDITION = re.compile(r"where (?P<column>\w+) is (?:(?P<side>over|under) )?(?P<value>.+)")


@cache
def rows_of(table: str) -> Sequence[Mapping[str, Any]]:
    """Read a table from its file; one that was made in a conversation has none."""
    if table not in _FILES:
        return ()
    text = (files("vega_datasets") / "_data" / _FILES[table]).read_text(encoding="utf-8")
    read = csv.DictReader(text.splitlines()) if _FILES[table].endswith("csv") else json.loads(text)
    return [{_NAMES.get(name, name): _number(value) for name, value in row.items()} for row in read]


def columns_of(table: str) -> list[str]:
    return list(next(iter(rows_of(table)), {}))


def _number(value: Any) -> Any:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def figure(table: str, column: str, function: str) -> float:
    """The average, highest or lowest value of a column; gaps do not count."""
    values = [float(row[column]) for row in rows_of(table) if row[column] is not None]
    return {"average": sum(values) / len(values), "highest": max(values), "lowest": min(values)}[function]


def has_no_duplicates(table: str) -> bool:
    rows = [tuple(map(str, row.values())) for row in rows_of(table)]
    return len(rows) == len(set(rows))


def count_where(table: str, condition: str) -> int:
    found = _CONDITION.fullmatch(condition)
    assert found is not None, condition
    column, side, value = found["column"], found["side"], _number(found["value"])
    values = [row[column] for row in rows_of(table) if row[column] is not None]
    if side is None:
        return sum(str(one) == found["value"] or one == value for one in values)
    return sum(one > value if side == "over" else one < value for one in values)
