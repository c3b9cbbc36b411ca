"""One condition among the items of a request: its operator, its values, and how it is written.

What is written is read by `conditions.py`; here nothing is looked up in data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from domains.analytics.wording.phrase import Item
from domains.analytics.wording.vocabulary import MONTHS, OPERATORS, words

LONGEST_OPERATOR = 3
_SAID: dict[str, str] = {
    ">": "is over",
    "<": "is under",
    ">=": "is at least",
    "<=": "is at most",
    "=": "is",
    "!=": "is not",
    "contains": "contains",
    "not contains": "does not contain",
    "starts": "starts with",
    "ends": "ends with",
    "between": "is between",
    "not between": "is not between",
}
_SAID_OF_TIME = {">": "is after", "<": "is before", ">=": "since", "<=": "until"}
OF_TIME = words("in from of during for since after before until till year only just on and or to by")
_STOPS = words(
    "and or but by per sorted ordered sort order with where whose that which in from of for as , . ; ? ! ( ) to on "
    "over under having"
)
OPEN_ENDS = {
    "more": ">=",
    "above": ">=",
    "greater": ">=",
    "higher": ">=",
    "later": ">=",
    "newer": ">=",
    "less": "<=",
    "fewer": "<=",
    "below": "<=",
    "lower": "<=",
    "earlier": "<=",
    "older": "<=",
}
GROUPING = frozenset({"by", "per", "each", "every"})


@dataclass(frozen=True, slots=True)
class Clause:
    """`column` is empty where only a number is said: “over 100”. `either`: joined to the one before by “or”."""

    column: str
    operator: str
    values: tuple[str, ...]
    either: bool = False

    def write(self, *, is_time: bool) -> str:
        said = {**_SAID, **(_SAID_OF_TIME if is_time else {})}[self.operator]
        joint = " and " if self.operator.endswith("between") else " or "
        return f"{self.column} {said} {joint.join(map(quote_value, self.values))}"


def quote_value(value: str) -> str:
    """A value of several words in quotes, where words would be read as more than the value."""
    words = value.casefold().split()
    if re.search(r"[,?;\"]|\b(?:and|or|of|in|from|to|by|is)\b", value, re.IGNORECASE) and len(words) > 1:
        return f"'{value}'" if '"' in value else f'"{value}"'
    return value


@dataclass(slots=True)
class Scan:
    items: Sequence[Item]
    columns: dict[str, str]
    table: str
    time: str | None

    def column_at(self, place: int) -> str | None:
        """The table's column that is named there."""
        if 0 <= place < len(self.items):
            return next((name for name in self.items[place].meaning.columns if name in self.columns), None)
        return None

    def value_at(self, place: int) -> tuple[str, str] | None:
        """Column and value that are named there."""
        if 0 <= place < len(self.items):
            found = self.items[place].meaning.values
            return next(
                (
                    (column, value)
                    for table, column, value in found
                    if column in self.columns
                    and (table == self.table or self.table not in {t for t, _, _ in found})
                ),
                None,
            )
        return None

    def word(self, place: int) -> str:
        return self.items[place].word if 0 <= place < len(self.items) else ""

    def operator_at(self, place: int) -> tuple[str, int] | None:
        """The operator whose words begin there, and where they end."""
        for length in range(LONGEST_OPERATOR, 0, -1):
            words = " ".join(self.word(place + step) for step in range(length))
            if words in OPERATORS and place + length <= len(self.items):
                return OPERATORS[words], place + length
        return None

    def skip(self, place: int, words: frozenset[str]) -> int:
        while place < len(self.items) and self.items[place].word in words:
            place += 1
        return place


def negated(scan: Scan, sign: str, start: int) -> tuple[str, int]:
    inner = scan.operator_at(start) if sign == "!=" else None
    opposite = {
        ">": "<=",
        "<": ">=",
        ">=": "<",
        "<=": ">",
        "between": "not between",
        "contains": "not contains",
    }
    return (opposite[inner[0]], inner[1]) if inner and inner[0] in opposite else (sign, start)


def values_at(scan: Scan, column: str, start: int, sign: str) -> tuple[tuple[str, ...], int] | None:
    """What follows an operator, as values of a column, and where it ends."""
    first = one_value(scan, column, start)
    if first is None:
        return None
    values, last = [first[0]], first[1]
    if sign.endswith("between"):
        if scan.word(last) not in {"and", "to", "-"} or (second := one_value(scan, column, last + 1)) is None:
            return None
        return (values[0], second[0]), second[1]
    while sign in {"=", "!="} and scan.word(last) in {"or", "and", ",", "nor"}:
        step = scan.skip(last, frozenset({"or", "and", ",", "nor", "not", "from", "in"}))
        more = _same_column(scan, column, step)
        if more is None:
            break
        values.append(more[0])
        last = more[1]
    return tuple(values), last


def _same_column(scan: Scan, column: str, place: int) -> tuple[str, int] | None:
    """Another value that can only belong to the column of the one before."""
    found = scan.value_at(place)
    if found is not None and found[0] == column:
        return found[1], place + 1
    item = scan.items[place] if place < len(scan.items) else None
    follows = scan.column_at(place + 1)
    if item is not None and item.number is not None and scan.columns[column] != "text" and follows is None:
        return item.number, place + 1
    return None


def one_value(scan: Scan, column: str, place: int) -> tuple[str, int] | None:
    if place >= len(scan.items):
        return None
    item, kind = scan.items[place], scan.columns[column]
    if kind == "date":
        return day_at(scan, place)
    found = scan.value_at(place)
    if found is not None and found[0] == column:
        return found[1], place + 1
    if item.is_quoted:
        return item.plain, place + 1
    if item.number is not None:
        return item.number, place + 1
    if kind == "number" or item.word in _STOPS or item.meaning.tables:
        return (
            (f"-{scan.items[place + 1].number}", place + 2)
            if (item.word == "-" and scan.word(place + 1) and scan.items[place + 1].number)
            else None
        )
    last = place
    while last < len(scan.items) and scan.items[last].word not in _STOPS and scan.column_at(last) is None:
        last += 1
    return (" ".join(one.text for one in scan.items[place:last]), last) if last > place else None


def day_at(scan: Scan, place: int) -> tuple[str, int] | None:
    """A year, a month, a month of a year, or a day; and where it ends."""
    if place >= len(scan.items):
        return None
    item = scan.items[place]
    if re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", item.word):
        return item.word, place + 1
    if item.is_year:
        return item.number or "", place + 1
    if item.word in MONTHS:
        return _month(scan, place)
    return None


def _month(scan: Scan, place: int) -> tuple[str, int] | None:
    number = MONTHS[scan.word(place)]
    following = scan.skip(place + 1, frozenset({"of", ",", "in"}))
    day = scan.items[place + 1].number if place + 1 < len(scan.items) else None
    after_day = scan.skip(place + 2, frozenset({",", "of"}))
    if following < len(scan.items) and scan.items[following].is_year:
        return f"{scan.items[following].number}-{number:02d}", following + 1
    if day and int(float(day)) <= 31 and after_day < len(scan.items) and scan.items[after_day].is_year:
        return f"{scan.items[after_day].number}-{number:02d}-{int(float(day)):02d}", after_day + 1
    if scan.word(place) == "may" and scan.word(place - 1) not in OF_TIME:
        return None
    return list(MONTHS)[[*MONTHS.values()].index(number)], place + 1
