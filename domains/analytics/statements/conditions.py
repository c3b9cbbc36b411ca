"""Read conditions (“where origin is Japan and horsepower over 150”) and write them as parts of statements.

A condition is clauses of column, operator and value, joined by “and”. Columns are looked up, operators come
from a table, values become parameters: nothing of the text is ever a part of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from domains.analytics.statements.parts import Column, Values, invalid, quote, words
from domains.analytics.store.sheet import Sheet
from orchestrator import Json, ToolFailure

OPERATORS: Mapping[str, str] = {
    "over": ">", "above": ">", "more than": ">", "greater than": ">", "after": ">", "later than": ">", ">": ">",
    "under": "<", "below": "<", "less than": "<", "fewer than": "<", "before": "<", "earlier than": "<", "<": "<",
    "at least": ">=", "since": ">=", ">=": ">=", "at most": "<=", "until": "<=", "up to": "<=", "<=": "<=",
    "equal to": "=", "equals": "=", "=": "=", "==": "=", "!=": "!=", "<>": "!=", "between": "between",
    "contains": "contains", "contain": "contains", "containing": "contains",
    "starts with": "starts", "starting with": "starts", "ends with": "ends", "ending with": "ends",
}  # fmt: skip
_OPPOSITES = {">": "<=", "<": ">=", ">=": "<", "<=": ">", "=": "!=", "!=": "="}
MISSING = frozenset({"missing", "empty", "null"})
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
_OPERATOR = (
    rf"(?:(?P<copula>\b(?:is|are|was|isn't|aren't)\b)\s*)?(?P<denial>\b(?:not|does not|doesn't)\b\s*)?"
    rf"(?P<operator>{_WORDS})?"
)
_VALUE = r"\"[^\"]*\"|'[^']*'|\S+(?:\s+(?!and\b|or\b)\S+)*"
_INTRODUCTION = re.compile(r"(?:where|whose|with|having)\s+", re.IGNORECASE)
_CLAUSE = re.compile(
    rf"(?:the\s+)?(?P<column>\w+(?: \w+){{0,4}}?)\s*(?=\b(?:is|are|was|isn't|aren't|not|does|doesn't)\b|{_WORDS})"
    rf"{_OPERATOR}\s*(?P<value>{_VALUE})",
    re.IGNORECASE,
)
_MORE = re.compile(rf"\s+(?P<joint>and|or)\s+(?P<value>{_VALUE})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """A column held to values; with an empty `values` the question is whether there is a value at all."""

    column: Column
    operator: str
    values: tuple[Json, ...] = ()

    def write(self, values: Values) -> str:
        """Write it as a part of a statement."""
        name, denied = quote(self.column.name), self.operator == "!="
        if not self.values:
            return f"{name} IS {'NOT ' * denied}NULL"
        if self.operator == "between":
            low, high = (
                self._compare(sign, one, values) for sign, one in zip((">=", "<="), self.values, strict=True)
            )
            return f"({low} AND {high})"
        if self.operator in _TEXT_TESTS:
            test, mark = _TEXT_TESTS[self.operator], values.add(self.values[0])
            return f"{test}(lower({name}::VARCHAR), lower({mark}))"
        joint = " AND " if denied else " OR "
        return "(" + joint.join(self._compare(self.operator, one, values) for one in self.values) + ")"

    def _compare(self, sign: str, value: Json, values: Values) -> str:
        name = quote(self.column.name)
        period = read_period(str(value)) if self.column.is_time else None
        if period is not None:
            return _compare_period(name, sign, period, values)
        mark = values.add(value)
        if self.column.is_text:
            return f"lower({name}::VARCHAR) {sign} lower({mark})"
        return f"{name} {sign} {mark}::{'TIMESTAMP' if self.column.is_time else 'DOUBLE'}"


_TEXT_TESTS = {
    "contains": "contains",
    "not contains": "NOT contains",
    "starts": "starts_with",
    "ends": "ends_with",
}


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
        joint = re.compile(r",?\s+and\s+", re.IGNORECASE).match(plain, position)
        if joint is None:
            raise _unreadable(plain)
        position = joint.end()


def _read_clause(found: re.Match[str], sheet: Sheet, text: str) -> tuple[Clause, int]:
    """Read one clause; gives the place where it ends as well."""
    column = sheet.column(found["column"])
    operator = OPERATORS[" ".join(found["operator"].lower().split())] if found["operator"] else "="
    said, end = [found["value"]], found.end()
    joints = {"between": "and", "=": "or", "!=": "or"}
    while (more := _MORE.match(text, end)) and more["joint"].lower() == joints.get(operator):
        said.append(more["value"])
        end = more.end()
        if operator == "between":
            break
    denied = bool(found["denial"]) or (found["copula"] or "").endswith("n't")
    if denied:
        operator = _deny(operator, text)
    if operator == "between" and len(said) != 2:
        raise _unreadable(text)
    if len(said) == 1 and said[0].lower() in MISSING and operator in {"=", "!="}:
        return Clause(column, operator), end
    return Clause(column, operator, tuple(_read_value(one, operator, column, text) for one in said)), end


def _deny(operator: str, text: str) -> str:
    if operator == "contains":
        return "not contains"
    if operator not in _OPPOSITES:
        raise _unreadable(text)
    return _OPPOSITES[operator]


def _read_value(said: str, operator: str, column: Column, text: str) -> Json:
    if len(said) > 1 and said[0] == said[-1] and said[0] in "\"'":
        return read_value(said[1:-1], column) if operator not in _TEXT_TESTS else said[1:-1]
    parts = said.casefold().split()
    if len(parts) > MOST_WORDS or not _STOPS.isdisjoint(parts):
        raise _unreadable(text, " Put a value of several words in quotes.")
    return said if operator in _TEXT_TESTS else read_value(said, column)


def read_period(said: str) -> tuple[str, str] | None:
    """Give the first day of a year or month (2005-03), and of the one that follows; None for anything else."""
    found = re.fullmatch(r"(\d{4})(?:-(\d{2}))?", said)
    if found is None or not 1 <= int(found[2] or 1) <= 12:
        return None
    year, month = int(found[1]), int(found[2] or 1)
    following = (year + 1, 1) if found[2] is None or month == 12 else (year, month + 1)
    return f"{year:04d}-{month:02d}-01", f"{following[0]:04d}-{following[1]:02d}-01"


def _compare_period(name: str, sign: str, period: tuple[str, str], values: Values) -> str:
    """Compare times with a whole year or month."""
    if sign in {"=", "!="}:
        first, following = (values.add(day) for day in period)
        inside = f"({name} >= {first}::TIMESTAMP AND {name} < {following}::TIMESTAMP)"
        return inside if sign == "=" else f"NOT {inside}"
    day = values.add(period[1] if sign in {">", "<="} else period[0])
    return f"{name} {'>=' if sign in {'>', '>='} else '<'} {day}::TIMESTAMP"


def read_value(said: str, column: Column) -> Json:
    """Give a value of the column's type from text.

    Raises:
        ToolFailure: validation_error when it is none.
    """
    if column.is_number:
        return _read_number(said, column)
    if column.is_time and read_period(said) is None:
        try:
            return date.fromisoformat(said[:10]).isoformat() + said[10:]
        except ValueError:
            raise _unfit(said, column) from None
    return said


def _read_number(said: str, column: Column) -> Json:
    try:
        number = float(said.replace(",", "").rstrip("%").lstrip("$€£"))
    except ValueError:
        raise _unfit(said, column) from None
    if number != number or abs(number) == float("inf"):  # noqa: PLR0124 - the one test for NaN
        raise _unfit(said, column)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _unreadable(text: str, hint: str = "") -> ToolFailure:
    message = f"I cannot read the condition {text!r}. Say it like “where horsepower is over 150”.{hint}"
    return invalid(message)


def _unfit(said: str, column: Column) -> ToolFailure:
    wanted = "a number" if column.is_number else "a day such as 2005-06-30"
    return invalid(f"{column.name} needs {wanted}, and {said!r} is none.")
