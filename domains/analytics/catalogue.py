"""The base tables: files, columns, types and aliases, as declared in catalogue.yaml.

The data come from the package `vega_datasets` (MIT). Its files are read; the package is never imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import yaml

from parley import EntityValue

PACKAGE = "vega_datasets"
_TYPES = {"text": "VARCHAR", "number": "DOUBLE", "whole": "BIGINT", "date": "DATE", "moment": "TIMESTAMP"}
_NUMBERS = ("BIGINT", "INTEGER", "DOUBLE", "FLOAT", "DECIMAL", "HUGEINT", "SMALLINT", "TINYINT", "UBIGINT")


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its DuckDB type."""

    name: str
    type: str

    @property
    def kind(self) -> str:
        """Return the type in plain words."""
        if self.type.startswith(_NUMBERS):
            return "number"
        if self.type.startswith(("DATE", "TIMESTAMP")):
            return "date"
        return "yes or no" if self.type == "BOOLEAN" else "text"

    @property
    def is_number(self) -> bool:
        return self.kind == "number"

    @property
    def is_time(self) -> bool:
        return self.kind == "date"

    @property
    def is_text(self) -> bool:
        return self.kind == "text"


@dataclass(frozen=True, slots=True)
class BaseColumn(Column):
    """A column of a base table. `source`: its name in the file, or an expression over the file's columns."""

    source: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BaseTable:
    """A base table. `file`: path within the data package. `rows`: number of rows."""

    name: str
    title: str
    file: str
    rows: int
    columns: tuple[BaseColumn, ...]
    aliases: tuple[str, ...]

    @property
    def path(self) -> str:
        """Return the location of the file, found without importing the package, which would import pandas."""
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
VALUES: Mapping[str, list[str]] = _declared["values"]
"""The values of columns with few of them, by `table.column`."""


def tables_with(columns: Iterable[str]) -> list[str]:
    """Return the base tables that have all of these columns."""
    wanted = set(columns)
    return [table.name for table in TABLES.values() if wanted <= {column.name for column in table.columns}]


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
    """Provide the entity `column`: each name once, with its aliases from every table."""
    found: dict[str, list[str]] = {}
    for table in TABLES.values():
        for column in table.columns:
            found.setdefault(column.name, []).extend((*column.aliases, column.name.replace("_", " ")))
    return [EntityValue(name, name, tuple(dict.fromkeys(names)), {}) for name, names in found.items()]
