"""From rows to records. No statement is run here."""

from __future__ import annotations

import time
from functools import cache
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import TypeAdapter
from sqlalchemy import Row

from orchestrator.turns.turn import TurnInput, TurnRecord
from orchestrator.types import TurnId

_Record = TypeVar("_Record")


def new_turn_id() -> TurnId:
    """An identifier that begins with its time: neighbours in time are neighbours in the index."""
    return TurnId(f"turn_{time.time_ns() // 1_000_000:012x}{uuid4().hex[:20]}")


@cache
def _reader(kind: type[_Record]) -> TypeAdapter[_Record]:
    return TypeAdapter(kind)


def record_of(kind: type[_Record], row: Row[Any], /, **given: Any) -> _Record:
    """A dataclass from the columns that are named as its fields; `given`: those that have other values."""
    stored = row._asdict()  # pyright: ignore[reportPrivateUsage]  # not to clash with columns
    return _reader(kind).validate_python(stored | given)


def turn_record(row: Row[Any]) -> TurnRecord:
    return record_of(
        TurnRecord,
        row,
        input=record_of(TurnInput, row),
        cancel_requested=row.cancel_requested_at is not None,
    )
