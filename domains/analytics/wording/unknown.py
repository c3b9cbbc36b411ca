"""Words in the place of a table or a measure that are none: they are told, not passed over."""

from __future__ import annotations

import re

from domains.analytics.wording.phrase import NOTHING
from domains.analytics.wording.request import Request, is_unknown
from domains.analytics.wording.vocabulary import CHARTS, EXTREME_WORDS, FUNCTIONS, PERIODS, words
from orchestrator.types import Json


def table_or_unknown(asked: Request) -> Json:
    """The table that is meant, also by “it”; a word that nobody knows stands for one."""
    if asked.named:
        return asked.named[0]
    unknown = unknown_noun(asked)
    return unknown or asked.last_table or ""


def unknown_noun(asked: Request) -> str | None:
    """A word in the place of a table that is none."""
    found = re.search(
        (
            r"\b(\w+) (?:table|dataset|data)\b|\b(?:table|dataset) (\w+)|(?:of|in|from|about"
            r"|show|describe|open|preview|profile|see|on|list) (\w+)[ ?.!]*$"
        ),
        asked.line,
    )
    words = [word for word in (found.groups() if found else ()) if word]
    ordinary = {
        "this",
        "that",
        "it",
        "them",
        "those",
        "these",
        "first",
        "rows",
        "table",
        "data",
        "last",
        "what",
        "which",
        "there",
        "tables",
    }
    item = next((item for item in asked.items if words and item.word == words[0]), None)
    plain = item is not None and item.meaning == NOTHING and item.number is None and item.word.isidentifier()
    ruled = {
        *FUNCTIONS,
        *CHARTS,
        *PERIODS,
        *EXTREME_WORDS,
        *ordinary,
        "statistics",
        "stats",
        "columns",
        "duplicates",
        "outliers",
        "more",
        "describe",
        "show",
    }
    return item.plain if plain and item and item.word not in ruled else None


def unknown_measure(asked: Request) -> str | None:
    """What a question measures that no column is called: “average salary”."""
    return next((item.plain for item in asked.left if is_unknown(item) or item.word in _STRANGE), None)


_STRANGE = words(
    "revenue sales salary salaries profit profits height heights volume volumes sale "
    "orders customers spend cost costs margin"
)
UNKNOWN_TABLES = words(
    "orders customers products users sales employees invoices clients countries movies students purchases payments"
)
_PLACES = frozenset({"in", "from", "near", "at", "of", "around", "for"})


def counted_noun(asked: Request) -> str | None:
    """What “how many …” counts, where that is no table and nothing of one."""
    found = re.search(r"\b(?:how many|number of|count) (\w+s)\b", asked.line)
    item = next((one for one in asked.items if found and one.word == found[1]), None)
    return item.plain if item and item.meaning == NOTHING and item.word not in _COUNTABLE else None


_COUNTABLE = words(
    "rows records entries lines times values is was does has this columns duplicates outliers ones results"
)


def place_said(asked: Request, *, anywhere: bool = False) -> str | None:
    """A name that no catalogue lists, where a place or group would stand: “airports in Dallas”."""
    left = list(asked.left)
    for place, item in enumerate(left[:-1]):
        if item.word in _PLACES:
            name: list[str] = []
            for one in left[place + 1 :]:
                if (
                    one.meaning != NOTHING
                    or one.number
                    or not (one.text[:1].isupper() or is_unknown(one) or one.is_quoted)
                ):
                    break
                name.append(one.plain)
            if name and (asked.named or anywhere):
                return " ".join(name)
    return None
