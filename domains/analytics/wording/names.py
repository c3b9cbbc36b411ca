"""What tables, columns and values are called: the catalogue's and the session's own, with their variants."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from domains.analytics.catalogue import EXTREMES, GROUPS, OTHER_VALUES, TABLES, names_of_group

TOKEN = re.compile(
    r"""["“][^"”]*["”]|(?<!\w)'[^']*'(?!\w)|\d{4}-\d{2}(?:-\d{2})?|\d{4}s\b|\d[\d,]*(?:\.\d+)?(?:[kKmM]\b|%)?"""
    r"""|['’]s\b|[A-Za-z_]\w*(?:['’](?!s\b)\w+)?|[<>!=]=|<>|[<>=+\-*/%():,;.?!]"""
)
LONGEST = 5


@dataclass(frozen=True, slots=True)
class Meaning:
    """What words may stand for. `values`: with the column that has them. `extremes`: columns with much or little."""

    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    values: tuple[tuple[str, str, str], ...] = ()
    """Table, column, value."""
    extremes: tuple[tuple[str, str], ...] = ()

    def __or__(self, other: Meaning) -> Meaning:
        return Meaning(
            tuple(dict.fromkeys(self.tables + other.tables)),
            tuple(dict.fromkeys(self.columns + other.columns)),
            tuple(dict.fromkeys(self.values + other.values)),
            tuple(dict.fromkeys(self.extremes + other.extremes)),
        )


@dataclass(slots=True)
class Names:
    """`tables`: columns with their kinds (text, number, date, or empty), by table. `phrases`: what is said for them."""

    tables: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    phrases: dict[str, Meaning] = field(default_factory=dict[str, Meaning])
    own_words: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """Tables that call a column of their own by a phrase."""

    def add(self, phrase: str, meaning: Meaning) -> None:
        self.phrases[phrase] = self.phrases.get(phrase, Meaning()) | meaning

    def has(self, table: str, meaning: Meaning) -> bool:
        """Whether a table has what words may stand for."""
        columns = self.tables.get(table, {})
        return (
            table in meaning.tables
            or any(name in columns for name in meaning.columns)
            or any(place == table and name in columns for place, name, _ in meaning.values)
            or any(name in columns for name, _ in meaning.extremes)
        )

    def time_of(self, table: str) -> str | None:
        """The column that says when."""
        columns = self.tables.get(table, {})
        dates = [name for name, kind in columns.items() if kind == "date"]
        return dates[0] if dates else "year" if "year" in columns else None


def key_of(text: str) -> str:
    """Words as they are looked up: in small letters, joined by one space."""
    return " ".join(found[0].lower() for found in TOKEN.finditer(text.replace("_", " ")))


def names_for(own: Mapping[str, Collection[str]]) -> Names:
    """The catalogue's names, and those of a session's own tables and columns."""
    base = _base()
    if not own:
        return base
    names = Names(dict(base.tables), dict(base.phrases), base.own_words)
    kinds = {name: kind for columns in base.tables.values() for name, kind in columns.items()}
    for column in own.get("column", ()):
        _add_all(names, [column], Meaning(columns=(column,)))
    tables = own.get("table", {})
    for table, told in tables.items() if isinstance(tables, Mapping) else ():
        columns = told.get("columns", ()) if isinstance(told, Mapping) else ()
        names.tables[table] = {str(name): kinds.get(str(name), "") for name in columns}
        _add_all(names, [table], Meaning(tables=(table,)))
    return names


@cache
def _base() -> Names:
    names = Names()
    for table in TABLES.values():
        names.tables[table.name] = {column.name: column.kind for column in table.columns}
        _add_all(names, [table.name, *table.aliases], Meaning(tables=(table.name,)))
        for column in table.columns:
            _add_all(names, [column.name, *column.aliases], Meaning(columns=(column.name,)))
            for phrase in (column.name, *column.aliases):
                for variant in _variants(key_of(phrase)):
                    names.own_words.setdefault(variant, set()).add(table.name)
    _add_values(names)
    _add_extremes(names)
    return names


def _add_values(names: Names) -> None:
    for place, values in {**GROUPS, **OTHER_VALUES}.items():
        table, _, column = place.partition(".")
        for value in values:
            is_code = len(value) == 2
            for said in names_of_group(value) if is_code else (value, *names_of_group(value)):
                names.add(key_of(said), Meaning(values=((table, column, value),)))


def _add_extremes(names: Names) -> None:
    for column, ways in EXTREMES.items():
        for direction, words in zip(("descending", "ascending"), ways, strict=True):
            for word in words.split():
                names.add(word, Meaning(extremes=((column, direction),)))


def _add_all(names: Names, said: Iterable[str], meaning: Meaning) -> None:
    for phrase in said:
        for variant in {phrase.casefold(), *_variants(key_of(phrase))}:
            names.add(variant, meaning)


def _variants(phrase: str) -> set[str]:
    """The phrase, and its last word in singular and plural."""
    if phrase.endswith("ies"):
        return {phrase, f"{phrase[:-3]}y"}
    if phrase.endswith("s"):
        return {phrase, phrase[:-1]}
    if phrase.endswith("y") and phrase[-2:-1] not in set("aeiou"):
        return {phrase, f"{phrase[:-1]}ies"}
    return {phrase, f"{phrase}s"}
