"""Charts of rows, as Vega-Lite specifications (RS-5).

Tools and models provide rows and a chart type, but never a specification, so that a chart cannot load or
execute anything.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.saying import Told, say
from orchestrator.types import Json, JsonObject, is_list, is_object

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MOST_POINTS = 5_000
LOOKED_AT = 50
"""Number of rows used to infer column types."""

_NUMBER, _TIME, _WORD = "quantitative", "temporal", "nominal"
_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}.*)?)?")
_MARKS: Final = {"line": "line", "bar": "bar", "scatter": "point", "histogram": "bar"}
_ACROSS: Final = {
    "line": (_TIME, _NUMBER, _WORD),
    "bar": (_WORD, _TIME, _NUMBER),
    "scatter": (_NUMBER,),
    "histogram": (_NUMBER,),
}
"""Types of the horizontal axis for each chart type, with the preferred type first."""


@dataclass(frozen=True, slots=True)
class Drawn:
    spec: JsonObject
    chart_type: str


@dataclass(frozen=True, slots=True)
class NotDrawn:
    """The reason why a chart was not drawn, as a phrase that completes "because …"."""

    why: Told


def draw(rows: Json, title: str = "", chart_type: str | None = None) -> Drawn | NotDrawn:
    """Draw a chart of rows, or return why they can't be drawn.

    If `chart_type` does not suit the columns, choose the most informative type that does.
    """
    if not is_list(rows) or not rows or not all(is_object(row) for row in rows):
        return NotDrawn(say("no_rows"))
    if len(rows) > MOST_POINTS:
        return NotDrawn(say("too_many_points", count=len(rows)))
    columns = _read_columns(rows)
    kind = chart_type if chart_type and _choose_axes(chart_type, columns) else _choose_type(columns)
    axes = _choose_axes(kind, columns)
    if axes is None:
        return NotDrawn(say("nothing_to_measure"))
    spec: JsonObject = {
        "$schema": SCHEMA,
        "width": "container",
        "data": {"values": [{name: row.get(name) for name in axes} for row in rows]},
        "mark": {"type": _MARKS[kind], "tooltip": True},
        "encoding": _encode(kind, axes, columns),
    }
    if title:
        spec["title"] = title
    return Drawn(spec, kind)


def _read_columns(rows: list[JsonObject]) -> dict[str, str]:
    columns: dict[str, str] = {}
    for name in rows[0]:
        values = [value for row in rows[:LOOKED_AT] if (value := row.get(name)) is not None]
        if not values:
            continue
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            columns[name] = _NUMBER
        elif all(isinstance(value, str) for value in values):
            columns[name] = _TIME if all(_DATE.fullmatch(value) for value in values) else _WORD
    return columns


def _choose_type(columns: Mapping[str, str]) -> str:
    kinds = [*columns.values()]
    if _TIME in kinds:
        return "line"
    if _WORD in kinds:
        return "bar"
    return "scatter" if kinds.count(_NUMBER) > 1 else "histogram"


def _choose_axes(chart_type: str, columns: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the columns for the axes, or None if the chart type does not suit the columns."""
    preferred = _ACROSS.get(chart_type, ())
    across = next((name for kind in preferred for name, own in columns.items() if own == kind), None)
    if across is None:
        return None
    if chart_type == "histogram":
        return (across,)
    measured = next((name for name, own in columns.items() if own == _NUMBER and name != across), None)
    return None if measured is None else (across, measured)


def _encode(chart_type: str, axes: tuple[str, ...], columns: Mapping[str, str]) -> JsonObject:
    x, *measured = (_write_axis(name, columns[name]) for name in axes)
    count: JsonObject = {"aggregate": "count", "type": _NUMBER, "title": "rows"}
    y = measured[0] if measured else count
    match chart_type:
        case "bar":
            x |= {"type": _WORD if x["type"] == _WORD else "ordinal", "sort": None}
        case "histogram":
            x["bin"] = True
        case "scatter":
            x["scale"] = y["scale"] = {"zero": False}
        case _:
            pass
    return {"x": x, "y": y}


def _write_axis(name: str, kind: str) -> JsonObject:
    """Return an axis, escaping dots and brackets, which Vega-Lite would interpret as a path."""
    field = re.sub(r"([.\[\]\\])", r"\\\1", name)
    return {"field": field, "type": kind, "title": name.replace("_", " ")}
