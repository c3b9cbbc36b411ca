"""A request with what every rule asks of it: its table, its conditions, and the values for slots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from domains.analytics.wording.names import Meaning, Names, key_of
from domains.analytics.wording.phrase import NOTHING, Item, Phrase, form_of
from domains.analytics.wording.restrict import Clause, Restrictions, restrict
from domains.analytics.wording.vocabulary import MONTHS, ORDINARY, PERIODS, words
from orchestrator.domain.reader import Heard, Mention, Read
from orchestrator.types import Dact, Json

_UNEXPLAINED = 0.15
"""How much less sure a reading is for each word that nothing explains."""
_ASKED = (
    "query",
    "aggregate",
    "chart",
    "preview",
    "describe_table",
    "profile",
    "export",
    "compare",
    "correlate",
)
OF_A_QUESTION = (
    "columns",
    "condition",
    "value",
    "order",
    "direction",
    "limit",
    "function",
    "column",
    "by",
    "also_by",
)


@dataclass
class Request:
    """`items` may be fewer than the phrase's, where a part was read already."""

    heard: Heard
    names: Names
    phrase: Phrase
    items: Sequence[Item] = field(default_factory=tuple[Item, ...])

    def __post_init__(self) -> None:
        self.items = self.items or self.phrase.items

    @cached_property
    def form(self) -> str:
        """The words with names and numbers by their kinds."""
        return form_of(self.items)

    @cached_property
    def line(self) -> str:
        """The words as they are looked at, in small letters."""
        return " ".join(item.word for item in self.items)

    @cached_property
    def before(self) -> Mapping[str, Json]:
        """The question that was answered last, by slot; empty when there was none."""
        last = self.heard.completed[0] if self.heard.completed else None
        if last is None or last.dact not in _ASKED:
            return {"table": self.last_table} if self.last_table else {}
        if last.dact == "compare":
            return self._compared(last.values)
        if last.dact == "correlate":
            pair = {"column": last.values.get("column"), "by": last.values.get("other_column")}
            return {"table": self.last_table, **pair}
        asked = last.values.get("question")
        kept = {
            name: value for name, value in last.values.items() if name in (*OF_A_QUESTION, "table", "kind")
        }
        return {**kept, **asked} if isinstance(asked, dict) else kept

    def _compared(self, values: Mapping[str, Json]) -> Mapping[str, Json]:
        """A comparison of two groups as a question about both."""
        groups = [values.get("first"), values.get("second")]
        meanings = [self.names.phrases.get(key_of(str(group)), NOTHING) for group in groups]
        by = next((column for one in meanings for _, column, value in one.values if value in groups), None)
        condition = f"where {by} is {groups[0]} or {groups[1]}" if by else None
        return {
            "table": values.get("table"),
            "function": values.get("function") or "average",
            "column": values.get("column"),
            "by": by or "year",
            "condition": condition,
        }

    @property
    def dact_before(self) -> str:
        return self.heard.completed[0].dact if self.heard.completed else ""

    @cached_property
    def last_table(self) -> str | None:
        """The table that was spoken of last."""
        for past in self.heard.completed:
            if isinstance(table := past.outputs.get("table", past.values.get("table")), str):
                return table
        return None

    @cached_property
    def named(self) -> tuple[str, ...]:
        """The tables that are named, in their order."""
        return tuple(dict.fromkeys(item.meaning.tables[0] for item in self.items if item.meaning.tables))

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The tables that may be meant: those named, else those that have everything that is named."""
        if self.named:
            return self.named
        meanings = [(item.word, item.meaning) for item in self.items if item.meaning != NOTHING]
        told = [(word, one) for word, one in meanings if word not in PERIODS]
        if not told:
            return (self.last_table,) if self.last_table else ()
        fitting = [table for table in self.names.tables if all(self._fits(table, one) for _, one in told)]
        if self.last_table in fitting:
            return (str(self.last_table),)
        if len(fitting) > 1:
            counts = {table: sum(self._is_own_word(table, word) for word, _ in told) for table in fitting}
            fitting = [table for table in fitting if counts[table] == max(counts.values())]
        return tuple(fitting)

    def _fits(self, table: str, meaning: Meaning) -> bool:
        return self.names.has(table, meaning)

    def _is_own_word(self, table: str, word: str) -> bool:
        """Whether a table calls a column of its own by this word."""
        return table in self.names.own_words.get(word, ())

    @property
    def table(self) -> str | None:
        """The one table that is meant."""
        tables = self.tables
        return tables[0] if tables and (len(tables) == 1 or self.named) else None

    @cached_property
    def restricted(self) -> Restrictions:
        """The request without its conditions."""
        table = self.table or (self.tables[0] if self.tables else "")
        return restrict(self.items, table, self.names)

    @property
    def left(self) -> Sequence[Item]:
        return self.restricted.items

    def has(self, pattern: str) -> bool:
        """Whether the form contains a pattern, as whole words."""
        return re.search(rf"(?<!\w)(?:{pattern})(?!\w)", self.form) is not None

    def column(self, item: Item) -> str | None:
        """The column that an item names, of the table that is meant if there is one."""
        tables = (self.table,) if self.table else self.tables
        for table in tables:
            known = self.names.tables.get(table, {})
            found = next((name for name in item.meaning.columns if name in known), None)
            if found is not None:
                return found
        return item.meaning.columns[0] if item.meaning.columns and not tables else None

    def columns(self, items: Iterable[Item]) -> list[str]:
        return list(dict.fromkeys(name for item in items if (name := self.column(item)) is not None))

    def kind_of(self, column: str | None) -> str:
        tables = (self.table,) if self.table else self.tables
        if column is None:
            return ""
        return next((known[column] for t in tables if column in (known := self.names.tables.get(t, {}))), "")

    def extreme(self, item: Item) -> tuple[str, str] | None:
        """The column that an adjective is about, and the direction."""
        tables = (self.table,) if self.table else self.tables
        known = {name for table in tables for name in self.names.tables.get(table, {})}
        return next(((name, way) for name, way in item.meaning.extremes if name in known), None)

    def condition(self, *more: Clause) -> Json:
        """The conditions in one line, as slots hold them; several where a column has to be chosen."""
        return write_condition([*self.restricted.clauses, *more], self.names, self.table)

    def read(self, flow: str, *, table: Json = "", condition: Json = None, **slots: Json) -> Read:
        """The reading, with the table that is meant and the slots that have a value."""
        tables = self.tables
        values = {name: as_mention(value) for name, value in slots.items() if value is not None}
        if isinstance(table, str) and table:
            values["table"] = Mention(table, table)
        elif table == "" and len(tables) > 1 and not self.named:
            values["table"] = Mention(None, "", tuple(tables))
        elif table == "" and tables:
            values["table"] = Mention(tables[0], tables[0])
        if condition is not None:
            values["condition"] = as_mention(condition)
        unknown = sum(1 for item in self.items if is_unknown(item))
        slips = [item for item in self.items if item.slip and item.meaning != NOTHING]
        assumed = tuple(f"I took “{item.slip}” for {self._meant(item)}." for item in slips)
        return Read(Dact(flow), values, max(0.4, 1 - _UNEXPLAINED * unknown), assumed)

    def _meant(self, item: Item) -> str:
        meaning = item.meaning
        names = (
            *meaning.tables,
            *filter(None, [self.column(item)]),
            *(value for _, _, value in meaning.values),
        )
        return names[0] if names else item.word


def as_mention(value: Json) -> Mention:
    if isinstance(value, tuple):
        return Mention(None, "", value)
    return Mention(value, str(value))


def is_unknown(item: Item) -> bool:
    """Whether an item is a word of content that nothing explains."""
    plain = item.meaning == NOTHING and item.number is None and item.word.isalpha()
    return (
        plain
        and len(item.word) > 3
        and item.word not in ORDINARY
        and item.word not in MONTHS
        and item.word not in _SMALL
    )


_SMALL = words(
    "that this these those them they their with from have does were been what when only into over also same like "
    "much many more most very just there here then than each every about instead"
)


def write_condition(clauses: Sequence[Clause], names: Names, table: str | None) -> Json:
    """Clauses as one condition. A number without a column becomes a choice among the columns of numbers."""
    if not clauses:
        return None
    columns = names.tables.get(table or "", {})
    open_ended = [clause for clause in clauses if not clause.column]
    if not open_ended:
        return _write(clauses, columns)
    numbers = [name for name, kind in columns.items() if kind == "number"]
    filled = [_write([_with(clause, name) for clause in clauses], columns) for name in numbers]
    return filled[0] if len(filled) == 1 else tuple(filled) or None


def _with(clause: Clause, column: str) -> Clause:
    return clause if clause.column else Clause(column, clause.operator, clause.values, clause.either)


def _write(clauses: Sequence[Clause], columns: Mapping[str, str]) -> str:
    text = ""
    for clause in clauses:
        joint = "" if not text else " or " if clause.either else " and "
        text += joint + clause.write(is_time=columns.get(clause.column) == "date")
    return f"where {text}"
