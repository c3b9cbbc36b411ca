"""Turn the parts of a form into the values of slots: which table is meant, and what its columns are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from domains.analytics.catalogue import PERIODS
from domains.analytics.language.forms import NUMBERS, WORDS, WORDS_OF_CLAUSES
from domains.analytics.language.message import Message
from domains.analytics.language.names import Names
from domains.analytics.statements.conditions import MONTHS, parse_condition
from domains.analytics.statements.parts import words
from domains.analytics.store.sheet import Sheet
from orchestrator import Dact, Heard, Json, Mention, Past, Read, ToolFailure

_AFTER_NAME = frozenset({"instead", "then", "thanks"})
"""Words that end a sentence and no name: "call it power instead"."""
_OF_A_QUESTION = words("columns condition value order direction limit function column by also_by")
_CONTINUED = words("query aggregate chart preview")
_NAMING = words("column by also_by order key across other_column columns value first second")
"""Slots whose parts name columns of the table, or values of them."""
_WITHOUT_TABLE = words(
    "list_tables show_history undo_last_step list_schedules cancel_schedule explain_change"
)
_TAKES_PART = words("save_result export")
"""Flows that take the part of a table that was shown before, where it is called “this”."""
_SHOWS_NOTHING = words("save_result export list_tables list_schedules show_history")
"""Flows after which “this” is still what was shown before them."""
_DRAWS_ROWS = words("scatter histogram")
_OF_A_WHOLE = words(
    "query aggregate chart compare correlate profile find_missing find_duplicates find_outliers report pivot sample"
)
"""Flows that answer about a whole table, and might be meant of the part that was shown."""
_WORDS: Mapping[str, Mapping[str, str]] = {
    **WORDS,
    **WORDS_OF_CLAUSES,
    "month": {month: month for month in MONTHS},
}


class Unfit(Exception):
    """A request has a form, and does not make sense: the message says why, for the user."""


@dataclass(frozen=True, slots=True)
class Request:
    """A message of a form. `before`: the question that it goes on from, by slot; empty for one of its own."""

    heard: Heard
    message: Message
    names: Names
    flow: str
    parts: Mapping[str, str]
    before: Mapping[str, Json]

    def read(self) -> Read:
        """Give the reading. Raises Unfit with what is not understood."""
        slots: dict[str, Json] = {}
        for name, part in self.parts.items():
            slots |= self._read_part(name, part)
        tables = self._choose_tables()
        sheet = self.names.sheets.get(tables[0]) if tables else None
        if self.flow != "explain_change":
            self._name_columns(slots, sheet)
        if self.before:
            slots = self._continue(slots)
        elif self.flow in _TAKES_PART and not self.parts.get("table", "").startswith("T"):
            slots |= self._take_part(slots)
        column = sheet.find(str(slots["column"])) if sheet and slots.get("column") else None
        if slots.get("function") == "count" and column is not None and column.is_time:
            slots["column"] = None  # so many days are so many rows
        extreme = self.message.said(self.parts.get("direction", "")).casefold()
        if self.flow == "aggregate" and not slots.get("function") and extreme in WORDS["measured"]:
            slots["function"] = WORDS["measured"][extreme]
        if self.flow == "aggregate" and not slots.get("function") and sheet is not None:
            slots["function"] = "average" if column is not None and column.is_number else "count"
        if self.flow == "chart" and not slots.get("kind") and slots.get("by"):
            by = sheet.find(str(slots["by"])) if sheet else None
            numbers = by is not None and by.is_number and column is not None and column.is_number
            in_time = slots["by"] in PERIODS or (by is not None and by.is_time)
            slots["kind"] = "line" if in_time else "scatter" if numbers else "bar"
        return replace(as_read(self.flow, slots, tables), assumed=tuple(self._find_dropped(slots, tables)))

    def _find_dropped(self, slots: Mapping[str, Json], tables: list[str]) -> Iterator[str]:
        """Say that a request is about a whole table, where the user was looking at a part of it.

        Groups by the very column that made the part can only be meant of the whole.
        """
        shown = question_before(self.heard)
        named = self.parts.get("table", "").startswith("T") or self.flow in _WITHOUT_TABLE
        kept = slots.get("condition") or slots.get("question")
        kept = kept or (slots.get("by") and str(slots["by"]) in str(shown.get("condition")))
        is_whole = self.flow in _OF_A_WHOLE and tables == [shown.get("table")]
        if is_whole and shown.get("condition") and not named and not kept:
            yield f"This is about all rows of {tables[0]}, not only those {shown['condition']}."

    def _read_part(self, name: str, part: str) -> dict[str, Json]:
        """Give the value of a part; names of tables and columns are read later."""
        said = self.message.said(part)
        if name in _WORDS:
            if said.casefold() not in _WORDS[name]:
                raise _not_taken(said)
            weekday = {"weekday": said.casefold()} if said.casefold() in WORDS["weekday"] else {}
            of_one = {"limit": 1} if name == "direction" and said.casefold() in WORDS["extreme"] else {}
            return {name: _WORDS[name][said.casefold()], **weekday, **of_one}
        if name in NUMBERS:
            number = self.message.token(part).number or 0
            return {name: int(number) if float(number).is_integer() else number}
        match name:
            case "condition":
                return {name: self.message.condition}
            case "new_name":
                named = said.casefold().split()
                return {name: "_".join(named[:-1] if named[1:] and named[-1] in _AFTER_NAME else named)}
            case "first" | "second" | "value":
                meaning = self.message.token(part).meaning.value
                return {name: meaning[2] if meaning else None}
            case "columns":
                return {name: [self.message.said(one) for one in _marks_of(part)]}
            case "table":
                return {}
            case "other_table":
                return {name: self.message.token(part).meaning.tables[0]}
            case _:
                return {name: said}

    def _choose_tables(self) -> list[str]:
        """Choose the table that is named, else the last one, else those that have everything that is named.

        Raises:
            Unfit: when none has, or the condition cannot be read.
        """
        said, last = self.parts.get("table", ""), self.before.get("table") or last_table(self.heard)
        sheets = self.names.sheets
        if said.startswith("T"):
            table = self.message.token(said).meaning.tables[0]
            if table in sheets:
                self._check(sheets[table])
            return [table]
        needed = self.parts.keys() & (_NAMING | {"condition"})
        if self.flow in _WITHOUT_TABLE:
            return []
        if last in sheets and (said == "IT" or not needed or self.before):
            self._check(sheets[str(last)])
            return [str(last)]
        fitting = [name for name, sheet in sheets.items() if needed and self._fits(sheet)]
        if needed and not fitting:
            raise Unfit("No table has all that you name; name the table that you mean.")
        return [str(last)] if last in fitting else fitting

    def _marks(self) -> Iterator[tuple[str, str]]:
        """Go through the columns and values that the request names, each with its slot."""
        for name, part in self.parts.items():
            if name in _NAMING:
                yield from ((name, mark) for mark in _marks_of(part))

    def _fits(self, sheet: Sheet) -> bool:
        try:
            self._check(sheet)
        except Unfit:
            return False
        return all(self._find(mark, sheet) is not None for _, mark in self._marks())

    def _check(self, sheet: Sheet) -> None:
        """Check that values are the table's, and that it can read the condition."""
        for name, mark in self._marks():
            if name in {"value", "first", "second"} and self._find(mark, sheet) is None:
                raise Unfit(f"I find no “{self.message.said(mark)}” in {sheet.name}.")
        if "condition" in self.parts and self.message.condition is not None:
            try:
                parse_condition(self.message.condition, sheet)
            except ToolFailure as failure:
                raise Unfit(str(failure)) from failure

    def _find(self, mark: str, sheet: Sheet) -> str | None:
        """Find the table's column that a mark names, or that has the value it names."""
        if not re.fullmatch(r"[CVQ]\d+", mark):
            return mark if mark in PERIODS and sheet.has_time else None
        token = self.message.token(mark)
        if token.kind == "V" and token.meaning.value:
            place = token.meaning.value[1]
            return place if sheet.find(place) is not None else None
        column = sheet.find(token.plain) or next(filter(None, map(sheet.find, token.meaning.columns)), None)
        period = token.word.removesuffix("s")
        return column.name if column else period if period in PERIODS and sheet.has_time else None

    def _name_columns(self, slots: dict[str, Json], sheet: Sheet | None) -> None:
        """Call columns as the table does, and write a value said alone (“Japanese”) as a condition on its column.

        What the table does not have stays as it was said.
        """
        for name in self.parts.keys() & _NAMING - {"columns", "value", "first", "second"}:
            slots[name] = (sheet and self._find(self.parts[name], sheet)) or slots[name]
        if "columns" in self.parts and sheet is not None:
            marks = _marks_of(self.parts["columns"])
            slots["columns"] = [self._find(mark, sheet) or self.message.said(mark) for mark in marks]
        if "value" in self.parts:
            meaning = self.message.token(self.parts["value"]).meaning.value
            if meaning is None:
                raise _not_taken(self.message.said(self.parts["value"]))
            column = self._find(self.parts["value"], sheet) if sheet else meaning[1]
            condition = _join(self.message.condition, f"where {column} is {meaning[2]}")
            slots |= {"value": None, "condition": condition}

    def _continue(self, slots: Mapping[str, Json]) -> dict[str, Json]:
        """Lay what is said anew over the question before; conditions are joined."""
        kept = {name: value for name, value in self.before.items() if name != "table"}
        if self.flow == "chart":
            kept = {name: kept.get(name) for name in ("column", "by", "function", "kind")}
        elif self.flow == "aggregate" and not kept.get("function") and not kept.get("by"):
            kept = {}
        if self.flow != "chart":
            kept.pop("kind", None)
        if "by" in slots:
            kept["also_by"] = None
        if slots.get("function") == "count":
            kept["column"] = None
        said = {name: value for name, value in slots.items() if value is not None}
        before = self.before.get("condition")
        if "value" in self.parts:
            before = _without(before, str(slots["condition"]))
        return {**kept, **said, "condition": _join(slots.get("condition"), before)}

    def _take_part(self, slots: Mapping[str, Json]) -> dict[str, Json]:
        """Take the part of a table that the last answer showed, or that is said now."""
        if slots.get("condition"):
            return {"question": {"condition": slots["condition"]}, "condition": None}
        last = next((past for past in self.heard.completed if past.dact not in _SHOWS_NOTHING), None)
        if last is not None and last.dact == "ask_data":
            raise Unfit(
                "What I worked out with SQL I can neither save nor export; name a table, or a part with “where”."
            )
        shown = question_of(last) if last is not None and last.dact != "preview" else {}
        drawn = shown.get("kind")
        if drawn in _DRAWS_ROWS or (drawn and not shown.get("function")):
            shown = {"condition": shown.get("condition")}
        asked = {name: shown[name] for name in shown if name in _OF_A_QUESTION and shown[name] is not None}
        return {"question": asked or None}


