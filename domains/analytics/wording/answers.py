"""Answers to an open question of a task about tables: a table, a column, a condition, values."""

from __future__ import annotations

from domains.analytics.wording.phrase import NOTHING
from domains.analytics.wording.request import Request, as_mention
from domains.analytics.wording.shaping import read_pairs
from domains.analytics.wording.vocabulary import PERIODS, words
from orchestrator.domain.reader import Mention, Read

_OF_COLUMNS = words("column by also_by order across key other_column")
_AROUND = words(
    "by of in from column table for with to it is that use take on and over per what about how show , . ! ?"
)


def answer(asked: Request) -> Read | None:
    """Read a message as the answer to what was asked; None when it is none."""
    heard = asked.heard
    if heard.asked is None or heard.active is None:
        return None
    if heard.asked == "values" and (pairs := read_pairs(asked)):
        return Read(heard.active, {"values": Mention(pairs, heard.text)})
    if heard.asked == "condition" and (condition := asked.condition()) is not None:
        return Read(heard.active, {"condition": as_mention(condition)})
    if not is_bare(asked):
        return None
    if heard.asked in _OF_COLUMNS:
        named = asked.columns(asked.items) or [
            PERIODS[one.word] for one in asked.items if one.word in PERIODS
        ]
        return Read(heard.active, {heard.asked: Mention(named[0], heard.text)}) if len(named) == 1 else None
    if heard.asked in {"table", "other_table"} and len(asked.named) == 1:
        return Read(heard.active, {heard.asked: Mention(asked.named[0], heard.text)})
    return None


def is_bare(asked: Request) -> bool:
    """Whether a message holds names and numbers, and hardly a word besides."""
    return all(
        item.meaning != NOTHING or item.number is not None or item.word in _AROUND or item.word in PERIODS
        for item in asked.items
    )
