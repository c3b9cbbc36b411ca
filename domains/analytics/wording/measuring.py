"""Requests for numbers: aggregates, the groups that stand out, and charts of them."""

from __future__ import annotations

import re

from domains.analytics.wording.parts import Parts, read_parts
from domains.analytics.wording.phrase import form_of
from domains.analytics.wording.request import Request
from domains.analytics.wording.unknown import counted_noun, place_said, table_or_unknown, unknown_measure
from domains.analytics.wording.vocabulary import EXTREME_WORDS, PERIODS
from orchestrator.domain.reader import Read

DRAW = r"plot|draw|chart|graph|visuali[sz]e|diagram"


def chart(asked: Request) -> Read | None:
    kinds = asked.has(
        "bar chart|line chart|histogram|scatter ?plot|distribution|time series|bar graph|line graph|scatter|pie chart"
    )
    if not asked.has(f"{DRAW}|charts?|graphs?|plots?") and not kinds:
        return None
    parts = read_parts(asked)
    columns = [name for name in parts.columns if name not in parts.groups]
    by, _ = parts.pair()
    column = columns[0] if columns else None
    versus = asked.has(r"against|vs|versus|over|as function of|with")
    if by is None and len(columns) > 1 and (versus or parts.kind == "scatter"):
        by = columns[1]
    time = asked.names.time_of(asked.table or "")
    kind = parts.kind or fitting_kind(asked, column, by, time)
    if column == time and len(columns) == 1 and kind == "line" and asked.has("over"):
        column = None
    by = (
        None
        if by == time
        and kind == "line"
        and by not in {"year", "month"}
        and not asked.has(f"by {by}|per {by}|against")
        else by
    )
    if column is None and not by:
        before = asked.before
        if before.get("table") and not asked.named:
            return None
    unknown = unknown_measure(asked) if column is None else None
    return asked.read(
        "chart",
        column=column or unknown,
        by=by,
        kind=kind,
        function=parts.function,
        condition=asked.condition(),
    )


def fitting_kind(asked: Request, column: str | None, by: str | None, time: str | None) -> str | None:
    if by in PERIODS.values() or (by and by == time) or asked.has("over time|by date|over years"):
        return "line"
    if by and asked.kind_of(by) == "number" and asked.kind_of(column) == "number":
        return "scatter"
    return "bar" if by else None


def aggregate(asked: Request) -> Read | None:
    """A number, or one per group: by a function that is said, or by groups alone (“mpg by origin”)."""
    parts = read_parts(asked)
    found = _which_group(asked, parts) or _listing(asked, parts)
    if found is not None:
        return found
    function = parts.function or _function_of_groups(asked, parts)
    superlative = function in {"maximum", "minimum"} and parts.superlative
    if function is None or (superlative and _asks_for_rows(asked, parts)):
        return None
    column, first, second = _measured(asked, parts, function)
    strange = counted_noun(asked) if function == "count" else None
    if strange or not asked.tables:
        table = strange or table_or_unknown(asked)
        return (
            asked.read("aggregate", table=table, function=function, column=column, by=first)
            if table or column
            else None
        )
    ranked = parts.limit is not None or (parts.superlative and first and not superlative)
    return asked.read(
        "aggregate",
        function=function,
        column=column,
        by=first,
        also_by=second,
        condition=asked.condition(),
        value=place_said(asked),
        limit=parts.limit if first else None,
        direction="ascending" if ranked and parts.direction == "ascending" else None,
    )


def _function_of_groups(asked: Request, parts: Parts) -> str | None:
    """What groups alone ask for: the average of a column of numbers, else how many there are."""
    columns = [name for name in parts.columns if name not in parts.groups]
    if not parts.groups:
        return None
    if columns and asked.kind_of(columns[0]) == "number" and not parts.limit:
        return "average"
    if not columns or asked.has("group|grouped|break down|broken down|breakdown"):
        return "average" if columns else "count"
    return None


