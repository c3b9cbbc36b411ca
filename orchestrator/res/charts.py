"""Charts as Vega-Lite specifications: validation, and generation from rows (RS-5, RS-7).

A specification comes from a tool or a model, so it may only contain drawing instructions: no URLs, links,
expressions or page settings. The domain provides the rows.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.saying import Told, say
from orchestrator.types import Json, JsonObject, is_list, is_object

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MOST_POINTS = 5_000
LOOKED_AT = 50
"""Number of rows from which column types are inferred."""

_TOP = frozenset({"$schema", "title", "description", "width", "height", "data", "mark", "encoding", "layer"})
_LAYER = frozenset({"title", "description", "mark", "encoding"})
_MARKS = frozenset(
    ["arc", "area", "bar", "boxplot", "circle", "line", "point", "rect", "rule", "square", "tick", "trail"]
)
_MARK = frozenset(
    {"type", "tooltip", "point", "filled", "opacity", "color", "interpolate", "size", "innerRadius"}
)
_CHANNELS = frozenset(
    ["x", "y", "x2", "y2", "color", "size", "shape", "opacity", "theta", "order", "detail", "tooltip"]
)
_CHANNEL = frozenset(
    {
        "field",
        "type",
        "title",
        "aggregate",
        "bin",
        "timeUnit",
        "sort",
        "stack",
        "scale",
        "value",
        "axis",
        "legend",
    }
)
_SCALE = frozenset({"zero", "type", "nice", "reverse", "scheme"})
_GUIDE = frozenset({"title", "grid", "labelAngle", "orient", "tickCount", "format"})
_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}.*)?)?")


def find_chart_fault(spec: Json) -> str | None:
    """Return why a specification must not be drawn, or None."""
    if not is_object(spec):
        return "it isn't a specification"
    strange = spec.keys() - _TOP
    if strange:
        return f"it contains {_name(strange)}"
    fault = _find_data_fault(spec.get("data"))
    if fault is not None:
        return fault
    layers = spec.get("layer")
    if layers is None:
        return _find_view_fault(spec)
    if not is_list(layers) or not layers:
        return "its layers aren't a list"
    return next((fault for layer in layers if (fault := _find_layer_fault(layer)) is not None), None)


def _find_data_fault(data: Json) -> str | None:
    if not is_object(data) or data.keys() != {"values"} or not is_list(data["values"]):
        return "its data must be its own rows"
    if not data["values"]:
        return "there are no rows to draw"
    if len(data["values"]) > MOST_POINTS:
        return f"{len(data['values']):,} points are too many"
    if not all(is_object(row) and _is_flat(row) for row in data["values"]):
        return "its rows are not flat"
    return None


def _is_flat(row: JsonObject) -> bool:
    return not any(isinstance(value, dict | list) for value in row.values())


def _find_layer_fault(layer: Json) -> str | None:
    if not is_object(layer) or layer.keys() - _LAYER:
        return "a layer has more than a mark and its encoding"
    return _find_view_fault(layer)


def _find_view_fault(view: JsonObject) -> str | None:
    mark = view.get("mark")
    kind = mark.get("type") if is_object(mark) else mark
    if not isinstance(kind, str) or kind not in _MARKS:
        return "it has no mark that can be drawn"
    if is_object(mark) and (strange := mark.keys() - _MARK):
        return f"its mark contains {_name(strange)}"
    if is_object(mark) and any(is_object(value) or is_list(value) for value in mark.values()):
        return "its mark has more than plain values"
    encoding = view.get("encoding")
    if not is_object(encoding) or not encoding:
        return "it has no axes"
    if strange := encoding.keys() - _CHANNELS:
        return f"it encodes {_name(strange)}"
    channels = [one for value in encoding.values() for one in (value if is_list(value) else [value])]
    return next((fault for channel in channels if (fault := _find_channel_fault(channel)) is not None), None)


def _find_channel_fault(channel: Json) -> str | None:
    if not is_object(channel):
        return "an axis isn't an object"
    if strange := channel.keys() - _CHANNEL:
        return f"an axis contains {_name(strange)}"
    for name, known in (("scale", _SCALE), ("axis", _GUIDE), ("legend", _GUIDE)):
        part = channel.get(name)
        if is_object(part) and (part.keys() - known or any(is_object(value) for value in part.values())):
            return f"the {name} of an axis has too many values"
        if is_list(part):
            return f"the {name} of an axis is a list"
    plain = (value for name, value in channel.items() if name not in {"scale", "axis", "legend", "sort"})
    if any(is_object(value) or is_list(value) for value in plain):
        return "an axis has more than plain values"
    sort = channel.get("sort")
    return "the order of an axis isn't a name" if is_object(sort) else None


def _name(strange: set[str]) -> str:
    return ", ".join(sorted(str(key)[:30] for key in strange)[:3])


@dataclass(frozen=True, slots=True)
class Drawn:
    spec: JsonObject
    chart_type: str


@dataclass(frozen=True, slots=True)
class NotDrawn:
    """A refusal to draw a chart. `why` completes "because …"."""

    why: Told


def draw(rows: Json, title: str = "", chart_type: str | None = None) -> Drawn | NotDrawn:
    """Draw a chart of rows. If `chart_type` does not suit the columns, choose the most informative type that does."""
    if not is_list(rows) or not rows or not all(is_object(row) for row in rows):
        return NotDrawn(say("no_rows"))
    if len(rows) > MOST_POINTS:
        return NotDrawn(say("too_many_points", count=len(rows)))
    columns = _read_columns(rows)
    fitting = [kind for kind, plan in _PLANS.items() if plan(columns) is not None]
    if not fitting:
        return NotDrawn(say("nothing_to_measure"))
    kind = chart_type if chart_type in fitting else fitting[0]
    plan = _PLANS[kind](columns)
    assert plan is not None
    mark, encoding = plan
    used = [channel["field"] for channel in encoding.values() if "field" in channel]
    spec: JsonObject = {
        "$schema": SCHEMA,
        "width": "container",
        "data": {"values": [{name: row.get(name) for name in used} for row in rows]},
        "mark": {"type": mark, "tooltip": True},
        "encoding": {name: _write_channel(channel) for name, channel in encoding.items()},
    }
    if title:
        spec["title"] = title
    return Drawn(spec, kind)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Column names by type, in row order."""

    numbers: list[str]
    times: list[str]
    words: list[str]


