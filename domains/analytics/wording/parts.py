"""What a question asks for beside its conditions: measure, groups, order, number of rows, kind of chart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from domains.analytics.wording.phrase import Item
from domains.analytics.wording.request import Request
from domains.analytics.wording.vocabulary import CHARTS, EXTREME_WORDS, FUNCTIONS, PERIODS

_BY = frozenset({"by", "per", "each", "every", "across", "within"})
_ORDERING = re.compile(r"\b(?:sort|sorted|order|ordered|rank|ranked|arrange|arranged|sorting|ordering)\b")
_DESCENDING = re.compile(
    r"\b(?:descending|desc|downwards|decreasing|reverse|(?:highest|largest|biggest"
    r"|greatest|most|newest|latest|high|heaviest|longest|"
    r"EXTREME_DOWN) (?:\w+ )?(?:first|to low)|from high to low|high to low)\b"
)
_ASCENDING = re.compile(
    r"\b(?:ascending|asc|upwards|increasing|(?:lowest|smallest|least|oldest|earliest"
    r"|low|lightest|shortest|EXTREME_UP) (?:\w+ )?(?:first|to high)|low to high)\b"
)


@dataclass(slots=True)
class Parts:
    """`rest`: the items that are none of these. `ordered`: an order is asked for, not only a superlative."""

    function: str | None = None
    groups: list[str] = field(default_factory=list[str])
    order: str | None = None
    direction: str | None = None
    limit: int | None = None
    kind: str | None = None
    ordered: bool = False
    superlative: bool = False
    columns: list[str] = field(default_factory=list[str])
    rest: list[Item] = field(default_factory=list[Item])

    def pair(self) -> tuple[str | None, str | None]:
        """The first two groups."""
        first, second = (*self.groups, None, None)[:2]
        return first, second


def read_parts(asked: Request) -> Parts:
    """Take the parts out of what the conditions left."""
    parts = Parts()
    items = list(asked.left)
    parts.ordered = bool(_ORDERING.search(" ".join(item.word for item in items)))
    parts.kind = _kind(items)
    items = _take_direction(asked, items, parts)
    items = _take_limit(asked, items, parts)
    items = _take_groups(asked, items, parts)
    items = _take_function(items, parts)
    items = _take_extremes(asked, items, parts)
    parts.columns = asked.columns(items)
    parts.rest = items
    return parts


def _kind(items: Sequence[Item]) -> str | None:
    said = f" {' '.join(item.word for item in items)} "
    found = [phrase for phrase in CHARTS if f" {phrase} " in said]
    return CHARTS[max(found, key=len)] if found else None


def _take_direction(asked: Request, items: list[Item], parts: Parts) -> list[Item]:
    """“descending”, “highest first”, “heaviest first”."""
    for place, item in enumerate(items):
        following = items[place + 1].word if place + 1 < len(items) else ""
        extreme = asked.extreme(item)
        if following == "first" and (extreme or item.word in EXTREME_WORDS):
            parts.direction = extreme[1] if extreme else EXTREME_WORDS[item.word]
            parts.order = extreme[0] if extreme else None
            parts.ordered = True
            return items[:place] + items[place + 2 :]
    line = " ".join(item.word for item in items)
    if _DESCENDING.search(line):
        parts.direction = "descending"
    elif _ASCENDING.search(line):
        parts.direction = "ascending"
    return [
        item
        for item in items
        if item.word not in {"descending", "desc", "ascending", "asc", "downwards", "upwards"}
    ]


def _take_limit(asked: Request, items: list[Item], parts: Parts) -> list[Item]:
    """“top 5”, “first 20 rows”, “bottom 3”, “10 rows”, “the ten heaviest”, “5 cars with the most …”."""
    for place, item in enumerate(items):
        if item.number is None or "." in item.number:
            continue
        before = items[place - 1].word if place else ""
        after = items[place + 1] if place + 1 < len(items) else None
        counts = before in {
            "top",
            "first",
            "bottom",
            "limit",
            "only",
            "show",
            "just",
            "best",
            "worst",
            "last",
            "which",
            "lowest",
            "highest",
            "cheapest",
        }
        counted = after is not None and (
            after.word in {"rows", "row", "records", "results", "best", "worst", *EXTREME_WORDS}
            or after.kind in {"TABLE", "EXTREME"}
            or (place == 0 and after.kind == "COLUMN")
        )
        if not counts and not counted:
            continue
        parts.limit = max(1, int(item.number))
        first, last = place, place + 1
        if before in {"top", "best"}:
            parts.direction, parts.superlative, first = parts.direction or "descending", True, place - 1
        elif before in {"bottom", "worst"}:
            parts.direction, parts.superlative, first = parts.direction or "ascending", True, place - 1
        elif before in {"first", "limit"}:
            first = place - 1
        return items[:first] + items[last:]
    del asked
    return items


def _take_groups(asked: Request, items: list[Item], parts: Parts) -> list[Item]:
    """“by origin”, “per company by year”, “for each site”, “sorted by weight”, “monthly”."""
    left: list[Item] = []
    place = 0
    while place < len(items):
        item = items[place]
        step = place + 1
        if item.word in _BY and step < len(items) and items[step].word in {"each", "every"}:
            step += 1
        name = _group_at(asked, items, step) if item.word in _BY else None
        if item.word in {"over", "across"} and step < len(items) and items[step].word in PERIODS:
            name = PERIODS[items[step].word]
        if name is None:
            if item.word in {"monthly", "yearly", "quarterly", "annual", "annually"}:
                parts.groups.append(PERIODS[item.word])
            else:
                left.append(item)
            place += 1
            continue
        if name == parts.order:
            place = step + 1
            continue
        ordering = left and (
            _ORDERING.search(left[-1].word)
            or (parts.superlative and not parts.function and not _is_group(asked, name))
        )
        if ordering or (parts.ordered and not parts.order and not _names_function(items)):
            parts.order = name
            parts.ordered = True
        else:
            parts.groups.append(name)
        place = step + 1
        while (
            place + 1 < len(items)
            and items[place].word in {"and", ","}
            and _group_at(asked, items, place + 1)
        ):
            (parts.groups if not parts.order else parts.columns).append(
                str(_group_at(asked, items, place + 1))
            )
            place += 2
    joins = {"for", "of", "in", "group", "grouped", "broken", "down"}
    while left and parts.groups and left[-1].word in joins:
        left.pop()
    return left


def _names_function(items: Sequence[Item]) -> bool:
    return any(item.word in FUNCTIONS for item in items)


def _is_group(asked: Request, name: str) -> bool:
    return asked.kind_of(name) in {"text", "date"} or name in PERIODS.values()


def _group_at(asked: Request, items: Sequence[Item], place: int) -> str | None:
    if place >= len(items):
        return None
    item = items[place]
    return asked.column(item) or PERIODS.get(item.word)


def _take_function(items: list[Item], parts: Parts) -> list[Item]:
    """The longest phrase for a function."""
    for length in (3, 2, 1):
        for place in range(len(items) - length + 1):
            phrase = " ".join(item.word for item in items[place : place + length])
            if phrase in FUNCTIONS:
                parts.function = FUNCTIONS[phrase]
                rest = items[:place] + items[place + length :]
                if phrase in EXTREME_WORDS:
                    parts.superlative, parts.direction = True, parts.direction or EXTREME_WORDS[phrase]
                    rest = _take_second(rest, parts)
                return rest
    return items


def _take_second(items: list[Item], parts: Parts) -> list[Item]:
    """“the highest average price”: the order is one, the measure the other."""
    for place, item in enumerate(items):
        if item.word in FUNCTIONS and item.word not in EXTREME_WORDS:
            parts.function = FUNCTIONS[item.word]
            return items[:place] + items[place + 1 :]
    parts.function = parts.function
    return items


def _take_extremes(asked: Request, items: list[Item], parts: Parts) -> list[Item]:
    """“heaviest”, “most powerful”, “least expensive”, “most horsepower”, “best yield”."""
    for place, item in enumerate(items):
        found = asked.extreme(item)
        before = items[place - 1].word if place else ""
        if found is not None:
            turned = before in {"least", "lowest"}
            parts.order = found[0]
            parts.direction = (
                found[1] if not turned else "ascending" if found[1] == "descending" else "descending"
            )
            parts.superlative = True
            return items[: place - 1 if before in {"most", "least"} else place] + items[place + 1 :]
    for place, item in enumerate(items):
        if item.word in EXTREME_WORDS:
            parts.superlative, parts.direction = True, parts.direction or EXTREME_WORDS[item.word]
            return items[:place] + items[place + 1 :]
    return items
