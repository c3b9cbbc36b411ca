"""Run DuckDB in this process: base tables are loaded once and locked, derived ones made from their recipes.

Nothing here is durable or shared between processes: every table can be made again from its recipe,
which the workspace keeps. Statements are built by this domain alone; users' values are parameters.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb

from domains.analytics.catalogue import TABLES, BaseTable
from domains.analytics.statements.parts import Column, invalid, quote
from domains.analytics.store.sheet import BASE
from orchestrator import FailureCategory, Json, ToolFailure

MOST_ROWS = 1_000_000
KEPT_CELLS = 20_000_000
"""Derived tables beyond this are dropped, the least recently used first; they can be made again."""
MEMORY = "512MB"
"""For all tables and statements of a process."""
LONGEST_S = 8.0
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a table is made: one statement over its inputs, which it calls ``in0``, ``in1`` …

    `inputs`: nodes, each a base table (``base:cars``) or another recipe.
    """

    node: str
    sql: str
    values: Mapping[str, Json]
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    columns: tuple[Column, ...]
    rows: list[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Kept:
    """A derived table that is at hand."""

    columns: tuple[Column, ...]
    rows: int

    @property
    def cells(self) -> int:
        return self.rows * len(self.columns)


Recipes = Mapping[str, Recipe]


class _TooLarge(ToolFailure):
    """There is not memory enough, as long as other tables are kept."""


@dataclass(slots=True)
class Engine:
    """One per process. Safe to call from several threads: each call has a cursor of its own."""

    longest_s: float = LONGEST_S
    _connection: duckdb.DuckDBPyConnection = field(init=False)
    _kept: OrderedDict[str, Kept] = field(default_factory=OrderedDict[str, Kept])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _making: dict[str, threading.Lock] = field(default_factory=dict[str, threading.Lock])

    def __post_init__(self) -> None:
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("CREATE SCHEMA base; CREATE SCHEMA made")
        for table in TABLES.values():
            self._load(table)
        self._connection.execute(f"SET memory_limit = '{MEMORY}'; {_LIMITS}")

    def _load(self, table: BaseTable) -> None:
        reader = "read_csv" if table.file.endswith(".csv") else "read_json"
        columns = ", ".join(
            f"CAST({_source_of(column.source)} AS {column.type}) AS {quote(column.name)}"
            for column in table.columns
        )
        self._connection.execute(
            f"CREATE TABLE base.{quote(table.name)} AS SELECT {columns} FROM {reader}($path)",  # noqa: S608
            {"path": table.path},
        )

    def make(self, node: str, recipes: Recipes) -> Kept:
        """Make a table, with all that it is made from, unless it is at hand; at most once at a time."""
        with self._lock:
            making = self._making.setdefault(node, threading.Lock())
        with making:
            with self._lock:
                kept = self._kept.get(node)
                if kept is not None:
                    self._kept.move_to_end(node)
            return kept or self._create(recipes[node], recipes)

    def run(
        self, sql: str, values: Mapping[str, Json], inputs: Sequence[str], recipes: Recipes | None = None
    ) -> Rows:
        """Ask one question of tables that it calls ``in0``, ``in1`` …

        Raises:
            ToolFailure: timeout, or validation_error when the data do not allow it.
        """
        return self._execute("", sql, values, inputs, recipes or {})

    def _execute(
        self, create: str, sql: str, values: Mapping[str, Json], inputs: Sequence[str], recipes: Recipes
    ) -> Rows:
        """Carry out a statement over tables; they are made again where they were dropped in between.

        A small table takes far more memory than its cells: where there is too little, all that is kept makes room.
        """
        for attempt in range(1, ATTEMPTS + 1):
            for node in inputs:
                if not node.startswith(BASE):
                    self.make(node, recipes)
            try:
                with self._cursor() as cursor:
                    cursor.execute(create + _with_inputs(inputs) + sql, dict(values))
                    columns = tuple(Column(str(one[0]), str(one[1])) for one in cursor.description or ())
                    return Rows(columns, cursor.fetchall())
            except _TooLarge:
                if attempt == ATTEMPTS or not self._keep_none():
                    raise
            except duckdb.CatalogException as error:
                if attempt == ATTEMPTS:
                    raise invalid(_say(error)) from error
        raise AssertionError

    def _create(self, recipe: Recipe, recipes: Recipes) -> Kept:
        place = _place(recipe.node)
        limited = f"SELECT * FROM ({recipe.sql}) LIMIT {MOST_ROWS + 1}"  # noqa: S608
        self._execute(f"CREATE OR REPLACE TABLE {place} AS ", limited, recipe.values, recipe.inputs, recipes)
        with self._cursor() as cursor:
            described = cursor.execute(f"SELECT * FROM {place} LIMIT 0").description or ()  # noqa: S608
            counted = cursor.execute(f"SELECT count(*) FROM {place}").fetchone()  # noqa: S608
            kept = Kept(
                tuple(Column(str(one[0]), str(one[1])) for one in described), int((counted or (0,))[0])
            )
            if kept.rows > MOST_ROWS:
                cursor.execute(f"DROP TABLE {place}")
                raise invalid(f"The result would have more than {MOST_ROWS:,} rows; please narrow it down.")
        self._keep(recipe.node, kept)
        return kept

    def _keep(self, node: str, kept: Kept) -> None:
        """Remember a table, and drop the oldest when there are too many; who reads one still sees it."""
        with self._lock:
            self._kept[node] = kept
            total = sum(one.cells for one in self._kept.values())
            while total > KEPT_CELLS and len(self._kept) > 1:
                oldest, old = self._kept.popitem(last=False)
                total -= old.cells
                self._drop(oldest)

    def _keep_none(self) -> bool:
        """Drop all derived tables; False when there is none."""
        with self._lock:
            dropped = list(self._kept)
            self._kept.clear()
            for node in dropped:
                self._drop(node)
        return bool(dropped)

    def _drop(self, node: str) -> None:
        self._connection.cursor().execute(f"DROP TABLE IF EXISTS {_place(node)}")

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a cursor whose statement is interrupted when it takes too long."""
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
            message = "That needs more memory than I may use; please narrow it down."
            raise _TooLarge(FailureCategory.VALIDATION_ERROR, message) from error
        except _OF_STATEMENTS as error:
            raise invalid(_say(error)) from error
        finally:
            alarm.cancel()
            cursor.close()


_OF_STATEMENTS = (
    duckdb.ConversionException,
    duckdb.BinderException,
    duckdb.OutOfRangeException,
    duckdb.ParserException,
    duckdb.InvalidInputException,
    duckdb.NotImplementedException,
)
"""Errors that are the statement's own."""
_LIMITS = """
SET threads = 2;
SET temp_directory = '';
SET autoinstall_known_extensions = false;
SET autoload_known_extensions = false;
SET enable_external_access = false;
SET lock_configuration = true;
"""


_engines: dict[int, Engine] = {}
_starting = threading.Lock()


def engine() -> Engine:
    """Give the engine of this process, made when it is first needed.

    DuckDB's threads do not survive a fork: a child loads its own, and leaves its parent's alone.
    """
    with _starting:
        if os.getpid() not in _engines:
            _engines[os.getpid()] = Engine()
        return _engines[os.getpid()]


def _source_of(source: str) -> str:
    """Write a column of the file by its name, or an expression over them."""
    return quote(source) if source.isidentifier() else source


def _place(node: str) -> str:
    """Say where a table is: schema and quoted name."""
    return f"base.{quote(node.removeprefix(BASE))}" if node.startswith(BASE) else f"made.{quote(node)}"


def _with_inputs(inputs: Sequence[str]) -> str:
    named = ", ".join(f"in{index} AS (SELECT * FROM {_place(node)})" for index, node in enumerate(inputs))  # noqa: S608
    return f"WITH {named} " if named else ""


def _say(error: duckdb.Error) -> str:
    """Give the first sentence of what DuckDB says, without its class and position."""
    text = str(error).partition("\n")[0].partition(": ")[2] or str(error)
    return f"The data do not allow that: {text.strip()[:200]}"
