"""Read what is written after a sign: the formula of a new column, and the values of a new row."""

from __future__ import annotations

import re

from domains.analytics.language.message import Message, read_message
from domains.analytics.language.names import Names
from domains.analytics.language.request import Unfit, as_read, last_table
from orchestrator import Heard, Json, Read

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
    found = re.fullmatch(
        r"(?:insert|add)(?: new)? (?:row|record)(?: (?:in|into|to) (T\d+|IT))?", request.line
    )
    if found is None:
        raise Unfit(f"I did not take “{row['request']}”, so I have done nothing.")
    table = (
        request.token(found[1]).meaning.tables[0] if (found[1] or "").startswith("T") else last_table(heard)
    )
    return as_read("insert_row", {"values": read_pairs(row["values"])}, [table] if table else [])


def _read_formula(heard: Heard, found: re.Match[str], names: Names) -> Read:
    said = names.phrases.get((found["table"] or "").casefold().replace("_", " "))
    written, table = found["formula"], last_table(heard)
    if said is not None and said.tables:
        table = said.tables[0]
    elif found["table"]:
        raise Unfit(f"There is no table “{found['table']}”, so I have done nothing.")
    else:
        words = {word.casefold() for word in re.findall(r"[A-Za-z_]\w*", written)}
        fitting = [
            name
            for name, sheet in names.sheets.items()
            if words and words & {one.casefold() for one in sheet.names}
        ]
        table = table if table in fitting or not fitting else fitting[0] if len(fitting) == 1 else None
    return as_read("derive_column", {"formula": f"{found['name']} = {written}"}, [table] if table else [])


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
        pairs[found["name"]] = _as_number(found["value"].strip("\"'"))
    return pairs


def _as_number(said: str) -> Json:
    plain = said.replace(",", "")
    if re.fullmatch(r"-?\d+", plain):
        return int(plain)
    return float(plain) if re.fullmatch(r"-?\d*\.\d+", plain) else said
