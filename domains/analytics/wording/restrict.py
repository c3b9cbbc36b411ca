"""Conditions in a request: found among its items, and taken out of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from domains.analytics.wording.clauses import (
    GROUPING,
    OF_TIME,
    OPEN_ENDS,
    Clause,
    Scan,
    day_at,
    negated,
    one_value,
    values_at,
)
from domains.analytics.wording.names import Names
from domains.analytics.wording.phrase import Item
from domains.analytics.wording.vocabulary import COPULAS, FUNCTIONS, MISSING, NEGATIONS, words


@dataclass(slots=True)
class Restrictions:
    """`items`: what is left of the request. `clauses`: what was taken out. `place`: a name looked for anywhere."""

    items: list[Item]
    clauses: list[Clause]
    place: str | None = None


_Found = tuple[Clause, int, int]
"""A clause with the places it takes, from and up to."""


def restrict(items: Sequence[Item], table: str, names: Names) -> Restrictions:
    """Take the conditions on a table out of a request."""
    scan = Scan(items, dict(names.tables.get(table, {})), table, names.time_of(table))
    taken: set[int] = set()
    clauses: list[Clause] = []
    place = 0
    while place < len(items):
        found = next((hit for read in _READERS if (hit := read(scan, place)) is not None), None)
        if found is None or not taken.isdisjoint(range(found[1], found[2])):
            place += 1
            continue
        clause, first, last = found
        if clause.column and scan.column_at(last) == clause.column and scan.word(last - 1) not in GROUPING:
            last += 1  # a unit, such as “pounds”
        if clauses and scan.word(_before(scan, first, taken)) == "or":
            clause = Clause(clause.column, clause.operator, clause.values, either=True)
        clauses.append(clause)
        first = _lead(scan, first, taken)
        taken.update(range(first, last))
        place = last
    left = [item for index, item in enumerate(items) if index not in taken]
    return Restrictions(left, clauses)


def _before(scan: Scan, first: int, taken: set[int]) -> int:
    """The place of the word that joins a clause to the one before."""
    place = first - 1
    while place >= 0 and place not in taken and scan.word(place) in _LEADS - {"or", "and"}:
        place -= 1
    return place


def _lead(scan: Scan, first: int, taken: set[int]) -> int:
    """Where a clause begins with the words that only introduce it: “with”, “that have”."""
    while first > 0 and first - 1 not in taken and scan.word(first - 1) in _LEADS:
        if f"{scan.word(first - 2)} {scan.word(first - 1)}" in FUNCTIONS:
            break
        first -= 1
    return first


_LEADS = words(
    "with where whose that which who having have has is are was were in from of for during and or but when if only "
    "only- it made built came being ones those rows days cars- price- year- their there's"
)


def _by_column(scan: Scan, place: int) -> _Found | None:
    """“horsepower is over 100”, “origin is not Japan or Europe”, “mpg is missing”, “name contains ford”."""
    column = scan.column_at(place)
    if column is None or scan.word(place - 1) in GROUPING:
        return None
    after = scan.skip(place + 1, COPULAS)
    copula = after > place + 1
    if after < len(scan.items) and scan.word(after) in MISSING:
        return Clause(column, "=", ("missing",)), place, after + 1
    if scan.word(after) == "not" and scan.word(after + 1) in MISSING:
        return Clause(column, "!=", ("missing",)), place, after + 2
    operator = scan.operator_at(after)
    if operator is None:
        if not copula and scan.word(after) != "=":
            return None
        sign, start = "=", after
    else:
        if _is_of_time(scan, column, after, operator[1]):
            return None
        sign, start = operator
        sign, start = negated(scan, sign, start)
    values = values_at(scan, column, start, sign)
    if values is None or (operator is None and copula and not _is_assertion(scan, place, column, start)):
        return None
    said, last = values
    return Clause(column, sign, said), place, last


def _is_of_time(scan: Scan, column: str, place: int, start: int) -> bool:
    """Whether “generation since 2005” speaks of when, not of how much."""
    is_year = start < len(scan.items) and scan.items[start].is_year
    return is_year and scan.time not in {None, column} and scan.word(place) in OF_TIME


def _is_assertion(scan: Scan, place: int, column: str, start: int) -> bool:
    """Whether “column is …” states a condition rather than asks: its value is one of the column's kind."""
    if scan.columns[column] == "number":
        return scan.items[start].number is not None
    if scan.columns[column] == "date":
        return scan.items[start].number is not None or day_at(scan, start) is not None
    return (
        scan.value_at(start) is not None
        or scan.items[start].is_quoted
        or scan.word(place - 1) in {"where", "with", "whose", "and", "or", "when"}
    )


