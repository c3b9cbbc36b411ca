"""The base tables, as declared in catalogue.yaml.

The data files are in the package `vega_datasets` (MIT). The package itself is never imported, because it imports
pandas.
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
    name: str
    type: str

    @property
    def kind(self) -> str:
        """Return the type as users see it: number, date, yes or no, or text."""
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
    """A column of a base table. `source`: a column of the data file, or an SQL expression over its columns."""

    source: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BaseTable:
    """A base table. `file`: name of the data file in `PACKAGE`. `rows`: number of rows."""

    name: str
    title: str
    file: str
    rows: int
    columns: tuple[BaseColumn, ...]
    aliases: tuple[str, ...]

    @property
    def path(self) -> str:
        """Return the path of the data file, without importing the package."""
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
"""The distinct values of columns that have few distinct values, by ``table.column``."""


def tables_with(columns: Iterable[str]) -> list[str]:
    wanted = set(columns)
    return [table.name for table in TABLES.values() if wanted <= {column.name for column in table.columns}]


def tables() -> list[EntityValue]:
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
    """Return the values of the entity `column`.

    A column name that occurs in several tables is one value, with the aliases of all these columns.
    """
    found: dict[str, list[str]] = {}
    for table in TABLES.values():
        for column in table.columns:
            found.setdefault(column.name, []).extend((*column.aliases, column.name.replace("_", " ")))
    return [EntityValue(name, name, tuple(dict.fromkeys(names)), {}) for name, names in found.items()]
