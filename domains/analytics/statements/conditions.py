"""Conditions as people say them ("where origin is Japan and horsepower over 150") as parts of a statement.

Columns are looked up, operators come from a table, values become parameters: nothing of the text is
ever a part of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from domains.analytics.statements.parts import Column, Values, quote
from domains.analytics.store.workspace import Sheet
from orchestrator.domain.services import FailureCategory, ToolFailure
from orchestrator.types import Json

OPERATORS: Mapping[str, str] = {
    "is not between": "not between", "is between": "between", "between": "between",
    "is not": "!=", "isn't": "!=", "are not": "!=", "not equal to": "!=", "!=": "!=", "<>": "!=",
    "is at least": ">=", "at least": ">=", ">=": ">=", "since": ">=", "from": ">=",
    "is at most": "<=", "at most": "<=", "<=": "<=", "until": "<=", "up to": "<=",
    "is more than": ">", "is greater than": ">", "is over": ">", "is above": ">", "is after": ">",
    "more than": ">", "greater than": ">", "over": ">", "above": ">", "after": ">", "later than": ">", ">": ">",
    "is less than": "<", "is under": "<", "is below": "<", "is before": "<", "less than": "<", "under": "<",
    "below": "<", "before": "<", "earlier than": "<", "<": "<",
    "does not contain": "not contains", "contains": "contains", "containing": "contains",
    "starts with": "starts", "starting with": "starts", "ends with": "ends", "ending with": "ends",
    "equal to": "=", "equals": "=", "is": "=", "are": "=", "was": "=", "==": "=", "=": "=", "of": "=",
}  # fmt: skip
"""What is said → what is meant."""

MISSING = frozenset({"missing", "empty", "null", "unknown"})
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_BARE = {"in period": "=", "not in period": "!=", "in month": "=", "not in month": "!="}
"""As what the operator of a clause is read again for another value."""
_NEGATED = frozenset({"!=", "not between", "not in period", "not in month", "not contains"})
_SIGNS = {"=", "!=", ">", ">=", "<", "<="}
_OPERATOR = "|".join(
    rf"\b{re.escape(word)}\b" if word[0].isalpha() else re.escape(word)
    for word in sorted(OPERATORS, key=len, reverse=True)
)
_VALUE = r"\"[^\"]*\"|'[^']*'|\S+(?:\s+(?!and\b|or\b)\S+)*"
_INTRO = re.compile(r"(?:where|with|whose|having|when|if|in which|for which|only)\s+", re.IGNORECASE)
_CLAUSE = re.compile(
    rf"\s*(?:the\s+)?(?P<column>\w+(?: \w+){{0,4}}?)\s*(?P<operator>{_OPERATOR})\s*(?P<value>{_VALUE})",
    re.IGNORECASE,
)
_MORE = re.compile(rf"\s*(?P<value>{_VALUE})", re.IGNORECASE)
_JOINT = re.compile(r"\s*,?\s+(and|or)\b", re.IGNORECASE)
LONGEST = 500


@dataclass(frozen=True, slots=True)
class Clause:
    """`value` is None where the question is whether there is one."""

    column: Column
    operator: str
    value: Json
    upper: Json = None


@dataclass(frozen=True, slots=True)
class Condition:
    """Alternatives of groups that hold together; of the clauses of a group, any may hold, or all if negated.

    “a is x or y and b is z” has one alternative of two groups, (a is x, a is y) and (b is z).
    """

    alternatives: tuple[tuple[tuple[Clause, ...], ...], ...]

    @property
    def clauses(self) -> list[Clause]:
        return [clause for groups in self.alternatives for group in groups for clause in group]

    @property
    def equalities(self) -> dict[str, Json]:
        """The values that it names exactly, by column."""
        return {
            one.column.name: one.value
            for one in self.clauses
            if one.operator == "=" and one.value is not None
        }

    def write(self, values: Values) -> str:
        """As a part of a statement."""
        return " OR ".join(
            "(" + " AND ".join(_write_group(group, values) for group in groups) + ")"
            for groups in self.alternatives
        )


def _write_group(group: tuple[Clause, ...], values: Values) -> str:
    """Values of one column: any of them, or none."""
    joint = " AND " if group[0].operator in _NEGATED else " OR "
    return "(" + joint.join(_write(clause, values) for clause in group) + ")"


def parse_condition(text: str, sheet: Sheet) -> Condition:
    """Read a condition on a table's columns.

    Raises:
        ToolFailure: not_found for a column that is not there, validation_error for what cannot be read.
    """
    if len(text) > LONGEST:
        raise _unreadable(text[:60])
    position = found.end() if (found := _INTRO.match(text.lstrip())) else 0
    text = text.lstrip().rstrip(" .?!;")
    alternatives: list[list[list[Clause]]] = [[]]
    last, joint = None, "and"
    while position < len(text):
        clause, position, is_value = _next_clause(text, position, sheet, last)
        if is_value:
            alternatives[-1][-1].append(clause)
        elif joint == "or":
            alternatives.append([[clause]])
        else:
            alternatives[-1].append([clause])
        last = clause
        found = _JOINT.match(text, position)
        if found is None:
            break
        joint, position = found[1].lower(), found.end()
    if position < len(text) or last is None:
        raise _unreadable(text)
    return Condition(tuple(tuple(tuple(group) for group in groups) for groups in alternatives))


def _next_clause(text: str, position: int, sheet: Sheet, last: Clause | None) -> tuple[Clause, int, bool]:
    """A whole clause, or another value for the column of the one before; which of them, and where it ends."""
    found = _CLAUSE.match(text, position)
    if found is not None and (last is None or sheet.find(found["column"]) is not None):
        operator = OPERATORS[" ".join(found["operator"].lower().split())]
        column = sheet.column(found["column"])
        if operator.endswith("between"):
            return (*_between(text, found, column, operator), False)
        return _clause(column, operator, _unquote(found["value"])), found.end(), False
    more = _MORE.match(text, position)
    if last is None or more is None:
        raise _unreadable(text)
    return (
        _clause(last.column, _BARE.get(last.operator, last.operator), _unquote(more["value"])),
        more.end(),
        True,
    )


def _between(text: str, found: re.Match[str], column: Column, operator: str) -> tuple[Clause, int]:
    joint = _JOINT.match(text, found.end())
    upper = _MORE.match(text, joint.end()) if joint else None
    if upper is None:
        raise _unreadable(text)
    low, high = _unquote(found["value"]), _unquote(upper["value"])
    first, last = (read_period(one) if column.is_time else None for one in (low, high))
    if first or last:
        start = first[0] if first else read_value(low, column)
        end = last[1] if last else read_value(high, column)
        kind = "in period" if operator == "between" else "not in period"
        return Clause(column, kind, start, end), upper.end()
    return Clause(column, operator, read_value(low, column), read_value(high, column)), upper.end()


def _clause(column: Column, operator: str, said: str) -> Clause:
    words = said.lower().removeprefix("not ")
    if operator in {"=", "!="} and words in MISSING:
        negated = (operator == "!=") != said.lower().startswith("not ")
        return Clause(column, "!=" if negated else "=", None)
    period = read_period(said) if column.is_time else None
    if period is not None:
        return _in_period(column, operator, *period)
    if column.is_time and said.lower() in MONTHS and operator in {"=", "!="}:
        number = MONTHS.index(said.lower()) + 1
        return Clause(column, "in month" if operator == "=" else "not in month", number)
    if operator in {"contains", "not contains", "starts", "ends"}:
        return Clause(column, operator, said)
    return Clause(column, operator, read_value(said, column))


def read_period(said: str) -> tuple[str, str] | None:
    """The first day of a year or of a month (2005-03), and of the one that follows; None for anything else."""
    found = re.fullmatch(r"(\d{4})(?:-(\d{2}))?", said)
    if found is None or not 1 <= int(found[2] or 1) <= 12:
        return None
    year, month = int(found[1]), int(found[2] or 1)
    following = (year + 1, 1) if found[2] is None or month == 12 else (year, month + 1)
    return f"{year:04d}-{month:02d}-01", f"{following[0]:04d}-{following[1]:02d}-01"


def _in_period(column: Column, operator: str, first: str, following: str) -> Clause:
    """Times compared with a whole year or month."""
    match operator:
        case "=" | "!=":
            return Clause(column, "in period" if operator == "=" else "not in period", first, following)
        case ">" | "<=":
            return Clause(column, ">=" if operator == ">" else "<", following)
        case _:
            return Clause(column, operator, first)


def read_value(said: str, column: Column) -> Json:
    """A value of the column's type from text.

    Raises:
        ToolFailure: validation_error when it is none.
    """
    if column.is_number:
        try:
            number = float(said.replace(",", "").rstrip("%").lstrip("$€£"))
        except ValueError:
            raise _wrong(said, column) from None
        if number != number or abs(number) == float("inf"):  # noqa: PLR0124 - the one test for NaN
            raise _wrong(said, column)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if column.is_time:
        try:
            return date.fromisoformat(said[:10]).isoformat() + said[10:]
        except ValueError:
            raise _wrong(said, column) from None
    return said


def _write(clause: Clause, values: Values) -> str:
    name, operator = quote(clause.column.name), clause.operator
    if clause.value is None:
        return f"{name} IS {'NOT ' if operator == '!=' else ''}NULL"
    kind = f"::{'TIMESTAMP' if clause.column.is_time else 'DOUBLE'}"
    if operator in {"between", "not between"}:
        kind = "" if clause.column.is_text else kind
        low, high = values.add(clause.value), values.add(clause.upper)
        return f"{name} {operator.upper()} {low}{kind} AND {high}{kind}"
    value = values.add(clause.value)
    if operator.endswith("in period"):
        test = f"({name} >= {value}::TIMESTAMP AND {name} < {values.add(clause.upper)}::TIMESTAMP)"
        return f"NOT {test}" if operator.startswith("not") else test
    if operator.endswith("in month"):
        return f"month({name}) {'<>' if operator.startswith('not') else '='} {value}"
    if operator in _SIGNS:
        if clause.column.is_text:
            return f"lower({name}::VARCHAR) {operator} lower({value})"
        return f"{name} {operator} {value}{kind}"
    part = {
        "contains": "contains",
        "not contains": "NOT contains",
        "starts": "starts_with",
        "ends": "ends_with",
    }
    return f"{part[operator]}(lower({name}::VARCHAR), lower({value}))"


def _unquote(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _unreadable(text: str) -> ToolFailure:
    message = f"I cannot read the condition {text!r}. Say it like “where horsepower is over 150”."
    return ToolFailure(FailureCategory.VALIDATION_ERROR, message)


def _wrong(said: str, column: Column) -> ToolFailure:
    wanted = "a number" if column.is_number else "a day such as 2005-06-30"
    return ToolFailure(
        FailureCategory.VALIDATION_ERROR, f"{column.name} needs {wanted}, and {said!r} is none."
    )
