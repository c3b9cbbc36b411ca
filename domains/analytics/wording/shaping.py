"""Requests that make columns, rows and tables: merge, split, pivot, derive, insert."""

from __future__ import annotations

import re
from collections.abc import Sequence

from domains.analytics.wording.common import REMOVE, column_after, new_name, read_number
from domains.analytics.wording.names import key_of
from domains.analytics.wording.phrase import Item, form_of
from domains.analytics.wording.request import Request
from domains.analytics.wording.vocabulary import FUNCTIONS
from orchestrator.domain.reader import Read
from orchestrator.types import Json


def merge(asked: Request) -> Read | None:
    if asked.has(
        r"union|append|stack|concatenate|concat|below each other|put rows of|on top of each other|add rows of"
    ):
        first, second = _two_tables(asked, turned=asked.has(r"append|add") and asked.has("to"))
        if first or second or asked.has("union|concatenate"):
            return asked.read(
                "union",
                table=first,
                other_table=second,
                new_name=None if asked.has("append|add") else new_name(asked),
            )
    if not asked.has(r"merge|join|combine|link|match up|match|connect") or asked.has("split|correl"):
        return None
    first, second = _two_tables(asked)
    if not (first or asked.last_table):
        return asked.read("merge") if asked.has("merge|join") else None
    key = column_after(asked, r"on|by|using|via|over")
    return asked.read("merge", table=first, other_table=second, key=key, new_name=new_name(asked))


def _two_tables(asked: Request, *, turned: bool = False) -> tuple[str | None, str | None]:
    tables = list(asked.named)
    if len(tables) == 1 and asked.last_table and asked.last_table != tables[0]:
        tables.insert(0, asked.last_table)
        return tables[0], tables[1]
    if len(tables) > 1 and turned:
        tables = [tables[1], tables[0]]
    return (tables[0] if tables else None), (tables[1] if len(tables) > 1 else None)


def split(asked: Request) -> Read | None:
    if asked.has(r"pivot|cross ?tab|crosstab|cross table|spread .* over columns"):
        return _pivot(asked)
    if not asked.has(r"split|break|divide|separate|partition|cut") or asked.has("divided"):
        return None
    columns = asked.columns(asked.items)
    separator = next((name for name, said in _SEPARATORS.items() if asked.has(said)), None)
    text = next((name for name in columns if asked.kind_of(name) == "text"), None)
    by = column_after(asked, r"by|per|each|every|according to|along")
    if by and not separator:
        return asked.read("split", by=by)
    if text and (separator or asked.has(r"column|columns|parts|pieces|words") or not asked.named):
        new = [item.plain for item in asked.items if item.is_quoted]
        made = re.search(r"\binto (\w+) and (\w+)\b", asked.heard.text)
        new = new or ([made[1], made[2]] if made else [])
        return asked.read("split_column", column=text, columns=new or None, separator=separator)
    return asked.read("split") if asked.has("split|partition") and not columns else None


_SEPARATORS = {
    "space": r"spaces?|blanks?|words?",
    "comma": r"commas?|,",
    "dash": r"dash(?:es)?|hyphens?|-",
    "slash": r"slash(?:es)?|/",
}


def _pivot(asked: Request) -> Read | None:
    names = [name for item in asked.items if (name := _group(asked, item)) is not None]
    by_place = next(
        (place for place, item in enumerate(asked.items) if item.word in {"by", "with", "per"}), None
    )
    before = asked.before
    if by_place is None and before.get("also_by") and not asked.named:
        slots = {"by": before.get("by"), "across": before["also_by"], "column": before.get("column")}
        return asked.read("pivot", function=before.get("function"), **slots)
    if by_place is None:
        return asked.read("pivot")
    groups = [name for item in asked.items[by_place:] if (name := _group(asked, item)) is not None]
    measured = list(names[: len(names) - len(groups)])
    first, second = (*groups, None, None)[:2]
    return asked.read(
        "pivot",
        column=measured[0] if measured else None,
        by=first,
        across=second,
        function=function_of(asked.items),
        new_name=None if asked.has("as columns") else new_name(asked),
    )


def _group(asked: Request, item: Item) -> str | None:
    return asked.column(item) or (item.word if item.word in {"year", "month"} else None)


