"""From rows to records. No statement is run here."""

import time
from functools import cache
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import TypeAdapter
from sqlalchemy import Row

from orchestrator.errors import NotFound
from orchestrator.turns.turn import TurnInput, TurnRecord
from orchestrator.types import JsonObject, TurnId

_Record = TypeVar("_Record")
_Found = TypeVar("_Found")


def new_turn_id() -> TurnId:
    """An identifier that begins with its time: neighbours in time are neighbours in the index."""
    return TurnId(f"turn_{time.time_ns() // 1_000_000:012x}{uuid4().hex[:20]}")


@cache
def _reader(kind: type[_Record]) -> TypeAdapter[_Record]:
    return TypeAdapter(kind)


def record_of(kind: type[_Record], row: Row[Any], /, **given: Any) -> _Record:
    """A dataclass from the columns that are named as its fields; `given`: those that have other values."""
    return _reader(kind).validate_python(_members(row) | given)


def row_object(row: Row[Any]) -> JsonObject:
    """A row as JSON, with its time written out."""
    return {**_members(row), "at": row.at.isoformat()}


def _members(row: Row[Any]) -> JsonObject:
    return row._asdict()  # pyright: ignore[reportPrivateUsage]  # not to clash with columns


def required(found: _Found | None, kind: str, name: str) -> _Found:
    """The row that was asked for. Raises NotFound when there is none."""
    if found is None:
        raise NotFound(kind, name)
    return found


def turn_record(row: Row[Any]) -> TurnRecord:
    return record_of(
        TurnRecord,
        row,
        input=record_of(TurnInput, row),
        cancel_requested=row.cancel_requested_at is not None,
    )
