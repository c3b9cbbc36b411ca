"""SQLAlchemy tables, and functions that create records from their rows.

The columns come from `schema/*.sql`, the only definition of each table. The hot path (submit, claim, commit)
uses `sql/*.sql` instead.
"""

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from importlib import resources
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import (
    JSON,
    REAL,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    Integer,
    MetaData,
    Row,
    Table,
    Text,
    cast,
    func,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from orchestrator.errors import NotFound
from orchestrator.types import JsonObject

_Record = TypeVar("_Record")

metadata = MetaData()

NOW = func.clock_timestamp()
"""The database's clock, which determines all leases and deadlines."""


def seconds(count: float) -> ColumnElement[Any]:
    return func.make_interval(0, 0, 0, 0, 0, 0, count)


_TABLE: Final = re.compile(r"^CREATE TABLE (\w+) \(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN: Final = re.compile(r"^    ([a-z_]+) +([a-z]+(?:\[\])?)([^\n-]*)", re.MULTILINE)
_TYPES: Final[dict[str, Callable[[], Any]]] = {
    "text": Text,
    "text[]": lambda: ARRAY(Text),
    "integer": Integer,
    "bigint": BigInteger,
    "real": REAL,
    "boolean": Boolean,
    "timestamptz": lambda: DateTime(timezone=True),
    "json": JSON,
    "jsonb": JSONB,
}
"""SQLAlchemy types by SQL type. Only statements in `sql/*.sql` use columns of other types."""


def _columns(body: str) -> Iterator[Column[Any]]:
    """Yield the columns whose types are in `_TYPES`.

    Nullable `json` columns store None as NULL. Other JSON columns store None as JSON null.
    """
    for name, kind, rest in _COLUMN.findall(body):
        if kind == "json" and "NOT NULL" not in rest:
            yield Column(name, JSON(none_as_null=True))
        elif kind in _TYPES:
            yield Column(name, _TYPES[kind]())


for _part in (resources.files("orchestrator.adapters.postgres") / "schema").iterdir():
    for _name, _body in _TABLE.findall(_part.read_text("utf-8")):
        Table(_name, metadata, *_columns(_body))

_tables = metadata.tables

api_keys = _tables["api_keys"]
approvals = _tables["approvals"]
effects = _tables["effects"]
events = _tables["events"]
feedback = _tables["feedback"]
flows_archive = _tables["flows_archive"]
forgotten_preferences = _tables["forgotten_preferences"]
frames = _tables["frames"]
internal_items = _tables["internal_items"]
internal_runs = _tables["internal_runs"]
journal = _tables["journal"]
lanes = _tables["lanes"]
plan_revisions = _tables["plan_revisions"]
plans = _tables["plans"]
preferences = _tables["preferences"]
records = _tables["records"]
scheduled_events = _tables["scheduled_events"]
scratchpad_entries = _tables["scratchpad_entries"]
sessions = _tables["sessions"]
state_history = _tables["state_history"]
states = _tables["states"]
turns = _tables["turns"]
utterances = _tables["utterances"]
webhook_feeds = _tables["webhook_feeds"]
webhook_secrets = _tables["webhook_secrets"]
webhooks = _tables["webhooks"]


@cache
def _reader(kind: type[_Record]) -> TypeAdapter[_Record]:
    return TypeAdapter(kind)


def record_of(kind: type[_Record], row: Row[Any], /, **given: Any) -> _Record:
    """Create a `kind` dataclass instance from a row's columns. `given`: values that override columns."""
    return _reader(kind).validate_python(_members(row) | given)


def row_object(row: Row[Any]) -> JsonObject:
    """Return a row as a JSON object, with its timestamp `at` as an ISO 8601 string."""
    return {**_members(row), "at": row.at.isoformat()}


def _members(row: Row[Any]) -> JsonObject:
    return row._asdict()  # pyright: ignore[reportPrivateUsage]  # not to clash with columns


def any_of(names: Collection[str]) -> ColumnElement[Any]:
    """Return an SQL `ANY` over the names, which are passed as one array argument."""
    return func.any(cast(list(names), ARRAY(Text)))


def required(found: _Record | None, kind: str, name: str) -> _Record:
    if found is None:
        raise NotFound(kind, name)
    return found
