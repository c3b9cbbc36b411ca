"""Requests that tidy a table: names and types of columns, gaps, duplicates, rows that stay or go."""

from __future__ import annotations

import re

from domains.analytics.wording.common import REMOVE, new_name, read_number, whole_number
from domains.analytics.wording.names import key_of
from domains.analytics.wording.request import Request
from orchestrator.domain.reader import Read

_ROWS = r"rows?|records?|entries|entry|lines?|ones"


def rename(asked: Request) -> Read | None:
    if not asked.has(r"rename|(?:change|give) .*name|call|relabel"):
        return None
    columns = asked.columns(asked.items)
    if not columns and not asked.has("rename"):
        return None
    name = new_name(asked)
    if name is None and re.match(r"call\b", asked.line):
        name = asked.items[-1].plain if asked.items[-1].word not in {"column", "field"} else None
    if name and columns and key_of(name) == key_of(columns[0]):
        name = None
    return asked.read("rename_column", column=columns[0] if columns else None, new_name=name)


def cast(asked: Request) -> Read | None:
    kind = re.search(
        (
            r"\b(?:to|into|as|a|an|be|type)\s+(?:a |an |the )?(text|strings?|numbers?|numeric"
            r"|decimal|float|whole numbers?|whole|integers?|ints?|dates?|day)\b"
        ),
        asked.heard.text.casefold(),
    )
    verb = asked.has(r"convert|cast|change|turn|make|treat|should be|type|parse")
    columns = asked.columns(asked.items)
    if not verb or not columns or (kind is None and not asked.has("cast|type of")):
        return None
    types = {
        "t": "text",
        "s": "text",
        "n": "number",
        "d": "number",
        "f": "number",
        "w": "whole",
        "i": "whole",
    }
    wanted = None if kind is None else "date" if kind[1] in {"date", "dates", "day"} else types[kind[1][0]]
    return asked.read("cast_column", column=columns[0], type=wanted)


def clean(asked: Request) -> Read | None:
    case = re.search(
        r"\b(upper|lower|title|capital|small)[ -]?(?:case|letters|s|ised|ized)?\b|\b(capitals?|capitali[sz]ed?)\b",
        asked.heard.text.casefold(),
    )
    named = (
        None
        if case is None
        else {"upper": "upper", "capital": "upper", "lower": "lower", "small": "lower", "title": "title"}.get(
            case[1] or "", "title" if "ed" in (case[2] or "") else "upper"
        )
    )
    if asked.has(r"clean|clean up|tidy|tidy up|trim|strip|normali[sz]e|extra spaces|whitespace") or (
        named and asked.has("make|put|convert|turn|change|to|in|write")
    ):
        text = [name for name in asked.columns(asked.items) if asked.kind_of(name) in {"text", ""}]
        return asked.read("clean", column=text[0] if text else None, case=named)
    return None


def fill(asked: Request) -> Read | None:
    if not asked.has(r"fill|impute|replace|complete|set|put|substitute") or not asked.has(
        r"missing|gaps?|empty|null|nulls|blanks?|fill|impute|holes"
    ):
        return None
    columns = asked.columns(asked.items)
    numbers = [item.number for item in asked.items if item.number]
    strategy = next((name for name, said in _STRATEGIES.items() if asked.has(said)), None)
    if numbers and not strategy:
        zero = numbers[-1] == "0"
        return asked.read(
            "fill_missing",
            column=columns[0] if columns else None,
            strategy="zero" if zero else None,
            fill_value=None if zero else read_number(numbers[-1]),
        )
    return asked.read("fill_missing", column=columns[0] if columns else None, strategy=strategy)


_STRATEGIES = {
    "mean": "mean|average|avg",
    "median": "median|middle",
    "common": "most common|mode|most frequent|commonest",
    "previous": "previous|last|before|forward",
    "zero": "zeros?|zeroes",
}


def duplicates(asked: Request) -> Read | None:
    if not asked.has(
        r"duplicates?|duplicated|dedupe|deduplicate|dedup|repeated|double rows|doubles|unique rows|twice|repeats"
    ):
        return None
    columns = asked.columns(asked.items)
    removes = asked.has(rf"{REMOVE}|dedupe|deduplicate|dedup|keep only|make .*unique|clean")
    return asked.read("deduplicate" if removes else "find_duplicates", column=columns[0] if columns else None)


def delete(asked: Request) -> Read | None:
    """Rows by a condition, a column, or a table."""
    if not re.match(rf"(?:now |then |also |and )*(?:{REMOVE})\b", asked.line) and not asked.has(
        "do not|don't"
    ):
        return None
    if asked.restricted.clauses or asked.has(rf"{_ROWS}|where"):
        return asked.read("delete_rows", condition=asked.condition())
    columns = asked.columns(asked.items)
    if columns or asked.has("column"):
        unknown = _unknown_after(asked, "column")
        return asked.read("drop_column", column=columns[0] if columns else unknown)
    if asked.named:
        return asked.read("drop_table")
    word = _unknown_after(asked, "table")
    return asked.read("drop_table", table=word) if word else None


def _unknown_after(asked: Request, noun: str) -> str | None:
    found = re.search(rf"\b{noun}s? [\"“]?(\w+)|\b(\w+) {noun}\b", asked.heard.text.casefold())
    word = (found[1] or found[2]) if found else None
    small = {None, "the", "a", "this", "that", "from", "in", "of", "drop", "delete", "remove"}
    return None if word in small else word


def filter_rows(asked: Request) -> Read | None:
    begins = re.match(r"(?:now |then )*(?:keep|filter|restrict|reduce|narrow|limit)\b", asked.line)
    told = asked.restricted.clauses or asked.has("filter|keep only|keep just|restrict|narrow")
    if begins and told and not asked.has("keep top|keep first"):
        return asked.read("filter", condition=asked.condition())
    return None


def sample(asked: Request) -> Read | None:
    if not asked.has(r"sample|random|randomly|at random|subset"):
        return None
    size = next((item.number for item in asked.items if item.number), None)
    return asked.read("sample", size=whole_number(size), new_name=new_name(asked))