def _read_columns(rows: list[JsonObject]) -> _Columns:
    columns = _Columns([], [], [])
    for name in rows[0]:
        values = [value for row in rows[:LOOKED_AT] if (value := row.get(name)) is not None]
        if values and all(
            isinstance(value, (int, float)) and not isinstance(value, bool) for value in values
        ):
            columns.numbers.append(name)
        elif values and all(isinstance(value, str) for value in values):
            is_time = all(_DATE.fullmatch(value) for value in values)
            (columns.times if is_time else columns.words).append(name)
    return columns


_Channels: TypeAlias = dict[str, JsonObject]
_Plan: TypeAlias = tuple[str, _Channels]


def _line(columns: _Columns) -> _Plan | None:
    if not columns.times or not columns.numbers:
        return None
    return "line", {"x": _axis(columns.times[0], "temporal"), "y": _axis(columns.numbers[0], "quantitative")}


def _bar(columns: _Columns) -> _Plan | None:
    if not columns.words or not columns.numbers:
        return None
    x = {**_axis(columns.words[0], "nominal"), "sort": None}
    return "bar", {"x": x, "y": _axis(columns.numbers[0], "quantitative")}


def _scatter(columns: _Columns) -> _Plan | None:
    if len(columns.numbers) < 2:
        return None
    x, y = columns.numbers[:2]
    return "point", {"x": _axis(x, "quantitative"), "y": _axis(y, "quantitative")}


def _histogram(columns: _Columns) -> _Plan | None:
    if not columns.numbers:
        return None
    x = {**_axis(columns.numbers[0], "quantitative"), "bin": True}
    return "bar", {"x": x, "y": {"aggregate": "count", "type": "quantitative", "title": "rows"}}


_PLANS: Mapping[str, Callable[[_Columns], _Plan | None]] = {
    "line": _line,
    "bar": _bar,
    "scatter": _scatter,
    "histogram": _histogram,
}
"""Plans by chart type, the most informative first."""


def _axis(name: str, kind: str) -> JsonObject:
    return {"field": name, "type": kind, "title": name.replace("_", " ")}


def _write_channel(channel: JsonObject) -> JsonObject:
    """Escape dots and brackets in a field's name, which Vega-Lite would parse as a path."""
    if "field" not in channel:
        return channel
    escaped = re.sub(r"([.\[\]\\])", r"\\\1", channel["field"])
    return {**channel, "field": escaped}
