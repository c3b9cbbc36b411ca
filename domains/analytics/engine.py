from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite

import duckdb

from domains.analytics.catalogue import TABLES, BaseTable, Column
from parley import FailureCategory, Json, JsonObject, ToolFailure

MEMORY = "512MB"
LONGEST_S = 8.0
_LIMITS = """
SET threads = 1;
SET temp_directory = '';
SET autoinstall_known_extensions = false;
SET autoload_known_extensions = false;
SET enable_external_access = false;
SET lock_configuration = true;
"""
_ERRORS_OF_STATEMENTS = (
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.BinderException,
    duckdb.OutOfRangeException,
    duckdb.ParserException,
    duckdb.InvalidInputException,
    duckdb.NotImplementedException,
    duckdb.PermissionException,
)


@dataclass(frozen=True, slots=True)
class Rows:
    columns: tuple[Column, ...]
    rows: list[tuple[object, ...]]

    def to_objects(self) -> list[JsonObject]:
        names = [column.name for column in self.columns]
        return [dict(zip(names, map(to_json, row), strict=True)) for row in self.rows]


@dataclass(slots=True)
class Engine:
    """The database of this process. Each query uses a separate cursor, so the engine is thread-safe.

    `longest_s`: time limit for one query, in seconds.
    """

    longest_s: float = LONGEST_S
    _connection: duckdb.DuckDBPyConnection = field(init=False)

    def __post_init__(self) -> None:
        self._connection = duckdb.connect(":memory:")
        for table in TABLES.values():
            self._load(table)
        self._connection.execute(f"SET memory_limit = '{MEMORY}'; {_LIMITS}")

    def _load(self, table: BaseTable) -> None:
        reader = "read_csv" if table.file.endswith(".csv") else "read_json"
        columns = ", ".join(
            f"CAST({quote(column.source) if column.source.isidentifier() else column.source} AS {column.type}) "
            f"AS {quote(column.name)}"
            for column in table.columns
        )
        self._connection.execute(
            f"CREATE TABLE {quote(table.name)} AS SELECT {columns} FROM {reader}($path)",  # noqa: S608
            {"path": table.path},
        )

    def run(self, sql: str) -> Rows:
        """Run a query.

        Raises:
            ToolFailure: timeout after `longest_s` seconds, or validation_error with the database's message.
        """
        with self._cursor() as cursor:
            cursor.execute(sql)
            columns = tuple(Column(str(one[0]), str(one[1])) for one in cursor.description or ())
            return Rows(columns, cursor.fetchall())

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a cursor whose statement is interrupted after `longest_s` seconds."""
        cursor = self._connection.cursor()
        alarm = threading.Timer(self.longest_s, cursor.interrupt)
        alarm.daemon = True
        alarm.start()
        try:
            yield cursor
        except duckdb.InterruptException as error:
            message = "That took too long; please narrow it down."
            raise ToolFailure(FailureCategory.TIMEOUT, message) from error
        except duckdb.OutOfMemoryException as error:
            raise invalid("That needs more memory than I'm allowed to use; please narrow it down.") from error
        except _ERRORS_OF_STATEMENTS as error:
            raise invalid(f"The database reports: {_first_sentence(error)}") from error
        finally:
            alarm.cancel()
            cursor.close()


_engines: dict[int, Engine] = {}
_starting = threading.Lock()


def engine() -> Engine:
    """Return this process's engine, created on first use.

    DuckDB's threads do not survive a fork, so each child process creates its own engine.
    """
    with _starting:
        if os.getpid() not in _engines:
            _engines[os.getpid()] = Engine()
        return _engines[os.getpid()]


def invalid(message: str) -> ToolFailure:
    return ToolFailure(FailureCategory.VALIDATION_ERROR, message)


def not_found(message: str) -> ToolFailure:
    return ToolFailure(FailureCategory.NOT_FOUND, message)


def quote(*names: str) -> str:
    """Return the names as quoted identifiers, separated by commas."""
    return ", ".join('"' + name.replace('"', '""').replace("\0", "") + '"' for name in names)


def to_json(value: object) -> Json:
    """Convert a cell to JSON. Dates become ISO 8601 text; infinity and NaN become None."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Decimal | float):
        return float(value) if isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes")
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _first_sentence(error: duckdb.Error) -> str:
    """Return the first line of DuckDB's message without the error class, truncated to 200 characters."""
    text = str(error).partition("\n")[0].partition(": ")[2] or str(error)
    return text.strip()[:200]
