"""Turn the parts of a form into the values of slots: which table is meant, and what its columns are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from domains.analytics.language.forms import WORDS
from domains.analytics.language.message import Message
from domains.analytics.language.names import Names
from domains.analytics.statements.conditions import MONTHS, parse_condition
from domains.analytics.statements.parts import words
from domains.analytics.store.sheet import Sheet
from orchestrator import Dact, Heard, Json, Mention, Read, ToolFailure

OF_A_QUESTION = (
    "columns", "condition", "value", "order", "direction", "limit", "function", "column", "by", "also_by",
)  # fmt: skip
_CONTINUED = frozenset({"query", "aggregate", "chart", "preview"})
_OF_COLUMNS = frozenset({"column", "by", "also_by", "order", "key", "across", "other_column"})
_OF_ROWS = frozenset({"columns", "condition", "value", "first", "second"})
_WITHOUT_TABLE = words(
    "list_tables show_history undo_last_step list_schedules cancel_schedule explain_change"
)
_TAKES_PART = frozenset({"save_result", "export"})
"""Flows that take the part of a table that was shown before, where it is called “this”."""
_WORDS: Mapping[str, Mapping[str, str]] = {
    **WORDS,
    "direction": {**WORDS["direction"], **WORDS["top"]},
    "every": {**WORDS["every"], **WORDS["weekday"]},
    "month": {month: month for month in MONTHS},
}
_NUMBERS = frozenset({"limit", "size", "number", "first_year", "second_year", "year", "fill_value"})


class Unfit(Exception):
    """A request has a form, and does not make sense: the message says why, for the user."""


def read_form(
    heard: Heard, message: Message, names: Names, flow: str, parts: Mapping[str, str], *, continues: bool
) -> Read | None:
    """Read a request of a form; None where it needs a question before and there was none.

    Raises:
        Unfit: with what is not understood of it.
    """
    before = question_before(heard)
    if continues:
        flow = flow or _flow_before(heard)
        if not parts or not before or not _goes_on(flow, parts, before):
            return None
    slots: dict[str, Json] = {}
    for name, part in parts.items():
        slots |= _read_part(message, name, part)
    tables = _choose_tables(heard, message, names, flow, parts, before if continues else {})
    sheet = names.sheets.get(tables[0]) if tables else None
    if sheet is not None and flow != "explain_change":
        _name_columns(message, slots, parts, sheet)
    if "value" in parts and flow != "explain_change":
        slots |= {
            "value": None,
            "condition": _join(message.condition, _write_value(message, parts["value"], sheet)),
        }
    if continues:
        slots = _continue(flow, slots, before)
    elif flow in _TAKES_PART and not parts.get("table", "").startswith("T"):
        slots |= _take_part(heard, slots)
    if flow == "aggregate" and not slots.get("function") and sheet is not None:
        column = sheet.find(str(slots["column"])) if slots.get("column") else None
        slots["function"] = "average" if column is not None and column.is_number else "count"
    if flow == "chart":
        slots["kind"] = slots.get("kind") or _fitting_kind(slots, sheet)
    return as_read(flow, slots, tables)


def as_read(flow: str, slots: Mapping[str, Json], tables: list[str]) -> Read:
    """Give a reading; the table is a choice where several may be meant."""
    mentions = {name: Mention(value, str(value)) for name, value in slots.items() if value not in (None, "")}
    if tables:
        mentions["table"] = (
            Mention(tables[0], tables[0]) if len(tables) == 1 else Mention(None, "", tuple(tables))
        )
    return Read(Dact(flow), mentions)


def last_table(heard: Heard) -> str | None:
    """Find the table that was spoken of last."""
    for past in heard.completed:
        table = past.outputs.get("table", past.values.get("table"))
        if isinstance(table, str) and table:
            return table
    return None


def question_before(heard: Heard) -> dict[str, Json]:
    """Give the question that was answered last, by slot; empty when there was none."""
    last = heard.completed[0] if heard.completed else None
    if last is None or last.dact not in _CONTINUED:
        return {}
    asked = last.outputs.get("question")
    values = {**last.values, **(asked if isinstance(asked, dict) else {})}
    return {name: value for name, value in values.items() if name in (*OF_A_QUESTION, "table", "kind")}


def _flow_before(heard: Heard) -> str:
    dact = heard.completed[0].dact if heard.completed else ""
    return "query" if dact == "preview" else str(dact)


def _goes_on(flow: str, parts: Mapping[str, str], before: Mapping[str, Json]) -> bool:
    """Check whether a question can go on as one of this flow; of rows it can be asked how many they are."""
    if before.get("function") or before.get("by"):
        return flow in {"aggregate", "chart"}
    counts = WORDS["function"].get(parts.get("function", "")) == "count"
    return flow == "query" or (flow == "aggregate" and counts)


def _read_part(message: Message, name: str, part: str) -> dict[str, Json]:
    """Give the value of a part; names of tables and columns are read later."""
    if name in _WORDS:
        said = message.said(part).casefold()
        if said not in _WORDS[name]:
            raise Unfit(f"I did not take “{said}”, so I have done nothing.")
        weekday = {"weekday": said} if said in WORDS["weekday"] else {}
        return {name: _WORDS[name][said], **weekday}
    if name in _NUMBERS:
        number = message.token(part).number or 0
        return {name: int(number) if float(number).is_integer() else number}
    if name == "condition":
        return {name: message.condition}
    if name == "new_name":
        return {name: "_".join(message.said(part).casefold().split())}
    if name in {"first", "second", "value"}:
        meaning = message.token(part).meaning.value
        return {name: meaning[2] if meaning else None}
    if name == "columns":
        return {name: [message.said(one) for one in part.split() if one not in {",", "and"}]}
    if name == "table":
        return {}
    if name == "other_table":
        return {name: message.token(part).meaning.tables[0]}
    return {name: message.said(part)}


def _choose_tables(
    heard: Heard,
    message: Message,
    names: Names,
    flow: str,
    parts: Mapping[str, str],
    before: Mapping[str, Json],
) -> list[str]:
    """Choose the table that is named, else the last one, else those that have everything that is named.

    Raises:
        Unfit: when none has, or the condition cannot be read.
    """
    said, last = parts.get("table", ""), before.get("table") or last_table(heard)
    if said.startswith("T"):
        table = message.token(said).meaning.tables[0]
        if table in names.sheets:
            _check(message, parts, names.sheets[table])
        return [table]
    if flow in _WITHOUT_TABLE:
        return []
    needed = [name for name in parts if name in _OF_COLUMNS or name in _OF_ROWS]
    if last in names.sheets and (said == "IT" or not needed or before):
        _check(message, parts, names.sheets[str(last)])
        return [str(last)]
    if not needed:
        return []
    fitting = [name for name, sheet in names.sheets.items() if _fits(message, parts, sheet)]
    if not fitting:
        raise Unfit("No table has all that you name; name the table that you mean.")
    return [str(last)] if last in fitting else fitting


def _marks(parts: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Go through the columns and values that a request names, each with its slot."""
    for name, part in parts.items():
        if name in _OF_COLUMNS or name in {"columns", "value", "first", "second"}:
            yield from ((name, one) for one in part.split() if one not in {",", "and"})


