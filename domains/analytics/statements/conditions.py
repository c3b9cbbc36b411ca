"""Read conditions (“where origin is Japan and horsepower over 150”) and write them as parts of statements.

A condition is clauses of column, operator and value, joined by “and”. Columns are looked up, operators come
from a table, values become parameters: nothing of the text is ever a part of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import FiniteFloat, TypeAdapter

from domains.analytics.statements.parts import Column, Values, invalid, quote, words
from domains.analytics.store.sheet import Sheet
from orchestrator import Json, ToolFailure

OPERATORS: Mapping[str, str] = {
    "over": ">", "above": ">", "more than": ">", "greater than": ">", "after": ">", "later than": ">", ">": ">",
    "under": "<", "below": "<", "less than": "<", "fewer than": "<", "before": "<", "earlier than": "<", "<": "<",
    "at least": ">=", "since": ">=", ">=": ">=", "at most": "<=", "until": "<=", "up to": "<=", "<=": "<=",
    "equal to": "=", "equals": "=", "=": "=", "==": "=", "!=": "!=", "<>": "!=", "between": "between",
    "contains": "contains", "contain": "contains", "containing": "contains",
    "starts with": "starts_with", "starting with": "starts_with",
    "ends with": "ends_with", "ending with": "ends_with",
}  # fmt: skip
_OPPOSITES = {
    ">": "<=", "<": ">=", ">=": "<", "<=": ">", "=": "!=", "!=": "=", "contains": "NOT contains",
}  # fmt: skip
_OF_TEXT = frozenset({"contains", "NOT contains", "starts_with", "ends_with"})
_JOINTS = {"between": "and", "=": "or", "!=": "or"}
"""What further values of an operator are joined by."""
_PERIODS = {4: "%Y", 7: "%Y-%m", 10: "%Y-%m-%d", 16: "%Y-%m-%d %H:%M"}
"""How a time is written that is compared with a year, a month, a day or a minute, by the length of that."""
MISSING = words("missing empty null")
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
LONGEST = 500
MOST_WORDS = 3
"""In a value without quotes."""
_STOPS = words(
    "but not except excluding without only than by per sorted ordered sort order grouped group with where whose "
    "top limit as in of from for to using please is are over under"
)
"""Words that may not stand in a value without quotes: they would say something else."""
_WORDS = "|".join(
    rf"\b{re.escape(word)}\b" if word[0].isalpha() else re.escape(word)
    for word in sorted(OPERATORS, key=len, reverse=True)
)
_VALUE = r"\"[^\"]*\"|'[^']*'|\S+(?:\s+(?!and\b|or\b)\S+)*"
_INTRODUCTION = re.compile(r"(?:where|whose|with|having)\s+", re.IGNORECASE)
_CLAUSE = re.compile(
    rf"(?:the\s+)?(?P<column>\w+(?: \w+){{0,4}}?)\s*(?=\b(?:is|are|was|isn't|aren't|not|does|doesn't)\b|{_WORDS})"
    rf"(?:(?P<copula>\b(?:is|are|was|isn't|aren't)\b)\s*)?(?P<denial>\b(?:not|does not|doesn't)\b\s*)?"
    rf"(?P<operator>{_WORDS})?\s*(?P<value>{_VALUE})",
    re.IGNORECASE,
)
_MORE = re.compile(rf"\s+(?P<joint>and|or)\s+(?P<value>{_VALUE})", re.IGNORECASE)
_FINITE = TypeAdapter[float](FiniteFloat)
_AND = re.compile(r",?\s+and\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """A column held to values; with an empty `values` the question is whether there is a value at all."""

    column: Column
    operator: str
    values: tuple[Json, ...] = ()

    def write(self, values: Values) -> str:
        """Write it as a part of a statement."""
        if not self.values:
            return f"{quote(self.column.name)} IS {'NOT ' * (self.operator == '!=')}NULL"
        signs = (">=", "<=") if self.operator == "between" else (self.operator,) * len(self.values)
        tests = [self._test(sign, one, values) for sign, one in zip(signs, self.values, strict=True)]
        joint = " AND " if self.operator in {"between", "!="} else " OR "
        return f"({joint.join(tests)})"

    def _test(self, sign: str, value: Json, values: Values) -> str:
        name, mark = quote(self.column.name), values.add(value)
        if self.column.is_text or sign in _OF_TEXT:
            name, mark = f"lower({name}::VARCHAR)", f"lower({mark})"
        elif self.column.is_time:
            name = f"strftime({name}, '{_PERIODS[len(str(value))]}')"
        else:
            mark = f"{mark}::DOUBLE"
        return f"{sign}({name}, {mark})" if sign in _OF_TEXT else f"{name} {sign} {mark}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Clauses that all have to hold."""

    clauses: tuple[Clause, ...]

    @property
    def equalities(self) -> dict[str, Json]:
        """The values that it names exactly, by column."""
        exact = [one for one in self.clauses if one.operator == "=" and len(one.values) == 1]
        return {one.column.name: one.values[0] for one in exact}

    def write(self, values: Values) -> str:
        """Write it as a part of a statement."""
        return " AND ".join(clause.write(values) for clause in self.clauses)


