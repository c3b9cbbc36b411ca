"""Provide the parts of statements: quoted names, values as parameters, columns with their types."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite

from orchestrator import FailureCategory, Json, JsonObject, ToolFailure

_NUMERIC = (
    "BIGINT",
    "INTEGER",
    "DOUBLE",
    "FLOAT",
    "DECIMAL",
    "HUGEINT",
    "SMALLINT",
    "TINYINT",
    "UBIGINT",
    "NUMBER",
)
_TEMPORAL = ("DATE", "TIMESTAMP", "DATETIME")


@dataclass(frozen=True, slots=True)
class Column:
    """`type`: as DuckDB calls it."""

    name: str
    type: str

    @property
    def is_number(self) -> bool:
        return self.type.upper().startswith(_NUMERIC)

    @property
    def is_time(self) -> bool:
        return self.type.upper().startswith(_TEMPORAL)

    @property
    def is_text(self) -> bool:
        return not self.is_number and not self.is_time and self.type.upper() != "BOOLEAN"

    @property
    def kind(self) -> str:
        """What people call its type."""
        if self.is_number:
            return "number"
        if self.is_time:
            return "date"
        return "yes or no" if self.type.upper() == "BOOLEAN" else "text"


@dataclass(slots=True)
class Values:
    """The values of a statement, each under a name of its own."""

    named: dict[str, Json] = field(default_factory=dict[str, Json])

    def add(self, value: Json) -> str:
        """Keep a value; gives what stands for it in the statement."""
        name = f"v{len(self.named)}"
        self.named[name] = value
        return f"${name}"


def invalid(message: str) -> ToolFailure:
    """Fail because of what was said."""
    return ToolFailure(FailureCategory.VALIDATION_ERROR, message)


def not_found(message: str) -> ToolFailure:
    """Fail because something is not there."""
    return ToolFailure(FailureCategory.NOT_FOUND, message)


def words(text: str) -> frozenset[str]:
    """Read a list of words."""
    return frozenset(text.split())


def quote(name: str) -> str:
    """Write a name as an identifier that can be nothing else."""
    return '"' + name.replace('"', '""').replace("\0", "") + '"'


def quote_all(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(quote(name) for name in names)


def to_json(value: object) -> Json:
    """Give a value of a row as JSON: days and moments as ISO text, no infinite numbers."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def to_objects(columns: tuple[Column, ...], rows: list[tuple[object, ...]]) -> list[JsonObject]:
    names = [column.name for column in columns]
    return [dict(zip(names, map(to_json, row), strict=True)) for row in rows]
