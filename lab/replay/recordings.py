"""Recorded turns, with all data that a replay needs to repeat their decisions, read from PostgreSQL."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Row, desc, select

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.tables import (
    any_of,
    approvals,
    effects,
    internal_runs,
    journal,
    lanes,
    record_of,
    sessions,
    state_history,
    turns,
)
from orchestrator.dialogue.storage.serialization import rebuild
from orchestrator.ports.memory.context import GATHER_CONTEXT
from orchestrator.ports.runs.status import RunStatus
from orchestrator.telemetry import SignalType
from orchestrator.turns.approval import ApprovalRecord
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.step import Step, StepStatus
from orchestrator.turns.turn import TurnInput, TurnKind, TurnStatus
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId, UserId


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A recorded turn.

    Args:
        epoch: the epoch that the turn created.
        state: the state before the turn, or None in a new session.
        began: the start of the last attempt, in Unix seconds.
        waited_s: seconds between acceptance and `began`.
    """

    turn_id: TurnId
    seq: int
    epoch: Epoch
    input: TurnInput
    state: bytes | None
    began: float
    ended: datetime
    result: JsonObject
    signals: list[JsonObject]
    steps: tuple[Step, ...]
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A recorded run that gathered context for a turn. `found`: its findings, or None if the run did not succeed."""

    turn_id: str
    ended: datetime | None
    found: list[JsonObject] | None


@dataclass(slots=True)
class RecordedSession:
    """A session's replayable turns, in order.

    Args:
        root: the root of the fork tree, or None if the session isn't a fork.
        left_out: the number of turns that can't be replayed, by reason.
    """

    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId | None
    domain: str
    root: SessionId | None = None
    turns: list[RecordedTurn] = field(default_factory=list[RecordedTurn])
    ledger: list[LedgerEntry] = field(default_factory=list[LedgerEntry])
    approvals: dict[str, ApprovalRecord] = field(default_factory=dict[str, ApprovalRecord])
    runs: Mapping[str, RecordedRun] = field(default_factory=dict[str, RecordedRun])
    left_out: Counter[str] = field(default_factory=Counter[str])


STOPPED = "stopped before a decision"
NO_STATE = "whose earlier state was pruned"
NO_JOURNAL = "whose journal was pruned"


class PostgresRecordings:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(
        self, named: Sequence[SessionId], *, domain: str | None, tenant: str | None, last: int
    ) -> dict[SessionId, str]:
        """Return sessions with their domains, most recently active first.

        `named`: the sessions to return. If empty, return the `last` most recently active sessions that have
        committed turns and no unfinished turns. `domain`, `tenant`: return only this domain's and this
        tenant's sessions. Default: all domains and tenants.
        """
        query = select(sessions.c.session_id, sessions.c.domain).join(
            lanes, lanes.c.session_id == sessions.c.session_id
        )
        if named:
            query = query.where(sessions.c.session_id.in_(named))
        else:
            query = query.where(lanes.c.pending == 0, lanes.c.epoch > 0).limit(last)
        if domain is not None:
            query = query.where(sessions.c.domain == domain)
        if tenant is not None:
            query = query.where(sessions.c.tenant_id == tenant)
        rows = await self._database.read_all(query.order_by(desc(lanes.c.updated_at)))
        return {SessionId(row.session_id): row.domain for row in rows}

    async def read(self, wanted: Sequence[SessionId]) -> list[RecordedSession]:
        """Return the recordings of the sessions in `wanted`. Omit missing sessions."""
        kept, named = turns.c, any_of(wanted)
        async with self._database.transaction() as connection:

            async def rows(query: Any) -> Sequence[Row[Any]]:
                return (await connection.execute(query)).all()

            def of_them(table: Any) -> Any:
                return select(table).where(table.c.session_id == named)

            found = {
                row.session_id: RecordedSession(
                    row.session_id, row.tenant_id, row.user_id, row.domain, row.root
                )
                for row in await rows(of_them(sessions))
            }
            ended = await rows(of_them(turns).where(kept.finished_at.is_not(None)).order_by(kept.epoch))
            steps = await rows(
                select(journal)
                .where(journal.c.turn_id == any_of([row.turn_id for row in ended]))
                .order_by(journal.c.at)
            )
            history = await rows(of_them(state_history).order_by(state_history.c.epoch))
            looked = await rows(of_them(internal_runs).where(internal_runs.c.flow == GATHER_CONTEXT))
            for row in await rows(of_them(effects).order_by(effects.c.at)):
                found[row.session_id].ledger.append(record_of(LedgerEntry, row))
            for row in await rows(of_them(approvals)):
                found[row.session_id].approvals[row.approval_id] = record_of(ApprovalRecord, row)
        of_session, of_turn = _by(history, "session_id"), _by(steps, "turn_id")
        ended_in, runs_of = _by(ended, "session_id"), _by(looked, "session_id")
        for session in found.values():
            session.runs = {row.run_id: _run(row) for row in runs_of[session.session_id]}
            _add_turns(session, ended_in[session.session_id], of_session[session.session_id], of_turn)
        return [found[one] for one in wanted if one in found]


def _by(rows: Iterable[Row[Any]], column: str) -> defaultdict[str, list[Row[Any]]]:
    grouped: defaultdict[str, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        grouped[getattr(row, column)].append(row)
    return grouped


def _run(row: Row[Any]) -> RecordedRun:
    found = row.closing["found"] if row.status == RunStatus.DONE.value and row.closing else None
    return RecordedRun(row.parameters["turn_id"], row.finished_at, found)


def _add_turns(
    session: RecordedSession,
    ended: list[Row[Any]],
    history: list[Row[Any]],
    steps: defaultdict[str, list[Row[Any]]],
) -> None:
    """Add the turns that can be replayed, with the states before them. Count the others by reason in `left_out`.

    The states are rebuilt in one pass over the session's history.
    """
    wanted = {row.epoch - 1 for row in ended if row.epoch}
    states: dict[int, bytes | None] = {0: None}
    body: JsonObject | None = None
    for row in history:
        body = row.snapshot or (body and rebuild(body, [row.diff]))
        if body is not None and row.epoch in wanted:
            states[row.epoch] = orjson.dumps(body)
    for row in ended:
        taken = tuple(
            Step(one.key, one.kind, StepStatus(one.status), one.request_hash, one.result)
            for one in steps[row.turn_id]
        )
        if row.status != TurnStatus.DONE.value or row.epoch is None or row.result is None:
            session.left_out[STOPPED] += 1
        elif row.epoch - 1 not in states:
            session.left_out[NO_STATE] += 1
        elif not taken and _called(row.result, row.signals or []):
            session.left_out[NO_JOURNAL] += 1
        else:
            session.turns.append(_turn(row, states[row.epoch - 1], taken))


def _called(result: JsonObject, signals: list[JsonObject]) -> bool:
    """Return whether the turn made a call that the journal records."""
    answered = (
        one["payload"].get("outcome") == "answered"
        for one in signals
        if one["type"] == SignalType.MODEL_CALL.value
    )
    return any(tool["status"] == "ok" for tool in result.get("tools", ())) or any(answered)


def _turn(row: Row[Any], state: bytes | None, steps: tuple[Step, ...]) -> RecordedTurn:
    """Create a recorded turn.

    The start of its last attempt is computed from the turn's end and the duration in its result.
    """
    lasted_ms = row.result.get("duration_ms")
    began = (
        row.started_at.timestamp() if lasted_ms is None else row.finished_at.timestamp() - lasted_ms / 1000
    )
    return RecordedTurn(
        turn_id=row.turn_id,
        seq=row.seq,
        epoch=Epoch(row.epoch),
        input=TurnInput(text=row.text, action=row.action, form=row.form, kind=TurnKind(row.kind)),
        state=state,
        began=began,
        ended=row.finished_at,
        result=row.result,
        signals=row.signals or [],
        steps=steps,
        waited_s=began - row.accepted_at.timestamp(),
    )