def _measured(asked: Request, parts: Parts, function: str) -> tuple[str | None, str | None, str | None]:
    """The column that is measured, and what it is grouped by."""
    columns = [name for name in parts.columns if name not in parts.groups]
    first, second = parts.pair()
    if function == "count":
        return None, first, second
    if function == "distinct" and not columns and first:
        return first, None, None
    return columns[0] if columns else parts.order or unknown_measure(asked), first, second


def _asks_for_rows(asked: Request, parts: Parts) -> bool:
    """Whether a superlative asks for rows (“the car with the highest mpg”) rather than for a number."""
    if parts.ordered or parts.limit or asked.has("when|who"):
        return True
    places = [place for place, item in enumerate(asked.left) if item.meaning.tables]
    words = [item.word for item in asked.left]
    extreme = next((place for place, word in enumerate(words) if word in EXTREME_WORDS), len(words))
    with_extreme = any(word in {"with", "has", "have", "had", "of"} for word in words[:extreme])
    return (
        bool(places)
        and places[0] < extreme
        and with_extreme
        and not re.match(r"(?:what is|what's|what was) (?:highest|lowest|maximum|minimum)", asked.line)
    )


def _which_group(asked: Request, parts: Parts) -> Read | None:
    """“which site has the best yield”: one group of several, by a measure."""
    found = re.match(r"(?:and |so )?(?:which|what|in which|for which|who|on which|top|bottom)\b", asked.line)
    if found is None or not (parts.superlative or asked.has("best|worst")):
        return None
    head = next(
        (
            item
            for item in asked.left[:4]
            if item.kind not in {item.word, "N", "YEAR", "EXTREME"} or item.word in PERIODS
        ),
        None,
    )
    if head is None or head.meaning.tables:
        return None
    group = PERIODS.get(head.word) or asked.column(head)
    if (
        group is None
        or (asked.kind_of(group) == "date" and group not in {"year", "month"})
        or (asked.kind_of(group) == "number" and group not in PERIODS.values())
    ):
        return None
    if asked.kind_of(group) == "date" and head.word not in PERIODS:
        return None
    columns = [name for name in parts.columns if name != group]
    column = columns[0] if columns else parts.order
    explicit = (
        parts.function
        if parts.function not in {"maximum", "minimum"}
        or asked.has(
            "highest|lowest|maximum|minimum|max|min|peak|longest|shortest|largest|smallest|biggest|greatest"
        )
        else None
    )
    if column is None:
        function = "count"
    elif asked.has("most|least|fewest") and not parts.order and explicit in {None, "minimum"}:
        function = "sum"
    else:
        function = explicit or "average"
    second = next((name for name in parts.groups if name not in (group, column)), None)
    by_measure = next((name for name in parts.groups if name != group), None)
    if column is None and by_measure:
        column, function, second = by_measure, explicit or "average", None
    return asked.read(
        "aggregate",
        function=function,
        column=column if function != "count" else None,
        by=group,
        also_by=second,
        condition=asked.condition(),
        limit=parts.limit or 1,
        direction="ascending" if parts.direction == "ascending" else None,
    )


def _listing(asked: Request, parts: Parts) -> Read | None:
    """“what species are there”, “list the distinct sources”: the values of a column."""
    text = [name for name in parts.columns if asked.kind_of(name) in {"text", ""}]
    if (
        len(text) != 1
        or parts.groups
        or parts.order
        or parts.limit
        or parts.function not in {None, "distinct"}
    ):
        return None
    asks = re.search(
        (
            r"(?:what|which) (?:\w+ )?COLUMN (?:are|is|exist|do|does|occur|have|can|in|of)\b"
            r"|(?:distinct|unique|different|possible|kinds of|all) (?:values of "
            r"|values in )?COLUMN|values? (?:of|in|for) COLUMN"
            r"|what are (?:\w+ )?COLUMN(?: of TABLE| in TABLE)?$"
        ),
        form_of(asked.left),
    )
    if not asks or asked.has("how many|number of|count"):
        return None
    return asked.read("aggregate", function="count", by=text[0], condition=asked.condition())