def _fits(message: Message, parts: Mapping[str, str], sheet: Sheet) -> bool:
    try:
        _check(message, parts, sheet)
    except Unfit:
        return False
    return all(_find(message, mark, sheet) is not None for _, mark in _marks(parts))


def _check(message: Message, parts: Mapping[str, str], sheet: Sheet) -> None:
    """Check that values are the table's, and that it can read the condition."""
    for name, mark in _marks(parts):
        if name in {"value", "first", "second"} and _find(message, mark, sheet) is None:
            raise Unfit(f"I find no “{message.said(mark)}” in {sheet.name}.")
    if "condition" in parts and message.condition is not None:
        try:
            parse_condition(message.condition, sheet)
        except ToolFailure as failure:
            raise Unfit(str(failure)) from failure


def _find(message: Message, mark: str, sheet: Sheet) -> str | None:
    """Find the table's column that a mark names, or that has the value it names."""
    if not re.fullmatch(r"[CVQ]\d+", mark):
        return mark if mark in {"year", "month"} and any(one.is_time for one in sheet.columns) else None
    token = message.token(mark)
    if token.kind == "V" and token.meaning.value:
        place = token.meaning.value[1]
        return place if sheet.find(place) is not None else None
    column = sheet.find(token.plain) or next(filter(None, map(sheet.find, token.meaning.columns)), None)
    if column is not None:
        return column.name
    period = token.word.removesuffix("s")
    return period if period in {"year", "month"} and any(one.is_time for one in sheet.columns) else None