def function_of(items: Sequence[Item]) -> str | None:
    """The function that is said, by the longest phrase for one."""
    said = f" {form_of(items)} "
    found = [phrase for phrase in FUNCTIONS if f" {phrase} " in said]
    return FUNCTIONS[max(found, key=len)] if found else None


def derive(asked: Request) -> Read | None:
    text = asked.heard.text
    written = re.search(
        r"\b([A-Za-z]\w*) ?= ?([^=<>].*?)(?:\s+(?:to|in|for|of)\s+(?:the\s+)?(?:table\s+)?\w+(?:\s+table)?)?[.!?]*$",
        text,
    )
    makes = asked.has(r"add|create|make|compute|calculate|derive|define|new|let|introduce|want")
    if written and (makes or asked.has("column")) and not asked.has("rows?|record|insert|where|with"):
        return asked.read("derive_column", formula=f"{written[1]} = {written[2].strip()}")
    spoken = re.search(
        r"\b(?:add|create|make|compute|calculate|derive|define|new)\b.*?\b(?:called|named"
        r"|column|field)?\s*[\"“]?(\w+)[\"”]?\s*"
        r"\b(?:that is|which is|as|being|equal to|equals|from|is|:)\b (.+?)[.!?]*$",
        text,
        re.IGNORECASE,
    )
    if spoken and makes:
        formula = _spoken_formula(asked, spoken[2])
        if formula:
            return asked.read("derive_column", formula=f"{spoken[1]} = {formula}")
    if asked.has(
        r"(?:add|create|make|compute|calculate|derive|new) (?:new |computed |calculated )*(?:column|field)"
    ) and not asked.has(REMOVE):
        return asked.read("derive_column")
    return None


_SIGNS = {
    "minus": "-",
    "less": "-",
    "plus": "+",
    "added to": "+",
    "times": "*",
    "multiplied by": "*",
    "divided by": "/",
    "over": "/",
    "per": "/",
    "by": "/",
}


def _spoken_formula(asked: Request, said: str) -> str | None:
    """“temp_max minus temp_min” as a formula; None when there is no sign in it."""
    for words, sign in _SIGNS.items():
        said = re.sub(rf"\s+{words}\s+", f" {sign} ", said, flags=re.IGNORECASE)
    if not re.search(r"\s[-+*/]\s|\w\(", said):
        return None
    parts = re.split(r"(\s[-+*/]\s|[()])", said)
    return "".join(_column_called(asked, part) for part in parts)


def _column_called(asked: Request, said: str) -> str:
    """A column by its own name, where it is called otherwise."""
    key = re.sub(r"^(?:the|a) ", "", key_of(said))
    meaning = asked.names.phrases.get(key)
    tables = (asked.table,) if asked.table else asked.tables
    known = {name for table in tables for name in asked.names.tables.get(table, {})}
    return next((name for name in meaning.columns if name in known), said) if meaning else said


def insert(asked: Request) -> Read | None:
    if not asked.has(
        r"(?:add|insert|append|put|enter|create|new) (?:in |new |another |one |into "
        r"|TABLE )*(?:row|record|entry|line)|insert (?:\w+ )?into|insert"
    ):
        return None
    return asked.read("insert_row", values=read_pairs(asked) or None)


def read_pairs(asked: Request) -> dict[str, Json]:
    """Values by column: “year 1830 and wages 20”, “name: Volvo, horsepower: 120”."""
    pairs: dict[str, Json] = {}
    items = list(asked.items)
    columns = [(place, name) for place, item in enumerate(items) if (name := asked.column(item)) is not None]
    ends = [place for place, _ in columns[1:]] + [len(items)] * bool(columns)
    for (place, name), end in zip(columns, ends, strict=True):
        part = [
            item
            for item in items[place + 1 : end]
            if item.word not in {":", "=", "is", "of", ",", "and", ".", ";", "as", "to"}
        ]
        if part:
            values = [value for item in part for _, _, value in item.meaning.values]
            said = values[0] if values and len(part) == 1 else " ".join(item.plain for item in part)
            pairs[name] = read_number(said) if part[0].number and len(part) == 1 else said
    return pairs
