"""Describe a table under its name, and find columns by what people call them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from domains.analytics.catalogue import TABLES
from domains.analytics.statements.parts import Column, invalid, not_found
from orchestrator import ToolFailure

BASE = "base:"
"""How nodes of base tables begin."""
NEAR = 70.0


def fold(said: str) -> str:
    """Give a name in the form in which names are compared."""
    return "_".join(said.casefold().replace("_", " ").split())


_ALIASES: dict[str, list[tuple[str, str]]] = {}
for _table in TABLES.values():
    for _column in _table.columns:
        for _alias in _column.aliases:
            _ALIASES.setdefault(fold(_alias), []).append((_table.name, _column.name))


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table under its name: the node that makes it, its columns, its number of rows."""

    name: str
    node: str
    columns: tuple[Column, ...]
    rows: int

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def numbers(self) -> list[Column]:
        return [column for column in self.columns if column.is_number]

    @property
    def texts(self) -> list[Column]:
        return [column for column in self.columns if column.is_text]

    @property
    def has_time(self) -> bool:
        return any(column.is_time for column in self.columns)

    def column(self, said: str) -> Column:
        """Find the column of that name, or of one that people use for it.

        Raises:
            ToolFailure: not_found, naming the nearest column.
        """
        found = self.find(said)
        if found is None:
            raise self.lacks(said)
        return found

    def chosen(self, said: str | None) -> Sequence[Column]:
        """Give the column that is named, or all."""
        return [self.column(said)] if said else self.columns

    def find(self, said: str) -> Column | None:
        names = {column.name.casefold(): column for column in self.columns}
        key = fold(said)
        aliases = sorted(_ALIASES.get(key, ()), key=lambda place: place[0] != self.name)
        return next(
            (names[name] for name in (key, *(column for _, column in aliases)) if name in names), None
        )

    def lacks(self, said: str) -> ToolFailure:
        return not_found(f"The table {self.name} has no column {said!r}." + suggest(said, self.names))

    def number(self, said: str) -> Column:
        """Find a column of numbers.

        Raises:
            ToolFailure: not_found, or validation_error when it holds something else.
        """
        found = self.column(said)
        if found.is_number:
            return found
        others = ", ".join(column.name for column in self.numbers)
        raise invalid(f"{found.name} holds no numbers. Columns of numbers are {others}.")

    @property
    def time(self) -> Column:
        """The first column of dates.

        Raises:
            ToolFailure: validation_error when there is none.
        """
        for column in self.columns:
            if column.is_time:
                return column
        raise invalid(f"{self.name} has no column of dates.")


def base_sheets() -> dict[str, Sheet]:
    tables = TABLES.values()
    return {table.name: Sheet(table.name, BASE + table.name, table.columns, table.rows) for table in tables}


def suggest(said: str, names: Iterable[str], *, others: bool = True, near: float = NEAR) -> str:
    """Name the nearest of the known names, and the `others` when none is near."""
    known = list(names)
    best = process.extractOne(fold(said), known, scorer=fuzz.ratio, score_cutoff=near)
    if best is not None:
        return f" Did you mean {best[0]}?"
    return f" There are {', '.join(known[:12])}." if known and others else ""
