"""Requests to look at tables as a whole: which there are, their columns, statistics, faults, comparisons."""

from __future__ import annotations

import re

from domains.analytics.wording.parts import read_parts
from domains.analytics.wording.request import Request
from domains.analytics.wording.unknown import table_or_unknown
from orchestrator.domain.reader import Read


def list_tables(asked: Request) -> Read | None:
    if asked.named:
        return None
    if re.fullmatch(
        r"(?:what|which|list|show|see|tables|available|are|there|have|got|do|does|data"
        r"|datasets?|exist|is|in|here|overview|of|to|work|with|tell|about|at|look"
        r"|analy[sz]e|ask|explore|kind|sets?|database|loaded|know|"
        r"names?|on|it|\?|\.| )+",
        asked.line,
    ) and asked.has(
        "tables|data|datasets?|what (?:is )?(?:to )?(?:look|analy[sz]e|ask|explore|know"
        "|have|do have|there)|database"
    ):
        return asked.read("list_tables", table=None)
    return None


def describe(asked: Request) -> Read | None:
    if re.search(r"\b(?:what|whats|what's)(?: is)? (?:in|inside) TABLE ?[?.]?$", asked.form):
        return asked.read("describe_table")
    schema = asked.has(
        r"describe|schema|structure|columns?|fields?|explain|what is in|what's in|whats in|about|headers|variables"
    )
    if not schema or asked.restricted.clauses or asked.has("average|report|rename|drop|pivot|chart"):
        return None
    asks = asked.has(
        r"describe|schema|structure|headers|(?:what|which|list|show|how many"
        r"|see) (?:are )?(?:columns?|fields?|variables)|columns? (?:of|in|are|does|do)"
        r"|fields? (?:of|in|are)|"
        r"what is in|what's in|whats in|what is TABLE about|tell about|explain|columns?$"
    ) or re.search(
        r"(?:what|tell|which).* (?:columns|fields|about)\b|(?:what is|what's|whats) TABLE\b",
        f"{asked.line} {asked.form}",
    )
    if not asks or asked.columns(asked.items):
        return None
    return asked.read("describe_table", table=table_or_unknown(asked))


def profile(asked: Request) -> Read | None:
    if not asked.has(
        r"profile|stats|statistics|summary of columns|summari[sz]e|summary|ranges?"
        r"|data quality|quality|overview of TABLE"
    ) or asked.has("report"):
        return None
    if asked.has("data quality|quality|summary|summari[sz]e") and not (
        asked.named or asked.has("it|this|that|columns?") or asked.columns(asked.items)
    ):
        return None
    columns = asked.columns(asked.items)
    return asked.read(
        "profile",
        column=columns[0] if columns else None,
        table=table_or_unknown(asked) if not columns else "",
    )


def find_faults(asked: Request) -> Read | None:
    columns = asked.columns(asked.items)
    one = columns[0] if columns else None
    if asked.has(r"outliers?|unusual|extreme values?|anomal(?:y|ies)|weird|strange|stand out"):
        return asked.read("find_outliers", column=one)
    counts = asked.has("how many TABLE|show TABLE|rows") or asked.restricted.clauses
    if asked.has(r"missing|nulls?|gaps?|empty cells?|incomplete|blanks?|holes|nans?") and not (
        counts and not asked.has("values?|anything|any|gaps|nulls?")
    ):
        return asked.read("find_missing", column=one)
    return None


def correlate(asked: Request) -> Read | None:
    if not asked.has(
        r"correlat\w*|related|relation|relationship|depends? on|go together|connected|connection|influences?|affects?"
    ):
        return None
    columns = asked.columns(asked.left)
    first, second = (*columns, None, None)[:2]
    if second and asked.kind_of(second) == "text":
        return asked.read("aggregate", function="average", column=first, by=second)
    return asked.read("correlate", column=first, other_column=second)


def compare(asked: Request) -> Read | None:
    """Two values of one column, or two years."""
    explicit = asked.has(r"compare|compared|comparison|versus|vs|difference|differ")
    than = asked.has("than")
    if not (explicit or than):
        return None
    values = [
        (column, value)
        for item in asked.items
        for table, column, value in item.meaning.values
        if asked.table in {None, table}
    ]
    values = [pair for index, pair in enumerate(values) if pair not in values[:index]]
    years = [item.number for item in asked.items if item.is_year]
    pair = next(
        ((a, b) for a in values for b in values if a[0] == b[0] and values.index(a) < values.index(b)), None
    )
    if pair is None and (len(years) != 2 or than):
        return None
    extremes = [found[0] for item in asked.items if (found := asked.extreme(item))]
    group = pair[0][0] if pair else None
    columns = [
        name
        for name in asked.columns(asked.items)
        if name != group and asked.kind_of(name) not in {"text", "date"}
    ] or extremes
    numbers = [
        name for name, kind in asked.names.tables.get(asked.table or "", {}).items() if kind == "number"
    ]
    column = (
        columns[0]
        if columns
        else str(asked.before.get("column") or "") or (numbers[0] if len(numbers) == 1 else None)
    )
    column = (
        column if column in numbers else columns[0] if columns else numbers[0] if len(numbers) == 1 else None
    )
    function = read_parts(asked).function if asked.has("average|median|total|maximum|minimum|mean") else None
    if pair:
        return asked.read("compare", column=column, function=function, first=pair[0][1], second=pair[1][1])
    return asked.read(
        "compare",
        column=column,
        function=function,
        first_year=int(years[0] or 0),
        second_year=int(years[1] or 0),
    )
