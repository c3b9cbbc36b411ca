"""Read answers to an open question of a task about tables that have a grammar: a condition, the values of a row."""

from __future__ import annotations

import re

from domains.analytics.language.message import Message, read_message
from domains.analytics.language.names import Names
from domains.analytics.language.request import Unfit
from domains.analytics.language.written import read_pairs
from domains.analytics.statements.conditions import parse_condition
from orchestrator import Dact, Heard, Mention, Read, ToolFailure

_FREE = frozenset({"new_name", "formula", "first", "second", "number", "month"})
"""Slots whose values may be any words: what is asked for them is left to what reads answers."""
_BARE = re.compile(
    r"(?:(?:what|how) about )?(?:(?:by|of|in|from|column|table|for|with|to|use|on|IT|is) )*"
    r"(?:[TCVNQ]\d+|year|month|[a-z_]\w*)?"
)


def is_left(heard: Heard, message: Message) -> bool:
    """Check for an answer that needs no grammar: any words where such are asked for, or a name alone."""
    return heard.asked in _FREE or _BARE.fullmatch(message.line) is not None


def read_answer(heard: Heard, active: Dact, names: Names) -> Read | None:
    """Read the condition or the values that were asked for; None when the message is no such answer."""
    if heard.asked == "values":
        try:
            return Read(active, {"values": Mention(read_pairs(heard.text), heard.text)})
        except Unfit:
            return None
    if heard.asked != "condition":
        return None
    message = read_message(heard.text, names)
    message = message if message.line == "W" else read_message(f"where {heard.text}", names)
    sheet = names.sheets.get(str(heard.values.get("table")))
    if message.line != "W" or message.condition is None or sheet is None:
        return None
    try:
        parse_condition(message.condition, sheet)
    except ToolFailure:
        return None
    return Read(active, {"condition": Mention(message.condition, heard.text)})
