"""What several kinds of request share: new names, numbers, the column after a word."""

from __future__ import annotations

import re

from domains.analytics.wording.request import Request
from orchestrator.types import Json

REMOVE = r"delete|remove|drop|erase|get rid of|throw out|throw away|take out|discard|eliminate|kick out|lose"
_NEW_NAME = re.compile(
    r"\b(?:to|as|called|named|name it|call it|under the name|with the name"
    r"|into)\s+[\"“']?([A-Za-z]\w*(?:[ _-]\w+){0,3}?)[\"”']?"
    r"\s*(?:(?:in|of|for|on|from) .*)?[.!?]*$",
    re.IGNORECASE,
)


def new_name(asked: Request) -> str | None:
    """The name that something is to have, of up to four words."""
    found = _NEW_NAME.search(asked.heard.text.strip())
    if found is None:
        return None
    words = found[1].casefold().split()
    return (
        None
        if words[0] in {"a", "an", "the", "each", "every", "csv", "json", "rows"}
        else "_".join(re.split(r"[ -]", found[1].strip())).lower()
    )


def whole_number(number: str | None) -> Json:
    return None if number is None else int(float(number))


def column_after(asked: Request, words: str) -> str | None:
    """The column that stands after one of some words."""
    for place, item in enumerate(asked.items[:-1]):
        if re.fullmatch(words, item.word):
            following = asked.items[place + 1]
            name = asked.column(following)
            if name is not None or following.word in {"year", "month"}:
                return name or following.word
            if following.meaning.columns:
                return following.meaning.columns[0]
    return None


def read_number(said: str) -> Json:
    plain = said.replace(",", "")
    try:
        return int(plain) if plain.isdigit() else float(plain)
    except ValueError:
        return said
