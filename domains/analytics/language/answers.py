"""Read answers to an open question of a task about tables: a table, a column, a condition, values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from domains.analytics.language.message import Message, read_message
from domains.analytics.language.names import Names
from domains.analytics.language.request import Unfit
from domains.analytics.language.written import read_pairs
from domains.analytics.statements.conditions import parse_condition
from orchestrator.domain.reader import Heard, Mention, Read
from orchestrator.domain.services import ToolFailure

_OF_COLUMNS = frozenset({"column", "by", "also_by", "order", "across", "key", "other_column"})
_FREE = frozenset({"new_name", "formula", "first", "second", "number", "month"})
"""Slots whose values may be any words: what is asked for them is left to what reads answers."""
_AROUND = re.compile(r"(?:(?:what about|how about|by|of|in|from|column|table|for|with|to|use|IT is|on|IT) )+")


@dataclass(frozen=True, slots=True)
class Answer:
    """`given`: the message answers the question; without a `read` it is left to what reads answers."""

    given: bool
    read: Read | None = None


def read_answer(heard: Heard, message: Message, names: Names) -> Answer:
    """Read a message as the answer to what was asked, if it is one."""
    assert heard.active is not None
    assert heard.asked is not None
    found = _read_value(heard, message, names)
    if found is not None:
        return Answer(True, Read(heard.active, {heard.asked: found}))
    bare = _AROUND.sub("", message.line, count=1)
    is_bare = re.fullmatch(r"(?:[TCVNQ]\d+|year|month|[a-z_]\w*)?", bare) is not None
    return Answer(is_bare or heard.asked in _FREE)


def _read_value(heard: Heard, message: Message, names: Names) -> Mention | None:
    if heard.asked == "values":
        try:
            return Mention(read_pairs(heard.text), heard.text)
        except Unfit:
            return None
    if heard.asked == "condition":
        whole = message if message.line == "W" else read_message(f"where {heard.text}", names)
        sheet = names.sheets.get(str(heard.values.get("table")))
        if whole.line != "W" or whole.condition is None or sheet is None:
            return None
        try:
            parse_condition(whole.condition, sheet)
        except ToolFailure:
            return None
        return Mention(whole.condition, heard.text)
    bare = _AROUND.sub("", message.line, count=1)
    if heard.asked in _OF_COLUMNS and re.fullmatch(r"C\d+", bare):
        token, sheet = message.token(bare), names.sheets.get(str(heard.values.get("table")))
        column = sheet.find(token.plain) if sheet else None
        return Mention(column.name if column else token.meaning.columns[0], heard.text)
    if heard.asked in _OF_COLUMNS and bare in {"year", "month"}:
        return Mention(bare, heard.text)
    if heard.asked in {"table", "other_table"} and re.fullmatch(r"T\d+", bare):
        return Mention(message.token(bare).meaning.tables[0], heard.text)
    return None
