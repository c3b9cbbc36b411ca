"""Read what is written in a notation: the formula of a new column, the values of a new row, a condition."""

from __future__ import annotations

import re

from domains.analytics.language.message import Message, read_message
from domains.analytics.language.names import Names
from domains.analytics.language.request import Unfit, as_read, last_table
from domains.analytics.statements.conditions import parse_condition
from orchestrator import Dact, Heard, Json, Mention, Read, ToolFailure

_FORMULA = re.compile(
    r"(?:(?:add|create|make|compute|calculate|define|derive|let) )?(?:a |the )?(?:new )?(?:computed )?(?:column )?"
    r"(?P<name>[A-Za-z]\w*) ?= ?(?P<formula>[^=<>].*?)"
    r"(?: (?:to|in|for) (?:the )?(?:table )?(?P<table>\w+)(?: table)?)?[.!?]*",
    re.IGNORECASE,
)
_ROW = re.compile(
    r"(?P<request>(?:insert|add)\b.*?\b(?:row|record)\b.*?)(?: with|:) (?P<values>.+?)[.!?]*", re.IGNORECASE
)
_PAIR = re.compile(
    r"(?P<name>[A-Za-z]\w*(?: \w+)?)(?:\s*(?::|=| is )\s*|\s(?=\d))(?P<value>.+)", re.IGNORECASE
)
_INTO = re.compile(r"(?:insert|add)(?: new)? (?:row|record)(?: (?:in|into|to) (T\d+|IT))?")
_FREE = frozenset({"new_name", "formula", "first", "second", "number", "month"})
"""Slots whose values may be any words: what is asked for them is left to what reads answers."""
_BARE = re.compile(
    r"(?:(?:what|how) about )?(?:(?:by|of|in|from|column|table|for|with|to|use|on|IT|is) )*"
    r"(?:[TCVNQ]\d+|year|month|[a-z_]\w*)?"
)


def read_written(heard: Heard, message: Message, names: Names) -> Read | None:
    """Read a new column or a new row; None when the message is about neither.

    Raises:
        Unfit: for values that have no column.
    """
    formula = _FORMULA.fullmatch(message.text.strip())
    if formula is not None and message.condition is None:
        return _read_formula(heard, formula, names)
    row = _ROW.fullmatch(message.text.strip())
    if row is None or re.search(r"\bwhere\b", row["values"]):
        return None
    request = read_message(row["request"], names)
    found = _INTO.fullmatch(request.line)
    if found is None:
        raise Unfit(f"I did not take “{row['request']}”, so I have done nothing.")
    named = (found[1] or "").startswith("T")
    table = request.token(found[1]).meaning.tables[0] if named else last_table(heard)
    return as_read("insert_row", {"values": read_pairs(row["values"])}, [table] if table else [])


def _read_formula(heard: Heard, found: re.Match[str], names: Names) -> Read:
    """Read a formula; its table is the one that is named, else one that has its columns, the last one first."""
    said = names.phrases.get((found["table"] or "").casefold().replace("_", " "))
    table = said.tables[0] if said is not None and said.tables else None
    if found["table"] and table is None:
        raise Unfit(f"There is no table “{found['table']}”, so I have done nothing.")
    if table is None:
        used = set(re.findall(r"[a-z_]\w*", found["formula"].casefold()))
        fitting = [
            name for name, sheet in names.sheets.items() if used & {one.casefold() for one in sheet.names}
        ]
        last = last_table(heard)
        table = last if last in fitting or not fitting else fitting[0] if len(fitting) == 1 else None
    formula = f"{found['name']} = {found['formula']}"
    return as_read("derive_column", {"formula": formula}, [table] if table else [])


def read_pairs(said: str) -> dict[str, Json]:
    """Read values by column: “name: Volvo, horsepower: 120”.

    Raises:
        Unfit: for a part that is no pair.
    """
    pairs: dict[str, Json] = {}
    for part in re.split(r"\s*(?:,|;|\band\b)\s*", said.strip(" .")):
        found = _PAIR.fullmatch(part)
        if found is None:
            raise Unfit(f"I did not take “{part}”. Say values like “name: Volvo, horsepower: 120”.")
        value = found["value"].strip("\"'")
        plain = value.replace(",", "")
        whole, decimal = re.fullmatch(r"-?\d+", plain), re.fullmatch(r"-?\d*\.\d+", plain)
        pairs[found["name"]] = int(plain) if whole else float(plain) if decimal else value
    return pairs


_THOSE = re.compile(r"(?:(?:the|all|only) )*(?:those|ones|rows) (?=where\b)", re.IGNORECASE)


def is_plain_answer(heard: Heard, message: Message) -> bool:
    """Check for an answer in no notation: any words where such are asked for, or a name alone."""
    return heard.asked in _FREE or _BARE.fullmatch(message.line) is not None


def read_answer(heard: Heard, active: Dact, names: Names) -> Read | None:
    """Read the condition or the values that were asked for; None when the message is no such answer."""
    try:
        if heard.asked == "values":
            return Read(active, {"values": Mention(read_pairs(heard.text), heard.text)})
        if heard.asked != "condition":
            return None
        message = read_message(_THOSE.sub("", heard.text), names)
        message = message if message.line == "W" else read_message(f"where {heard.text}", names)
        sheet = names.sheets.get(str(heard.values.get("table")))
        if message.line != "W" or message.condition is None or sheet is None:
            return None
        parse_condition(message.condition, sheet)
        return Read(active, {"condition": Mention(message.condition, heard.text)})
    except (Unfit, ToolFailure):
        return None