def _by_number(scan: Scan, place: int) -> _Found | None:
    """“more than 200 horsepower”, “between 100 and 120 hp”, “8 cylinders”, “over 100”, “30 mpg or more”."""
    operator = scan.operator_at(place)
    sign, start = negated(scan, *(operator or ("=", place)))
    found = _numbers_at(scan, start, sign)
    if found is None:
        return None
    sign, values, last = found
    last = scan.skip(last, _UNITS)
    column = scan.column_at(last)
    if column is not None and scan.columns[column] == "number" and not _is_limit(scan, place, operator):
        if scan.word(last + 1) == "or" and scan.word(last + 2) in OPEN_ENDS:
            return Clause(column, OPEN_ENDS[scan.word(last + 2)], values), place, last + 3
        return Clause(column, sign, values), place, last + 1
    is_time = (scan.items[start].is_year and scan.time is not None) or scan.word(place) in OF_TIME
    if operator is None or is_time or sign == "!=":
        return None
    return Clause("", sign, values), place, last


_UNITS = words("mm cm mph kmh degrees celsius fahrenheit dollars usd inches points percent kg of")


def _numbers_at(scan: Scan, start: int, sign: str) -> tuple[str, tuple[str, ...], int] | None:
    """A number or two after a sign, with the sign as its end says it (“100 or more”), and where they end."""
    if start >= len(scan.items) or (number := scan.items[start].number) is None:
        return None
    last = start + 1
    if sign.endswith("between"):
        upper = scan.items[last + 1].number if last + 1 < len(scan.items) else None
        joined = scan.word(last) in {"and", "to", "-"}
        return (sign, (number, upper), last + 2) if joined and upper is not None else None
    if scan.word(last) == "or" and scan.word(last + 1) in OPEN_ENDS:
        return OPEN_ENDS[scan.word(last + 1)], (number,), last + 2
    other = scan.items[last + 1].number if scan.word(last) == "or" and last + 1 < len(scan.items) else None
    if other is not None and scan.column_at(last + 2) is not None:
        return sign, (number, other), last + 2
    return (">=", (number,), last + 1) if scan.word(last) == "+" else (sign, (number,), last)


def _is_limit(scan: Scan, place: int, operator: tuple[str, int] | None) -> bool:
    """Whether a number says how many rows: “top 5 …”, and at the beginning “5 names”."""
    before = scan.word(place - 1)
    return (
        operator is None
        and before not in {"with", "have", "has", "having", "of", "and", "or", "where", "that", "for"}
        and scan.column_at(place + 1) != "cylinders"
    )


def _by_time(scan: Scan, place: int) -> _Found | None:
    """“in 1975”, “since March 2005”, “between 2003 and 2005”, “from 1970 to 1975”, “1970s”."""
    if scan.time is None:
        return None
    word = scan.word(place)
    if (span := _round_years(word)) is not None:
        return Clause(scan.time, "between", span), place, place + 1
    operator = scan.operator_at(place)
    start = operator[1] if operator and scan.word(place) != "from" else place + 1 if word == "from" else place
    found = day_at(scan, start)
    if found is None:
        return None
    value, last = found
    if scan.word(last) in {"to", "and", "-", "until", "till", "through"} and (
        word in {"from", "between"} or scan.word(last) == "-"
    ):
        upper = day_at(scan, last + 1)
        if upper is not None:
            return Clause(scan.time, "between", (value, upper[0])), place, upper[1]
    if operator is None or word == "from":
        rest = scan.word(last)
        if word == "from" and rest in {"on", "onwards", "onward"}:
            return Clause(scan.time, ">=", (value,)), place, last + 1
        if rest == "or" and scan.word(last + 1) in OPEN_ENDS:
            return Clause(scan.time, OPEN_ENDS[scan.word(last + 1)], (value,)), place, last + 2
        return _plain_time(scan, place, start, value, last)
    sign = "between" if operator[0] == "between" else operator[0]
    if sign not in {">", "<", ">=", "<=", "=", "!="}:
        return None
    return Clause(scan.time, sign, (value,)), place, last


def _round_years(word: str) -> tuple[str, str] | None:
    """The first and the last year of “1970s”, or of the century in “1700s”."""
    found = re.fullmatch(r"(\d\d)(\d)0s", word)
    if found is None:
        return None
    first, last = ("0", "9") if found[2] == "0" else (found[2], found[2])
    return f"{found[1]}{first}0", f"{found[1]}{last}9"


