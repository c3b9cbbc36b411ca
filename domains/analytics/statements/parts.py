"""Provide the parts of statements: quoted names, values as parameters, columns with their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite

from orchestrator import FailureCategory, Json, JsonObject, ToolFailure


def words(text: str) -> frozenset[str]:
    """Read a list of words."""
    return frozenset(text.split())


_NUMERIC = words("BIGINT INTEGER DOUBLE FLOAT DECIMAL HUGEINT SMALLINT TINYINT UBIGINT NUMBER")
_TEMPORAL = words("DATE TIMESTAMP DATETIME")


@dataclass(frozen=True, slots=True)
class Column:
    """`type`: as DuckDB calls it."""

    name: str
    type: str

    @property
    def kind(self) -> str:
        """What people call its type."""
        known = self.type.upper()
        if known.startswith(tuple(_NUMERIC)):
            return "number"
        if known.startswith(tuple(_TEMPORAL)):
            return "date"
        return "yes or no" if known == "BOOLEAN" else "text"

    @property
    def is_number(self) -> bool:
        return self.kind == "number"

    @property
    def is_time(self) -> bool:
        return self.kind == "date"

    @property
    def is_text(self) -> bool:
        return self.kind == "text"


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


def quote(*names: str) -> str:
    """Write names as identifiers that can be nothing else, with commas between them."""
    return ", ".join('"' + name.replace('"', '""').replace("\0", "") + '"' for name in names)


def to_json(value: object) -> Json:
    """Give a value of a row as JSON: days and moments as ISO text, no infinite numbers."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Decimal | float):
        return float(value) if isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes")
    return value.isoformat() if isinstance(value, date | time) else str(value)


def to_objects(columns: Sequence[Column], rows: Sequence[tuple[object, ...]]) -> list[JsonObject]:
    names = [column.name for column in columns]
    return [dict(zip(names, map(to_json, row), strict=True)) for row in rows]
