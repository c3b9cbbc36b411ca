"""Requests for rows: chosen columns, conditions, orders, superlatives, or just a table."""

from __future__ import annotations

import re

from domains.analytics.wording.parts import Parts, read_parts
from domains.analytics.wording.phrase import NOTHING, Item
from domains.analytics.wording.request import Request, is_unknown
from domains.analytics.wording.unknown import UNKNOWN_TABLES, place_said, unknown_noun
from domains.analytics.wording.vocabulary import words
from orchestrator.domain.reader import Read
from orchestrator.types import Json

SHOW = (
    r"show|list|display|see|find|get|fetch|print|view|open|look at|look|search|select"
    r"|query|bring up|pull up|preview|peek|head|what|which|who|only|just"
)


def sort(asked: Request) -> Read | None:
    if not re.match(r"(?:now |then )?(?:sort|order|arrange|rank|put)\b", asked.line):
        return None
    parts = read_parts(asked)
    order = parts.order or (parts.groups or parts.columns or [None])[0]
    return asked.read("sort", order=order, direction=parts.direction)


def query(asked: Request) -> Read | None:
    parts = read_parts(asked)
    limits = asked.restricted.clauses
    condition = asked.condition()
    order = parts.order
    columns = [name for name in parts.columns if name != order or parts.ordered]
    if (parts.superlative or parts.ordered) and order is None:
        number = [name for name in [*parts.groups, *columns] if asked.kind_of(name) in {"number", "date", ""}]
        number.sort(key=lambda name: asked.kind_of(name) == "date")
        order = number[0] if number else None
        columns = [name for name in columns if name != order]
    if parts.groups and not order and not parts.ordered:
        if not asked.has(SHOW) and not asked.named:
            return None
        order = parts.groups[0]
    if parts.superlative and order is None and not columns:
        return _ask_for_order(asked, parts) if asked.named else None
    limit = parts.limit or (1 if parts.superlative and not parts.ordered and _is_single(asked) else None)
    time = asked.names.time_of(asked.table or "")
    if parts.superlative or parts.function:
        columns = [name for name in columns if name != time and asked.kind_of(name) != "date"]
    if order in columns and not parts.ordered:
        columns.remove(order)
    columns = [name for name in columns if not _is_subject(asked, name, parts, order)]
    columns = _columns_said(asked) or columns
    columns += [item.plain for item in asked.left if item.is_quoted and asked.tables]
    value = place_said(asked)
    direction = parts.direction or ("descending" if parts.superlative else None)
    if not (limits or order or columns or value):
        return _preview(asked, parts)
    if not asked.tables and not value:
        return None
    if not _is_request(asked):
        return None
    return asked.read(
        "query",
        columns=columns or None,
        condition=condition,
        value=value,
        order=order,
        direction=direction if order else None,
        limit=limit,
        **_other_table(asked),
    )


def _ask_for_order(asked: Request, parts: Parts) -> Read | None:
    """“the 5 best cars”: by which column is a choice."""
    known = asked.names.tables.get(asked.table or "", {})
    numbers = tuple(name for name, kind in known.items() if kind == "number")
    return asked.read(
        "query",
        condition=asked.condition(),
        order=numbers if len(numbers) > 1 else (numbers or (None,))[0],
        direction=parts.direction,
        limit=parts.limit or 1,
    )


def _columns_said(asked: Request) -> list[str]:
    """The columns of “show make and series of cars”, where one of them is none: it is asked for all the same."""
    left = list(asked.left)
    places = [
        i for i, item in enumerate(left[:-1]) if item.word in {"of", "from"} and left[i + 1].meaning.tables
    ]
    said = [item for item in left[: places[0]] if item.word not in _NO_COLUMNS] if places else []
    names = [asked.column(item) or item.plain for item in said]
    strange = [
        item for item in said if item.meaning == NOTHING and item.number is None and not item.is_quoted
    ]
    plain = all(item.word.isidentifier() or asked.column(item) for item in said)
    return names if strange and plain and asked.has(SHOW) else []


_NO_COLUMNS = words(
    "show list display see find get fetch print view open look at search select query and , only just rows row first "
    "few data table details info top lines head contents content entries records sample everything more examples "
    "what which is are columns column values part rest some one what's whats who bring pull up preview peek"
)


def _other_table(asked: Request) -> dict[str, Json]:
    return {"other_table": asked.named[1]} if len(asked.named) > 1 else {}


def _is_subject(asked: Request, name: str, parts: Parts, order: str | None) -> bool:
    """Whether a column only says what a row is: “which days were …”, “Apple prices in 2008”."""
    if asked.has("show only|only show|show just|just show|columns?") or len(parts.columns) > 1:
        return False
    if asked.kind_of(name) == "date" or (order is not None and name == order):
        return True
    numbers = [one for one, kind in asked.names.tables.get(asked.table or "", {}).items() if kind == "number"]
    return numbers == [name] and bool(asked.restricted.clauses)


def _is_single(asked: Request) -> bool:
    """Whether a superlative asks for one row: “the heaviest car”, not “the heaviest cars”."""
    plural = any(
        item.meaning.tables and item.word.endswith("s") and item.word not in {"iris", "stocks"}
        for item in asked.left
    )
    return not plural or (asked.has("which TABLE has|is|was|has|when") and not asked.has("are|were|have"))


def _is_request(asked: Request) -> bool:
    """Whether the words ask for rows: they say so, or are hardly more than names."""
    strange = [item for item in asked.left if is_unknown(item)]
    return asked.has(SHOW) or bool(asked.named) or len(strange) <= 1


def _preview(asked: Request, parts: Parts) -> Read | None:
    """Just a table, known or not."""
    limit = parts.limit
    if asked.named:
        alone = len([item for item in asked.left if item.meaning == NOTHING and item.number is None]) == 0
        if alone or asked.has(rf"{SHOW}|rows|like|first|give|preview"):
            return asked.read("preview", limit=limit)
        return None
    unknown = unknown_noun(asked)
    verb = re.match(
        r"(?:show|open|display|preview|see|list|find|get|view|look at|fetch|select)\b", asked.line
    )
    bare = re.match(r"(\w+s)(?: (?:from|in|with|where|of|over|by|sorted|since)\b|$)", asked.line)
    if verb and unknown:
        return asked.read("preview", table=unknown, limit=limit)
    if (
        bare
        and not verb
        and not asked.before
        and asked.items[0].meaning == NOTHING
        and bare[1] in UNKNOWN_TABLES
    ):
        return asked.read("preview", table=bare[1])
    if (limit or asked.has("rows|first|preview")) and asked.last_table and not asked.before:
        return asked.read("preview", table=asked.last_table, limit=limit)
    if (
        asked.has("it|that|this")
        and asked.last_table
        and re.match(r"(?:show|preview|open|display|see)\b", asked.line)
        and len(asked.items) < 4
    ):
        return asked.read("preview", table=asked.last_table, limit=limit)
    return None


def preview_unknown(asked: Request) -> Read | None:
    """“orders from Norway in 2023”: a table that is not there, with conditions."""
    first: Item | None = asked.items[0] if asked.items else None
    verb = first is not None and re.fullmatch(r"show|list|find|get|display|see", first.word)
    noun = asked.items[1] if verb and len(asked.items) > 1 else first
    if noun is not None and noun.word in UNKNOWN_TABLES and not asked.named and not asked.has("by|per"):
        return asked.read("preview", table=noun.plain)
    return None
