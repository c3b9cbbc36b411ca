"""From rows to records. No statement is run here."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import Row

from orchestrator.turns.event import Event
from orchestrator.turns.turn import IfBusy, SessionRecord, TurnInput, TurnKind, TurnRecord, TurnStatus
from orchestrator.types import JsonObject, TurnId

_Record = TypeVar("_Record")


def new_turn_id() -> TurnId:
    """An identifier that begins with its time: neighbours in time are neighbours in the index."""
    return TurnId(f"turn_{time.time_ns() // 1_000_000:012x}{uuid4().hex[:20]}")


def record_of(kind: type[_Record], row: Row[Any], /, **converted: Any) -> _Record:
    """A dataclass from the columns that are named as its fields; `converted`: those that are not as stored."""
    stored = row._asdict()  # pyright: ignore[reportPrivateUsage]  # not to clash with columns
    names = {field.name for field in fields(kind)} & stored.keys() - converted.keys()  # pyright: ignore[reportArgumentType]
    return kind(**{name: stored[name] for name in names}, **converted)


def turn_record(row: Row[Any]) -> TurnRecord:
    given = TurnInput(text=row.text, action=row.action, form=row.form, kind=TurnKind(row.kind))
    return record_of(TurnRecord, row, status=TurnStatus(row.status), input=given)


def session_record(row: Row[Any], state: JsonObject | None = None) -> SessionRecord:
    """From a row of `sessions` joined with its lane."""
    return record_of(SessionRecord, row, if_busy=IfBusy(row.if_busy), state=state)


def event_of(row: Row[Any]) -> Event:
    return record_of(Event, row)