def _name_columns(message: Message, slots: dict[str, Json], parts: Mapping[str, str], sheet: Sheet) -> None:
    """Call columns as the table does; what it does not have stays as it was said."""
    for name in _OF_COLUMNS & parts.keys():
        slots[name] = _find(message, parts[name], sheet) or slots[name]
    if "columns" in parts:
        marks = [mark for name, mark in _marks(parts) if name == "columns"]
        slots["columns"] = [_find(message, mark, sheet) or message.said(mark) for mark in marks]


def _write_value(message: Message, mark: str, sheet: Sheet | None) -> str:
    """Write a value that is said alone (“Japanese”) as a condition on the column that has it."""
    meaning = message.token(mark).meaning.value
    if meaning is None:
        raise Unfit(f"I did not take “{message.said(mark)}”, so I have done nothing.")
    column = _find(message, mark, sheet) if sheet else meaning[1]
    return f"where {column} is {meaning[2]}"


def _join(first: Json, second: Json) -> Json:
    """Join two conditions."""
    if not (isinstance(first, str) and isinstance(second, str)):
        return first or second
    return f"{second} and {first.removeprefix('where ')}"


def _continue(flow: str, slots: Mapping[str, Json], before: Mapping[str, Json]) -> dict[str, Json]:
    """Lay what is said anew over the question before; conditions are joined."""
    kept = {name: value for name, value in before.items() if name != "table"}
    if flow == "aggregate" and not before.get("function") and not before.get("by"):
        kept = {}
    if "by" in slots:
        kept |= {"also_by": None}
    if slots.get("function") == "count":
        kept |= {"column": None}
    joined = _join(slots.get("condition"), before.get("condition"))
    if flow == "chart":
        kept = {name: kept.get(name) for name in ("column", "by", "function", "kind")}
    else:
        kept.pop("kind", None)
    return {
        **kept,
        **{name: value for name, value in slots.items() if value is not None},
        "condition": joined,
    }


def _take_part(heard: Heard, slots: Mapping[str, Json]) -> dict[str, Json]:
    """Take the part of a table that the last answer showed, or that is said now."""
    said = {"condition": slots["condition"]} if slots.get("condition") else None
    shown = (
        question_before(heard)
        if heard.completed and heard.completed[0].dact in {"query", "aggregate"}
        else {}
    )
    asked = {name: value for name, value in shown.items() if name in OF_A_QUESTION and value is not None}
    return {"question": said or asked or None, "condition": None}


def _fitting_kind(slots: Mapping[str, Json], sheet: Sheet | None) -> Json:
    """Choose the kind of chart that columns call for, where none is said."""
    by, column = slots.get("by"), slots.get("column")
    found = sheet.find(str(by)) if sheet and by else None
    measured = sheet.find(str(column)) if sheet and column else None
    if by in {"year", "month"} or (found and found.is_time):
        return "line"
    if found and measured and found.is_number and measured.is_number:
        return "scatter"
    return "bar" if by else None
