"""DuckDB in this process: base tables loaded once and locked, derived ones made from their recipes.

Nothing here is durable or shared between processes: every table can be made again from its recipe,
which the workspace keeps. Statements are built by this domain alone; users' values are parameters.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import duckdb

from domains.analytics.catalogue import TABLES, BaseTable
from domains.analytics.statements.parts import Column, quote
from domains.analytics.store.sheet import BASE
from orchestrator.domain.services import FailureCategory, ToolFailure
from orchestrator.types import Json

MOST_ROWS = 1_000_000
KEPT_CELLS = 20_000_000
"""Derived tables beyond this are dropped, the least recently used first; they can be made again."""
LONGEST_S = 8.0


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


@dataclass(slots=True)
class _Kept:
    cells: int
    columns: tuple[Column, ...]
    rows: int
    users: int = 0


@dataclass(slots=True)
class Engine:
    """One per process. Safe to call from several threads: each call has a cursor of its own."""

    longest_s: float = LONGEST_S
    _connection: duckdb.DuckDBPyConnection = field(init=False)
    _kept: OrderedDict[str, _Kept] = field(default_factory=OrderedDict[str, _Kept])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _making: dict[str, threading.Lock] = field(default_factory=dict[str, threading.Lock])

    def __post_init__(self) -> None:
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("CREATE SCHEMA base; CREATE SCHEMA made")
        for table in TABLES.values():
            self._load(table)
        for setting in _LIMITS:
            self._connection.execute(setting)

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

    def make(self, node: str, recipes: Mapping[str, Recipe]) -> tuple[tuple[Column, ...], int]:
        """Make a table, with all that it is made from, unless it is at hand; gives columns and rows."""
        with self._held([node], recipes):
            kept = self._kept[node]
            return kept.columns, kept.rows

    def run(
        self,
        sql: str,
        values: Mapping[str, Json],
        inputs: Sequence[str],
        recipes: Mapping[str, Recipe] | None = None,
    ) -> Rows:
        """Ask one question of tables that it calls ``in0``, ``in1`` …

        Raises:
            ToolFailure: timeout, or validation_error when the data do not allow it.
        """
        with self._held(inputs, recipes or {}), self._cursor() as cursor:
            cursor.execute(_with_inputs(inputs) + sql, dict(values))
            columns = tuple(Column(str(item[0]), str(item[1])) for item in cursor.description or ())
            return Rows(columns, cursor.fetchall())

    @contextmanager
    def _held(self, nodes: Sequence[str], recipes: Mapping[str, Recipe]) -> Iterator[None]:
        """Have tables at hand, made if need be, and keep them from being dropped while they are read."""
        with ExitStack() as stack:
            for node in nodes:
                if not node.startswith(BASE):
                    self._hold(node, recipes)
                    stack.callback(self._let_go, node)
            yield

    def _hold(self, node: str, recipes: Mapping[str, Recipe]) -> None:
        """Make a table at most once at a time. Locks stay: one that is dropped could be held by two."""
        with self._lock:
            making = self._making.setdefault(node, threading.Lock())
        with making:
            if not self._take(node):
                recipe = recipes[node]
                with self._held(recipe.inputs, recipes):
                    self._create(recipe)

    def _take(self, node: str) -> bool:
        with self._lock:
            kept = self._kept.get(node)
            if kept is None:
                return False
            kept.users += 1
            self._kept.move_to_end(node)
            return True

    def _let_go(self, node: str) -> None:
        with self._lock:
            self._kept[node].users -= 1

    def _create(self, recipe: Recipe) -> None:
        name = _place(recipe.node)
        limited = f"SELECT * FROM ({recipe.sql}) LIMIT {MOST_ROWS + 1}"  # noqa: S608
        statement = f"CREATE OR REPLACE TABLE {name} AS {_with_inputs(recipe.inputs)}{limited}"
        with self._cursor() as cursor:
            cursor.execute(statement, dict(recipe.values))
            described = cursor.execute(f"SELECT * FROM {name} LIMIT 0").description or ()  # noqa: S608
            counted = cursor.execute(f"SELECT count(*) FROM {name}").fetchone()  # noqa: S608
            rows = int(counted[0]) if counted else 0
            if rows > MOST_ROWS:
                cursor.execute(f"DROP TABLE {name}")
                message = f"The result would have more than {MOST_ROWS:,} rows; please narrow it down."
                raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        columns = tuple(Column(str(item[0]), str(item[1])) for item in described)
        self._keep(recipe.node, _Kept(rows * len(columns), columns, rows, users=1))

    def _keep(self, node: str, kept: _Kept) -> None:
        """Remember a table and drop the oldest that nobody uses when there are too many."""
        with self._lock:
            self._kept[node] = kept
            total = sum(one.cells for one in self._kept.values())
            leaving = [one for one, old in self._kept.items() if old.users == 0 and one != node]
            for one in leaving:
                if total <= KEPT_CELLS:
                    break
                total -= self._kept.pop(one).cells
                self._connection.cursor().execute(f"DROP TABLE IF EXISTS {_place(one)}")

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor whose statement is interrupted when it takes too long."""
        cursor = self._connection.cursor()
        alarm = threading.Timer(self.longest_s, cursor.interrupt)
        alarm.daemon = True
        alarm.start()
        try:
            yield cursor
        except duckdb.InterruptException as error:
            message = "That took too long; please narrow it down."
            raise ToolFailure(FailureCategory.TIMEOUT, message) from error
        except (duckdb.ConversionException, duckdb.BinderException, duckdb.OutOfRangeException) as error:
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, _say(error)) from error
        except duckdb.OutOfMemoryException as error:
            message = "That needs more memory than I may use; please narrow it down."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message) from error
        finally:
            alarm.cancel()
            cursor.close()


_LIMITS = (
    "SET threads = 2",
    "SET memory_limit = '512MB'",
    "SET temp_directory = ''",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


_engines: dict[int, Engine] = {}
_starting = threading.Lock()


def engine() -> Engine:
    """The engine of this process, made when it is first needed.

    DuckDB's threads do not survive a fork: a child loads its own, and leaves its parent's alone.
    """
    with _starting:
        if os.getpid() not in _engines:
            _engines[os.getpid()] = Engine()
        return _engines[os.getpid()]


def _source_of(source: str) -> str:
    """A column of the file by its name, or an expression over them."""
    return quote(source) if source.isidentifier() else source


def _place(node: str) -> str:
    """Where a table is: schema and quoted name."""
    return f"base.{quote(node.removeprefix(BASE))}" if node.startswith(BASE) else f"made.{quote(node)}"


def _with_inputs(inputs: Sequence[str]) -> str:
    named = ", ".join(f"in{index} AS (SELECT * FROM {_place(node)})" for index, node in enumerate(inputs))  # noqa: S608
    return f"WITH {named} " if named else ""


def _say(error: duckdb.Error) -> str:
    """The first sentence of what DuckDB says, without its class and position."""
    text = str(error).partition("\n")[0].partition(": ")[2] or str(error)
    return f"The data do not allow that: {text.strip()[:200]}"
