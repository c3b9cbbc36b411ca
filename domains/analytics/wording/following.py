"""Messages that go on from the answer before: another function, other groups, one more condition, another shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from domains.analytics.wording.measuring import fitting_kind
from domains.analytics.wording.parts import Parts, read_parts
from domains.analytics.wording.phrase import NOTHING
from domains.analytics.wording.request import Request
from domains.analytics.wording.restrict import Clause
from domains.analytics.wording.shaping import function_of
from domains.analytics.wording.unknown import place_said
from orchestrator.domain.reader import Read
from orchestrator.types import Json

_GOES_ON = (
    r"(?:and|now|only|just|but|also|then|instead|or|same|what about|how about|without"
    r"|except|not|make it|make that|make this|"
    r"change it|change that|turn it|turn that|sort|order|as|plot it|plot that"
    r"|plot this|draw it|draw that|chart it|chart that|graph it|graph that|"
    r"group|split it|exclude|excluding|include|limit|top|bottom|last|first|show only|only show"
    r"|show just|show it|show that|show them|show as|show more|more|by|per|since"
    r"|after|before|in|for|from|with|keep it)\b"
)
_BACK = r"their|them|they|those|these|its|it|that|ones|of which|there"
_SPLIT = re.compile(r"(?<=\w) and (?=[a-z_]+(?: \w+)? (?:is|since|until|contains|does|starts|ends)\b)")


def follow(asked: Request) -> Read | None:
    """Read a message as going on from the last answer; None when it stands alone."""
    before = asked.before
    if not before.get("table") or (asked.named and before["table"] not in asked.named):
        return None
    if asked.named and not re.match(
        r"(?:and|but|now|only|just|also|what about|how about|same)\b", asked.line
    ):
        return None
    opens = re.match(_GOES_ON, asked.line) is not None
    alone = function_of(asked.items) is not None and all(item.meaning == NOTHING for item in asked.items)
    if not opens and not alone and not asked.has(_BACK) and not asked.has("instead"):
        return None
    if asked.table != before["table"]:
        return None
    parts = read_parts(asked)
    return next((read for rule in _RULES if (read := rule(asked, parts, before)) is not None), None)


def _as_chart(asked: Request, parts: Parts, before: Mapping[str, Json]) -> Read | None:
    if not asked.has(r"plot|draw|chart|graph|visuali[sz]e|diagram|histogram|scatter|bars?|line|plotted"):
        return None
    column = (
        parts.columns
        or [before.get("column") or (before.get("columns") or [None])[0] or _number_ordered(asked, before)]
    )[0]  # type: ignore[index]
    by = (parts.groups or [before.get("by")])[0]
    kind = parts.kind or fitting_kind(
        asked, as_text(column), as_text(by), asked.names.time_of(str(before["table"]))
    )
    return asked.read(
        "chart",
        table=before["table"],
        column=column,
        by=by,
        kind=kind,
        function=parts.function or before.get("function"),
        condition=_joined(asked, before),
    )


def as_text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _number_ordered(asked: Request, before: Mapping[str, Json]) -> Json:
    order = before.get("order")
    return order if asked.kind_of(str(order)) == "number" else None


def _counted(asked: Request, parts: Parts, before: Mapping[str, Json]) -> Read | None:
    """“how many are there”, “what is their average weight”."""
    if parts.function is None or (before.get("function") and not asked.has("their|them|those|these|they")):
        return None
    if not asked.has(_BACK) and not asked.restricted.clauses:
        return None
    if parts.superlative and not parts.columns:
        return None
    column = parts.columns[0] if parts.columns and parts.function != "count" else None
    by, also = parts.pair()
    return asked.read(
        "aggregate",
        table=before["table"],
        function=parts.function,
        column=column,
        by=by,
        also_by=also,
        condition=_joined(asked, before),
        value=before.get("value"),
    )


def _measured_anew(asked: Request, parts: Parts, before: Mapping[str, Json]) -> Read | None:
    """“make that the median”, “now by year”, “what about horsepower”, “only since 1975”."""
    if not before.get("function") and asked.dact_before not in {"aggregate", "chart"}:
        return None
    if parts.ordered and not parts.function:
        return None
    numbers = [name for name in parts.columns if asked.kind_of(name) in {"number", ""}]
    texts = [name for name in parts.columns if asked.kind_of(name) == "text"]
    groups = parts.groups or (texts if not numbers else [])
    place = place_said(asked, anywhere=True)
    changed = parts.function or numbers or groups or asked.restricted.clauses or parts.limit or place
    if not changed:
        return None
    slots = {
        name: before.get(name)
        for name in ("function", "column", "by", "also_by", "value", "kind", "limit", "direction")
    }
    function = parts.function or slots["function"]
    slots |= {"function": function, "column": numbers[0] if numbers else slots["column"]}
    if groups:
        adds = asked.has("also|too|as well|additionally")
        slots |= (
            {"by": slots["by"], "also_by": groups[0]}
            if adds and slots["by"]
            else {"by": groups[0], "also_by": (groups[1:] or [None])[0]}
        )
        slots["limit"] = None
    if parts.limit:
        slots |= {
            "limit": parts.limit,
            "direction": parts.direction if parts.direction == "ascending" else None,
        }
    flow = "chart" if asked.dact_before == "chart" else "aggregate"
    if place:
        slots["value"] = place
    if function == "count":
        slots["column"] = None
    known = {
        name: value
        for name, value in slots.items()
        if flow == "aggregate" or name not in {"also_by", "value", "limit", "direction"}
    }
    if flow == "aggregate":
        known.pop("kind")
    return asked.read(flow, table=before["table"], condition=_joined(asked, before), **known)


def _looked_at_anew(asked: Request, parts: Parts, before: Mapping[str, Json]) -> Read | None:
    """“sort it by price”, “only 2008”, “just the first 5”, “show only name and mpg”, “largest first”."""
    if before.get("function"):
        return None
    slots: dict[str, Json] = {
        name: before.get(name) for name in ("columns", "value", "order", "direction", "limit")
    }
    order = parts.order
    columns = [name for name in parts.columns if name != order]
    if (
        (parts.ordered or parts.direction or parts.superlative)
        and order is None
        and (parts.groups or columns)
    ):
        order = (parts.groups or columns)[0]
        columns = [name for name in columns if name != order]
    place = place_said(asked, anywhere=True)
    slots["value"] = place or slots["value"]
    changed = order or columns or parts.limit or asked.restricted.clauses or parts.direction or place
    if not changed or parts.function:
        return None
    if order:
        slots |= {"order": order, "direction": parts.direction}
    elif parts.direction:
        slots["direction"] = parts.direction
    if parts.limit:
        slots["limit"] = parts.limit
    if columns:
        held = before.get("columns")
        adds = asked.has("also|too|as well|add|include|plus") and isinstance(held, list)
        slots["columns"] = [*held, *columns] if adds and isinstance(held, list) else columns
    return asked.read("query", table=before["table"], condition=_joined(asked, before), **slots)


def _joined(asked: Request, before: Mapping[str, Json]) -> Json:
    """The conditions of before and the new ones; a new one takes the place of one on the same column."""
    held = before.get("condition")
    old = _SPLIT.split(held.removeprefix("where ")) if isinstance(held, str) else []
    clauses = [_with_column(clause, before) for clause in asked.restricted.clauses]
    if not clauses:
        return held
    replaced = {clause.column for clause in clauses if clause.operator in {"=", "between"}}
    kept = [part for part in old if part.split(" ")[0] not in replaced]
    new = asked.condition() if clauses == asked.restricted.clauses else None
    if new is None:
        times = asked.names.tables.get(asked.table or "", {})
        new = "where " + " and ".join(
            clause.write(is_time=times.get(clause.column) == "date") for clause in clauses
        )
    if isinstance(new, tuple):
        return tuple(
            " and ".join(
                [
                    *(f"where {part}" if not i else part for i, part in enumerate(kept)),
                    str(one).removeprefix("where ") if kept else str(one),
                ]
            )
            for one in new
        )
    text = str(new).removeprefix("where ")
    return "where " + " and ".join([*kept, text])


def _with_column(clause: Clause, before: Mapping[str, Json]) -> Clause:
    """“over 100” is about what was measured or ordered before."""
    if clause.column:
        return clause
    column = before.get("order") or before.get("column")
    return (
        Clause(column, clause.operator, clause.values, clause.either) if isinstance(column, str) else clause
    )


def is_follow_up(asked: Request) -> bool:
    """Whether nothing but the words that go on stands in a message."""
    return bool(asked.before) and all(item.meaning == NOTHING for item in asked.items)


_RULES: tuple[Callable[[Request, Parts, Mapping[str, Json]], Read | None], ...] = (
    _as_chart,
    _counted,
    _measured_anew,
    _looked_at_anew,
)
