"""Know the base tables: their files, columns and types, what people call them, and values that people name.

They are declared in catalogue.yaml. The data come with the package `vega_datasets` (MIT); its files are read,
never imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import yaml

from domains.analytics.statements.parts import Column
from orchestrator import EntityValue

PACKAGE = "vega_datasets"
_TYPES = {"text": "VARCHAR", "number": "DOUBLE", "whole": "BIGINT", "date": "DATE", "moment": "TIMESTAMP"}
PERIODS = frozenset({"year", "month"})
"""What any table with dates can be grouped by."""


@dataclass(frozen=True, slots=True)
class BaseColumn(Column):
    """`source`: its name in the file, or an expression over the file's columns."""

    source: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BaseTable:
    """`rows`: how many there are. `file`: within the data package."""

    name: str
    title: str
    file: str
    rows: int
    columns: tuple[BaseColumn, ...]
    aliases: tuple[str, ...]

    @property
    def path(self) -> str:
        """Where its file is, found without importing the package, which would import pandas."""
        return str(distribution(PACKAGE).locate_file(f"{PACKAGE}/_data/{self.file}"))


_declared = yaml.load(
    Path(__file__).with_name("catalogue.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)

TABLES: Mapping[str, BaseTable] = {
    name: BaseTable(
        name,
        table["title"],
        table["file"],
        table["rows"],
        tuple(
            BaseColumn(
                column, _TYPES[entry["type"]], entry.get("source", column), tuple(entry.get("aliases", ()))
            )
            for column, entry in table["columns"].items()
        ),
        tuple(table["aliases"]),
    )
    for name, table in _declared["tables"].items()
}
VALUES: Mapping[str, Mapping[str, list[str]]] = _declared["values"]
"""The values that people name, by `table.column`; with what else people call each."""

EXTREMES: Mapping[str, str] = {
    word: f"{extreme} {column}"
    for extreme, columns in _declared["extremes"].items()
    for column, words in columns.items()
    for word in words
}
"""What adjectives say of a column: the “heaviest” has the “highest weight”."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column that stands in for something that no table has. `words`: for the user."""

    table: str
    column: str
    words: str


_NEAREST: Mapping[str, Measure] = {
    word: Measure(entry["table"], entry["column"], entry["words"])
    for entry in _declared["nearest_measures"]
    for word in entry["instead_of"]
}
MEASURES_BY_MONTH: tuple[str, ...] = tuple(_declared["measures_by_month"])
"""What can be followed by month, for people who ask about something else."""


def nearest_measure(said: str) -> Measure | None:
    """Find what comes nearest to something that no table has, if anything does."""
    return _NEAREST.get(" ".join(said.casefold().replace("_", " ").split()))


def tables_with(names: list[str]) -> list[str]:
    """Find the base tables that have all of these columns and values; “year” and “month” suit any with dates."""
    return [table.name for table in TABLES.values() if all(_has(table, name) for name in names)]


def _has(table: BaseTable, name: str) -> bool:
    if any(name == column.name for column in table.columns):
        return True
    if name in PERIODS:
        return any(column.is_time for column in table.columns)
    held = (values for place, values in VALUES.items() if place.startswith(f"{table.name}."))
    return any(name.casefold() == value.casefold() for values in held for value in values)


def tables() -> list[EntityValue]:
    """Provide the entity `table`."""
    return [
        EntityValue(
            table.name,
            table.name,
            (*table.aliases, f"{table.name} table"),
            {"rows": table.rows, "columns": [column.name for column in table.columns]},
        )
        for table in TABLES.values()
    ]


def columns() -> list[EntityValue]:
    """Provide the entity `column`: every name once, with what it is called in any table."""
    found: dict[str, list[str]] = {}
    for table in TABLES.values():
        for column in table.columns:
            found.setdefault(column.name, []).extend((*column.aliases, column.name.replace("_", " ")))
    return [EntityValue(name, name, tuple(dict.fromkeys(names)), {}) for name, names in found.items()]


def groups() -> list[EntityValue]:
    """Provide the entity `group`: known values of text columns."""
    return [
        EntityValue(value, value, tuple(names), {"column": place})
        for place, values in VALUES.items()
        for value, names in values.items()
    ]