def _plain_time(scan: Scan, place: int, start: int, value: str, last: int) -> _Found | None:
    """A year or month without an operator: a restriction unless it counts something."""
    before, after = scan.word(start - 1), scan.items[last] if last < len(scan.items) else None
    if scan.items[start].is_year and before in {
        "first",
        "top",
        "last",
        "limit",
        "bottom",
        "schedule",
        "=",
        "sample",
    }:
        return None
    if (
        after is not None
        and (
            after.word in {"rows", "row", "random", "records", "lines"}
            or (after.kind == "COLUMN" and before not in OF_TIME)
        )
        and after.meaning.columns[:1] != (scan.time,)
        and after.word
        in {
            "rows",
            "row",
            "random",
            "records",
            "lines",
        }
    ):
        return None
    values, place_after = [value], last
    while (
        scan.word(place_after) in {"or", "and", ","} and (more := day_at(scan, place_after + 1)) is not None
    ):
        values.append(more[0])
        place_after = more[1]
    sign = "!=" if before in NEGATIONS else "="
    return Clause(scan.time or "", sign, tuple(values)), place - 1 if sign == "!=" else place, place_after


def _by_extreme(scan: Scan, place: int) -> _Found | None:
    """“heavier than 4000”, “newer than 1980”."""
    if place + 1 >= len(scan.items) or scan.word(place + 1) != "than":
        return None
    found = next(((c, d) for c, d in scan.items[place].meaning.extremes if c in scan.columns), None)
    if found is None:
        return None
    value = one_value(scan, found[0], place + 2)
    if value is None:
        return None
    return Clause(found[0], ">" if found[1] == "descending" else "<", (value[0],)), place, value[1]


def _by_value(scan: Scan, place: int) -> _Found | None:
    """“Japanese”, “from Japan or Europe”, “not American”, “except the ones from the US”."""
    found = scan.value_at(place)
    if found is None:
        return None
    column, value = found
    values, last = [value], place + 1
    while scan.word(last) in {"or", "and", ",", "&", "nor"}:
        step = scan.skip(last, words("or and , from in nor not"))
        more = scan.value_at(step)
        if more is None or more[0] != column:
            break
        values.append(more[1])
        last = step + 1
    first, sign = _negation_before(scan, place)
    if first == place and scan.column_at(place - 1) == column:
        first = place - 1
    if scan.column_at(last) == column:
        last += 1
    return Clause(column, sign, tuple(values)), first, last


def _negation_before(scan: Scan, place: int) -> tuple[int, str]:
    """Where a value begins with what denies it, and the sign that this gives."""
    back = place - 1
    while back >= 0 and (scan.word(back) in _BETWEEN or scan.items[back].meaning.tables):
        back -= 1
    if f"{scan.word(back - 1)} {scan.word(back)}" in NEGATIONS:
        return back - 1, "!="
    if scan.word(back) in NEGATIONS:
        return (back - 1 if scan.word(back - 1) == "but" else back), "!="
    return place, "="


_BETWEEN = words("- from in ones those of by for one made is are was were")
"""What may stand between a denial and the value."""


def _by_absence(scan: Scan, place: int) -> _Found | None:
    """“without horsepower”, “with missing mpg”, “missing horsepower”, “no mpg”."""
    word = scan.word(place)
    if word in {"without", "lacking"}:
        column = scan.column_at(place + 1)
        return None if column is None else (Clause(column, "=", ("missing",)), place, place + 2)
    if word in {"with", "where", "have", "has", "having"} and scan.word(place + 1) in {*MISSING, "no"}:
        column = scan.column_at(place + 2)
        return None if column is None else (Clause(column, "=", ("missing",)), place, place + 3)
    return None


def _by_part(scan: Scan, place: int) -> _Found | None:
    """“with toyota in the name”, “called ford pinto”, “containing ford”."""
    if "name" not in scan.columns:
        return None
    word = scan.word(place)
    if word in {"with", "having"} and scan.word(place + 2) == "in" and scan.column_at(place + 3):
        column = scan.column_at(place + 3) or ""
        if scan.columns[column] == "text":
            return Clause(column, "contains", (scan.items[place + 1].plain,)), place, place + 4
    operator = scan.operator_at(place)
    if (
        operator
        and operator[0] in {"contains", "not contains", "starts", "ends"}
        and scan.column_at(place - 1) is None
    ):
        value = one_value(scan, "name", operator[1])
        return None if value is None else (Clause("name", operator[0], (value[0],)), place, value[1])
    if word in {"called", "named"} and place + 1 < len(scan.items):
        value = one_value(scan, "name", place + 1)
        return None if value is None else (Clause("name", "contains", (value[0],)), place, value[1])
    return None


_READERS: tuple[Callable[[Scan, int], _Found | None], ...] = (
    _by_absence,
    _by_part,
    _by_column,
    _by_extreme,
    _by_time,
    _by_number,
    _by_value,
)
"""Ways to say a condition, in the order in which they are tried."""
