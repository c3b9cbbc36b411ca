"""Draw charts as Vega-Lite specifications, with their data: bar, line, scatter, histogram (RS-5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from domains.analytics.catalogue import PERIODS
from domains.analytics.statements.conditions import parse_condition
from domains.analytics.statements.measures import group_of, measure_of, number_of, time_of
from domains.analytics.statements.parts import Column, Values, invalid, quote, to_objects
from domains.analytics.store.sheet import Sheet, fold
from domains.analytics.store.workspace import TableService
from domains.analytics.tools.display import about
from orchestrator import Json, JsonObject, ToolCall

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MOST_POINTS = 2000
MOST_BARS = 50
BINS = 20


class Charts(TableService):
    """Draws tables."""

    async def draw(
        self,
        *,
        table: str,
        call: ToolCall,
        kind: str = "bar",
        column: str | None = None,
        by: str | None = None,
        function: str = "average",
        condition: str | None = None,
    ) -> JsonObject:
        """Give a specification: `column` is what is measured, `by` what it is shown against."""
        (workspace, sheet), values = await self.open(call, table), Values()
        where = f" WHERE {parse_condition(condition, sheet).write(values)}" if condition else ""
        plan = _PLANS[kind](sheet, column, by, function if column else "count")
        found = await workspace.read(plan.sql.replace("{where}", where), values.named, sheet)
        rows = to_objects(found.columns, found.rows)
        if not rows:
            raise invalid("There are no rows to draw.")
        return {
            **about(workspace, sheet),
            "chart": specify(plan, rows),
            "chart_kind": kind,
            "title": plan.title,
            "among": condition or "",
            "points": len(rows),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """A chart to be: the question whose rows it shows (``{where}`` is open), its mark and axes."""

    sql: str
    mark: str
    x: JsonObject
    y: JsonObject
    title: str


def specify(plan: Plan, rows: list[JsonObject]) -> JsonObject:
    """Write a Vega-Lite specification that needs nothing from elsewhere."""
    tooltip: Json = [{"field": axis["field"], "type": axis["type"]} for axis in (plan.x, plan.y)]
    return {
        "$schema": SCHEMA,
        "title": plan.title,
        "width": "container",
        "data": {"values": rows},
        "mark": {"type": plan.mark, "tooltip": True},
        "encoding": {"x": plan.x, "y": plan.y, "tooltip": tooltip},
    }


def _axis(name: str, kind: str, **more: Json) -> JsonObject:
    """Write an axis; dots and brackets would be read as paths, so they are escaped."""
    escaped = "".join(f"\\{char}" if char in ".[]\\" else char for char in name)
    return {"field": escaped, "type": kind, "title": name.replace("_", " "), **more}


def _bar(sheet: Sheet, column: str | None, by: str | None, function: str) -> Plan:
    group, name, is_period = group_of(sheet, _first_text(sheet) if by is None else by)
    order = "1" if is_period else "2 DESC NULLS LAST, 1"
    x = _axis(name, "ordinal" if is_period else "nominal", sort=None)
    return _grouped(sheet, "bar", (group, name), x, (function, column), f"{order} LIMIT {MOST_BARS}")


def _line(sheet: Sheet, column: str | None, by: str | None, function: str) -> Plan:
    against = time_of(sheet) if by is None else sheet.find(by)
    if against is None or (against.is_time and by is not None):
        group, name, _ = group_of(sheet, by or "")
    else:
        group, name = quote(against.name), against.name
    kind = "ordinal"
    if against is not None and (by is None or fold(by) not in PERIODS or not against.is_time):
        kind = "temporal" if against.is_time else "quantitative" if against.is_number else "ordinal"
    return _grouped(
        sheet, "line", (group, name), _axis(name, kind), (function, column), f"1 LIMIT {MOST_POINTS}"
    )


def _grouped(
    sheet: Sheet,
    mark: str,
    group: tuple[str, str],
    x: JsonObject,
    measured: tuple[str, str | None],
    order: str,
) -> Plan:
    """Plan a chart of a measure by groups."""
    function, column = measured
    label = fold(f"{function} {column}") if column else "rows"
    picked = f"{group[0]} AS {quote(group[1])}, {measure_of(sheet, function, column)} AS {quote(label)}"
    title = f"{label.replace('_', ' ').capitalize()} of {sheet.name} by {group[1]}"
    sql = f"SELECT {picked} FROM in0{{where}} GROUP BY 1 ORDER BY {order}"  # noqa: S608
    return Plan(sql, mark, x, _axis(label, "quantitative"), title)


def _scatter(sheet: Sheet, column: str | None, by: str | None, function: str) -> Plan:
    del function
    others = [one.name for one in sheet.numbers if one.name != column]
    first = (others[0] if others else "") if column is None else column
    second = by if by is not None else next((name for name in others if name != first), "")
    if not first or not second:
        raise invalid("A scatter plot needs two columns of numbers.")
    x, y = number_of(sheet, second), number_of(sheet, first)
    sql = f"SELECT {quote(x.name)}, {quote(y.name)} FROM in0{{where}} LIMIT {MOST_POINTS}"  # noqa: S608
    return Plan(sql, "point", _number(x), _number(y), f"{y.name} against {x.name} of {sheet.name}")


def _histogram(sheet: Sheet, column: str | None, by: str | None, function: str) -> Plan:
    del function
    said = column or by
    if said is None:
        raise invalid("Of which column of numbers should I draw a histogram?")
    found = number_of(sheet, said)
    name = quote(found.name)
    width = f"greatest(max({name}) - min({name}), 1e-9) / {BINS}"
    edges = f"(SELECT min({name}) AS low, {width} AS width FROM in0{{where}})"  # noqa: S608
    sql = (
        f"SELECT low + least(floor(({name} - low) / width), {BINS - 1}) * width AS {name}, count(*) AS rows "  # noqa: S608
        f"FROM (SELECT * FROM in0{{where}}), {edges} WHERE {name} IS NOT NULL GROUP BY 1 ORDER BY 1"
    )
    return Plan(sql, "bar", _number(found), _axis("rows", "quantitative"), f"{found.name} of {sheet.name}")


def _number(column: Column) -> JsonObject:
    return _axis(column.name, "quantitative", scale={"zero": False})


def _first_text(sheet: Sheet) -> str:
    """Choose what to draw against when nobody says it: the last column of text, which names groups most often.

    Raises:
        ToolFailure: validation_error when there is none.
    """
    texts = [column.name for column in sheet.columns if column.is_text]
    if not texts:
        raise invalid("Against which column should I draw it?")
    return texts[-1]


_PLANS: Mapping[str, Callable[[Sheet, str | None, str | None, str], Plan]] = {
    "bar": _bar,
    "line": _line,
    "scatter": _scatter,
    "histogram": _histogram,
}
