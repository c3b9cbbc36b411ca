"""From rows to records. No statement is run here."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from sqlalchemy import Row

from orchestrator.turns.turn import IfBusy, SessionRecord, TurnInput, TurnKind, TurnRecord, TurnStatus
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId, UserId


def new_turn_id() -> TurnId:
    """An identifier that begins with its time: neighbours in time are neighbours in the index."""
    return TurnId(f"turn_{time.time_ns() // 1_000_000:012x}{uuid4().hex[:20]}")


def turn_record(row: Row[Any]) -> TurnRecord:
    return TurnRecord(
        turn_id=TurnId(row.turn_id),
        session_id=SessionId(row.session_id),
        tenant_id=TenantId(row.tenant_id),
        seq=row.seq,
        status=TurnStatus(row.status),
        input=TurnInput(text=row.text, action=row.action, form=row.form, kind=TurnKind(row.kind)),
        attempts=row.attempts,
        epoch=None if row.epoch is None else Epoch(row.epoch),
        result=row.result,
        error=row.error,
        accepted_at=row.accepted_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def session_record(row: Row[Any], state: JsonObject | None = None) -> SessionRecord:
    """From a row of `sessions` joined with its lane."""
    return SessionRecord(
        session_id=SessionId(row.session_id),
        tenant_id=TenantId(row.tenant_id),
        user_id=None if row.user_id is None else UserId(row.user_id),
        domain=row.domain,
        epoch=Epoch(row.epoch),
        closed=row.closed,
        pending=row.pending,
        created_at=row.created_at,
        updated_at=row.updated_at,
        if_busy=IfBusy(row.if_busy),
        state=state,
    )