def parse_condition(text: str, sheet: Sheet) -> Condition:
    """Read a condition on a table's columns.

    Raises:
        ToolFailure: not_found for a column that is not there, validation_error for what cannot be read.
    """
    plain = text.strip().rstrip(" .?!;")
    if len(plain) > LONGEST:
        raise _unreadable(plain[:60])
    introduction = _INTRODUCTION.match(plain)
    position = introduction.end() if introduction else 0
    clauses: list[Clause] = []
    while True:
        found = _CLAUSE.match(plain, position)
        if found is None:
            raise _unreadable(plain)
        clause, position = _read_clause(found, sheet, plain)
        clauses.append(clause)
        if position == len(plain):
            return Condition(tuple(clauses))
        joint = _AND.match(plain, position)
        if joint is None:
            raise _unreadable(plain)
        position = joint.end()


def _read_clause(found: re.Match[str], sheet: Sheet, text: str) -> tuple[Clause, int]:
    """Read one clause; gives the place where it ends as well."""
    column = sheet.column(found["column"])
    operator = OPERATORS[" ".join(found["operator"].lower().split())] if found["operator"] else "="
    said, end = [found["value"]], found.end()
    while (more := _MORE.match(text, end)) and more["joint"].lower() == _JOINTS.get(operator):
        if operator == "between" and len(said) == 2:
            break
        said.append(more["value"])
        end = more.end()
    if operator == "between" and len(said) != 2:
        raise _unreadable(text)
    if found["denial"] or (found["copula"] or "").endswith("n't"):
        if operator not in _OPPOSITES:
            raise _unreadable(text)
        operator = _OPPOSITES[operator]
    if len(said) == 1 and said[0].lower() in MISSING and operator in {"=", "!="}:
        return Clause(column, operator), end
    return Clause(column, operator, tuple(_read_said(one, operator, column, text) for one in said)), end


def _read_said(said: str, operator: str, column: Column, text: str) -> Json:
    """Read a value as it was said, in quotes or of few words."""
    if len(said) > 1 and said[0] == said[-1] and said[0] in "\"'":
        said = said[1:-1]
    elif len(said.split()) > MOST_WORDS or not _STOPS.isdisjoint(said.casefold().split()):
        raise _unreadable(text, " Put a value of several words in quotes.")
    return said if operator in _OF_TEXT else read_value(said, column)


def read_value(said: str, column: Column) -> Json:
    """Give a value of the column's type from text.

    Raises:
        ToolFailure: validation_error when it is none.
    """
    try:
        if column.is_time:
            datetime.strptime(said, _PERIODS.get(len(said), "%Y"))  # noqa: DTZ007 - only its form counts
        value = _read_number(said) if column.is_number else said
    except ValueError:
        wanted = "a number" if column.is_number else "a day such as 2005-06-30"
        raise invalid(f"{column.name} needs {wanted}, and {said!r} is none.") from None
    return value


def _read_number(said: str) -> float:
    number = _FINITE.validate_python(said.replace(",", "").rstrip("%").lstrip("$€£"))
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _unreadable(text: str, hint: str = "") -> ToolFailure:
    message = f"I cannot read the condition {text!r}. Say it like “where horsepower is over 150”.{hint}"
    return invalid(message)