def read_form(
    heard: Heard, message: Message, names: Names, flow: str, parts: Mapping[str, str], *, continues: bool
) -> Read | None:
    """Read a request of a form; None where it needs a question before and there was none.

    Raises:
        Unfit: with what is not understood of it.
    """
    before = question_before(heard) if continues else {}
    if continues:
        last = heard.completed[0].dact if heard.completed else ""
        flow = flow or ("query" if last == "preview" else str(last))
        says_something = bool(parts) or flow == "chart"  # “plot it” names nothing, and says enough
        if not says_something or not before or not _goes_on(flow, parts, before):
            return None
    return Request(heard, message, names, flow, parts, before).read()


def as_read(flow: str, slots: Mapping[str, Json], tables: list[str]) -> Read:
    """Give a reading; the table is a choice where several may be meant."""
    mentions = {name: Mention(value, str(value)) for name, value in slots.items() if value not in (None, "")}
    if len(tables) == 1:
        mentions["table"] = Mention(tables[0], tables[0])
    elif tables:
        mentions["table"] = Mention(None, "", tuple(tables))
    return Read(Dact(flow), mentions)


def last_table(heard: Heard) -> str | None:
    """Find the table that was spoken of last."""
    tables = (past.outputs.get("table", past.values.get("table")) for past in heard.completed)
    return next((table for table in tables if isinstance(table, str) and table), None)


