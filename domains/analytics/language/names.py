"""Know what words name: tables, columns and values of the catalogue, and a session's own tables and columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

from domains.analytics.catalogue import TABLES, VALUES
from domains.analytics.statements.parts import Column
from domains.analytics.store.sheet import Sheet, base_sheets

LONGEST = 4
"""Words of a name."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What words may stand for. `value`: with the table and column that have it."""

    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    value: tuple[str, str, str] | None = None

    def __or__(self, other: Meaning) -> Meaning:
        tables, columns = self.tables + other.tables, self.columns + other.columns
        return Meaning(tuple(dict.fromkeys(tables)), tuple(dict.fromkeys(columns)), self.value or other.value)


@dataclass(frozen=True, slots=True)
class Names:
    """`sheets`: the tables that there are. `phrases`: what is said for names, in small letters."""

    sheets: dict[str, Sheet]
    phrases: dict[str, Meaning]

    def add(self, phrase: str, meaning: Meaning) -> None:
        """Add a phrase, with its last word in singular and plural."""
        plain = phrase.casefold().replace("_", " ")
        for said in {plain, plain.removesuffix("s"), f"{plain}s"}:
            self.phrases[said] = self.phrases.get(said, Meaning()) | meaning


def names_for(own: Mapping[str, Collection[str]]) -> Names:
    """Give the catalogue's names, and those of a session's own tables and columns."""
    base = _base_names()
    if not own:
        return base
    names = Names(dict(base.sheets), dict(base.phrases))
    types = {column.name: column.type for sheet in base.sheets.values() for column in sheet.columns}
    for column in own.get("column", ()):
        names.add(column, Meaning(columns=(column,)))
    tables = own.get("table", {})
    for table, facts in tables.items() if isinstance(tables, Mapping) else ():
        columns = facts.get("columns", ()) if isinstance(facts, Mapping) else ()
        known = tuple(Column(str(name), types.get(str(name), "")) for name in columns)
        names.sheets[table] = Sheet(table, "", known, 0)
        names.add(table, Meaning(tables=(table,)))
    return names


@cache
def _base_names() -> Names:
    names = Names(base_sheets(), {})
    for table in TABLES.values():
        for phrase in (table.name, *table.aliases):
            names.add(phrase, Meaning(tables=(table.name,)))
        for column in table.columns:
            for phrase in (column.name, *column.aliases):
                names.add(phrase, Meaning(columns=(column.name,)))
    for place, values in VALUES.items():
        table, _, column = place.partition(".")
        for value, aliases in values.items():
            for phrase in (value, *aliases):
                names.add(phrase, Meaning(value=(table, column, value)))
    return names