def question_before(heard: Heard) -> dict[str, Json]:
    """Give the question that was answered last, by slot; empty when there was none."""
    return question_of(heard.completed[0]) if heard.completed else {}


def question_of(last: Past) -> dict[str, Json]:
    """Give the question that a task answered, by slot; empty when it answered none."""
    if last.dact == "correlate" and last.values.get("other_column"):
        pair = {"column": last.values["column"], "by": last.values["other_column"]}
        return {"table": last.values.get("table"), **pair, "kind": "scatter"}
    if last.dact not in _CONTINUED:
        return {}
    asked = last.outputs.get("question")
    values = {**last.values, **(asked if isinstance(asked, dict) else {})}
    return {name: value for name, value in values.items() if name in {*_OF_A_QUESTION, "table", "kind"}}


def _goes_on(flow: str, parts: Mapping[str, str], before: Mapping[str, Json]) -> bool:
    """Check whether a question can go on as one of this flow.

    Of rows it can be asked how many they are, and what is measured or drawn of a part of a table is of that part.
    """
    if before.get("kind") == "scatter":
        return flow == "chart" and "column" not in parts
    if before.get("function") or before.get("by"):
        return flow in {"aggregate", "chart"} and not _asks_anew(parts)
    counts = WORDS["function"].get(parts.get("function", "")) == "count"
    of_rows = bool(before.get("condition")) and "column" in parts
    return flow == "query" or (flow == "aggregate" and (counts or of_rows)) or (flow == "chart" and of_rows)


def _asks_anew(parts: Mapping[str, str]) -> bool:
    """Check for a measure with its column: a question of its own where another measure was asked for."""
    return "column" in parts and bool({"function", "kind"} & parts.keys())


def _marks_of(part: str) -> list[str]:
    return [one for one in part.split() if one not in {",", "and"}]


def _not_taken(said: str) -> Unfit:
    return Unfit(f"I did not take “{said}”, so I have done nothing.")


def _without(condition: Json, value: str) -> Json:
    """Leave out of a condition what it says of the column of another value: “only Japan”, then “only Europe”."""
    column = re.escape(value.removeprefix("where ").partition(" is ")[0])
    same = re.compile(
        rf"(?:^where |\band ){column} is (?!not\b)[^ ]+(?: (?!and\b)[^ ]+)*(?: and\b)?", re.IGNORECASE
    )
    rest = same.sub("", str(condition or "")).strip()
    return f"where {rest.removeprefix('where ').removeprefix('and ')}" if rest else None


def _join(first: Json, second: Json) -> Json:
    """Join two conditions."""
    if not (isinstance(first, str) and isinstance(second, str)):
        return first or second
    return f"{second} and {first.removeprefix('where ')}"
