"""The lane on PostgreSQL: claim, commit and renewal are one merged statement each (RT-2, RT-3, RT-20).

What these statements cannot settle from their snapshot (attempts used up, a gap in `sequence`, a turn
that came in between) is settled under the lane's lock by `settle`.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from psycopg.rows import TupleRow

from orchestrator.adapters.postgres.pool import Database, translated
from orchestrator.adapters.postgres.settle import (
    Settled,
    fail_gap,
    find_commit,
    finish_merged,
    settle,
    steps_of,
)
from orchestrator.adapters.postgres.statements import Statement, statement
from orchestrator.adapters.postgres.turns.approvals import decide_approval
from orchestrator.adapters.postgres.turns.effects import adopt_effect, find_effect, mark_compensated
from orchestrator.adapters.postgres.workers import LOCK_CLASS, WorkerLiveness
from orchestrator.errors import LaneLost, Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Committed, Lease, TurnCommit, Work
from orchestrator.turns.step import Step
from orchestrator.turns.turn import TurnInput, TurnKind
from orchestrator.types import Epoch, FlowId, SessionId, TenantId, TurnId, UserId

_RETRY_DELAYS_S = (0.05, 0.2, 0.5, 1.0, 2.0)
"""A commit whose fate is unknown is looked up and tried again this often, then given up."""
_SWEEP_ROUNDS = 10

_log = get_logger(__name__)


@dataclass(slots=True)
class _Held:
    """What this process knows of a lane that it holds."""

    token: int
    turn_id: TurnId
    merges: int


class PostgresLane:
    """The lanes as one worker process sees them: one object per `WorkerLiveness`.

    It remembers what it holds, so that a claim in vain costs no statement, and so that a lease of its own
    whose reply was lost can be claimed again.
    """

    def __init__(
        self,
        database: Database,
        worker: WorkerLiveness,
        *,
        lease_ttl_s: float = 15.0,
        turn_deadline_s: float = 120.0,
        sequence_gap_timeout_s: float = 30.0,
        max_attempts: int = 3,
    ) -> None:
        self._database = database
        self._worker = worker
        self._ttl_s = lease_ttl_s
        self._deadline_s = turn_deadline_s
        self._gap_timeout_s = sequence_gap_timeout_s
        self._max_attempts = max_attempts
        self._held: dict[SessionId, _Held] = {}
        self._claiming: set[SessionId] = set()
        self._claim = statement("claim")
        self._commit = statement("commit_turn")
        self._release = statement("release")
        self._record = statement("record_step")
        self._record_effect = statement("record_effect")

    @property
    def worker(self) -> WorkerLiveness:
        """In whose name leases are taken."""
        return self._worker

    async def claim(self, session_id: SessionId) -> Lease | None:
        if session_id in self._held or session_id in self._claiming:
            return None
        self._claiming.add(session_id)
        try:
            return await self._claim_free(session_id)
        finally:
            self._claiming.discard(session_id)

    async def _claim_free(self, session_id: SessionId) -> Lease | None:
        arguments = {
            "session_id": session_id,
            "worker_id": self._worker.worker_id,
            "ttl_s": self._ttl_s,
            "max_attempts": self._max_attempts,
            "deadline_s": self._deadline_s,
        }
        with translated():
            row = await self._database.fetch_one(self._claim, arguments)
        if row is None:
            return None
        tenant_id, token, epoch, user_id, domain, state_epoch, body, *turn = row
        if turn[0] is None:
            settled = await self._settle(session_id, token)
        else:
            settled = Settled(await self._work(turn), turn[7])
        if settled is None:
            return None
        if state_epoch != epoch and epoch > 0:
            body = await self._read_state(session_id)
        self._held[session_id] = _Held(token, settled.work.turn_id, settled.merges)
        return Lease(
            session_id=session_id,
            tenant_id=TenantId(tenant_id),
            user_id=None if user_id is None else UserId(user_id),
            domain=domain,
            token=token,
            epoch=Epoch(epoch),
            state=None if body is None else body.encode(),
            work=settled.work,
        )

    async def commit(self, lease: Lease, commit: TurnCommit) -> Committed:
        arguments = self._commit_arguments(lease, commit)
        held = self._held.get(lease.session_id)
        merges = held.merges if held is not None and held.token == lease.token else 0
        row = await self._commit_surely(lease, arguments, merges)
        if row is None:
            self._forget(lease)
            raise LaneLost("Another worker has taken this session over; the work is discarded.")
        epoch, first_event, pending, *turn = row
        following = None
        if turn[0] is not None:
            following = Settled(await self._work(turn), turn[7])
        elif pending > 0:
            following = await self._settle(lease.session_id, lease.token)
        if following is None:
            self._forget(lease)
        else:
            self._held[lease.session_id] = _Held(lease.token, following.work.turn_id, following.merges)
        return Committed(
            epoch=Epoch(epoch),
            events=_numbered(commit.events, first_event, lease.work.turn_id),
            next=None if following is None else following.work,
        )

    async def _commit_surely(
        self, lease: Lease, arguments: dict[str, Any], merges: int
    ) -> TupleRow | tuple[Any, ...] | None:
        """The commit's row; when the answer is lost, look whether it held and try again (RT-17)."""
        for delay_s in _RETRY_DELAYS_S:
            try:
                return await self._commit_once(lease, arguments, merges)
            except Unavailable as error:
                _log.warning(
                    "A commit's fate is unknown; looking it up.",
                    turn_id=lease.work.turn_id,
                    cause=str(error.__cause__),
                )
                await asyncio.sleep(delay_s)
            try:
                found = await find_commit(self._database, lease, arguments["event_count"])
            except Unavailable:
                continue
            if found is not None:
                return found
        return await self._commit_once(lease, arguments, merges)

    async def _commit_once(self, lease: Lease, arguments: dict[str, Any], merges: int) -> TupleRow | None:
        with translated():
            further = _further(arguments)
            if merges == 0 and not further:
                return await self._database.fetch_one(self._commit, arguments)
            async with self._database.pool.connection() as connection, connection.transaction():
                row = await (
                    await connection.execute(self._commit.text, self._commit.ordered(arguments))
                ).fetchone()
                if row is not None:
                    for rare in further:
                        await connection.execute(rare.text, rare.ordered(arguments))
                    if merges:
                        await finish_merged(connection, lease.work.turn_id)
                return row

    def _commit_arguments(self, lease: Lease, commit: TurnCommit) -> dict[str, Any]:
        turn_id = lease.work.turn_id
        return {
            "session_id": lease.session_id,
            "tenant_id": lease.tenant_id,
            "turn_id": turn_id,
            "seq": lease.work.seq,
            "token": lease.token,
            "epoch": lease.epoch,
            "ttl_s": self._ttl_s,
            "max_attempts": self._max_attempts,
            "deadline_s": self._deadline_s,
            "status": commit.status.value,
            "state": commit.state.decode(),
            "diff": commit.diff.decode(),
            "snapshot": commit.snapshot,
            "result": orjson.dumps(commit.result).decode(),
            "signals": _array(commit.signals),
            "error": commit.error,
            "event_count": len(commit.events),
            "events": _array(
                [
                    {"turn_id": event.turn_id or turn_id, "type": event.type, "payload": event.payload}
                    for event in commit.events
                ]
            ),
            "utterances": _array(commit.utterances),
            "archived": _array(tuple({flow.flow_id: flow for flow in commit.archived}.values())),
            "frames": _array(tuple({frame.flow_id: frame for frame in commit.frames}.values())),
            "plans": _array(commit.plans),
            "plan_revisions": _array(commit.plan_revisions),
            "outbox": _array(commit.outbox),
            "approvals": _array(
                [
                    asdict(record) | {"expires_at": record.expires_at.timestamp()}
                    for record in commit.approvals
                ]
            ),
            "closed": _array(commit.closed_approvals),
        }

    async def abandon(self, lease: Lease, *, error: str | None = None) -> None:
        self._forget(lease)
        arguments = {
            "session_id": lease.session_id,
            "turn_id": lease.work.turn_id,
            "token": lease.token,
            "error": error,
        }
        with translated():
            await self._database.fetch_all(self._release, arguments)

    async def record(
        self, lease: Lease, turn_id: TurnId, step: Step, entry: LedgerEntry | None = None
    ) -> None:
        arguments = {
            "session_id": lease.session_id,
            "tenant_id": lease.tenant_id,
            "turn_id": turn_id,
            "token": lease.token,
            "epoch": lease.epoch,
            "key": step.key,
            "kind": step.kind,
            "status": step.status.value,
            "request_hash": step.request_hash,
            "result": orjson.dumps(step.result).decode(),
        }
        statement_ = self._record
        if entry is not None:
            statement_ = self._record_effect
            arguments |= {
                "fingerprint": entry.fingerprint,
                "flow_id": entry.flow_id,
                "tool_id": entry.tool_id,
                "idempotency_key": entry.idempotency_key,
                "arguments": orjson.dumps(entry.arguments).decode(),
                "slots": orjson.dumps(entry.slots).decode(),
                "effect_status": entry.status.value,
                "effect_result": orjson.dumps(entry.result).decode(),
            }
        with translated():
            row = await self._database.fetch_one(statement_, arguments)
        if row is None:
            self._forget(lease)
            raise LaneLost("Another worker has taken this session over; the work is discarded.")

    async def find_effect(self, lease: Lease, fingerprint: str) -> LedgerEntry | None:
        return await find_effect(self._database, lease.session_id, fingerprint)

    async def adopt_effect(
        self, lease: Lease, turn_id: TurnId, step_key: str, *, fingerprint: str, flow_id: FlowId
    ) -> LedgerEntry | None:
        return await adopt_effect(self._database, lease, turn_id, step_key, fingerprint, flow_id)

    async def mark_compensated(self, lease: Lease, fingerprint: str) -> None:
        await mark_compensated(self._database, lease, fingerprint)

    async def decide_approval(
        self, lease: Lease, approval_id: str, decision: Decision
    ) -> ApprovalRecord | None:
        async with self._database.transaction() as connection:
            record = await decide_approval(connection, lease.tenant_id, approval_id, decision)
        return record if record is not None and record.session_id == lease.session_id else None

    async def renew(self) -> list[tuple[SessionId, TurnId]]:
        if not self._held:
            return []
        asked = dict(sorted(self._held.items()))
        arguments = {
            "session_ids": list(asked),
            "tokens": [held.token for held in asked.values()],
            "turn_ids": [held.turn_id for held in asked.values()],
            "worker_id": self._worker.worker_id,
            "ttl_s": self._ttl_s,
        }
        with translated():
            rows = await self._database.fetch_all(statement("renew"), arguments)
        still = {row[0] for row in rows}
        for session_id, held in asked.items():
            if session_id not in still and self._held.get(session_id) is held:
                del self._held[session_id]
        return [
            (SessionId(session_id), TurnId(turn_id)) for session_id, turn_id, cancelled in rows if cancelled
        ]

    async def sweep(self, *, grace_s: float, limit: int = 500) -> list[SessionId]:
        with translated():
            freed = await self._database.fetch_all(statement("bury"), {"lock_class": LOCK_CLASS})
        named = [SessionId(row[0]) for row in freed]
        left = limit
        for _ in range(_SWEEP_ROUNDS):
            asked = left
            with translated():
                rows = await self._database.fetch_all(
                    statement("sweep"), {"grace_s": grace_s, "limit": asked}
                )
            for session_id, pending, gap_over in rows:
                if gap_over:
                    await fail_gap(self._database, session_id, self._gap_timeout_s)
                if pending > 0:
                    named.append(SessionId(session_id))
            left -= sum(row[1] > 0 for row in rows)
            if left == 0 or len(rows) < asked:
                break
        return named

    async def _settle(self, session_id: SessionId, token: int) -> Settled | None:
        return await settle(
            self._database,
            session_id,
            token,
            max_attempts=self._max_attempts,
            deadline_s=self._deadline_s,
            gap_timeout_s=self._gap_timeout_s,
        )

    async def _work(self, turn: list[Any]) -> Work:
        turn_id, seq, kind, form, text, action, attempts, _, deadline_s, cancelled, waited_s = turn
        return Work(
            turn_id=TurnId(turn_id),
            seq=seq,
            input=TurnInput(text=text, action=action, form=form, kind=TurnKind(kind)),
            attempts=attempts,
            deadline_s=deadline_s,
            cancelled=cancelled,
            waited_s=waited_s,
            steps=() if attempts == 1 else await steps_of(self._database, turn_id),
        )

    async def _read_state(self, session_id: SessionId) -> str:
        """The state once more: a commit came between this claim's snapshot and its lock."""
        with translated():
            row = await self._database.fetch_one(statement("read_state"), {"session_id": session_id})
        assert row is not None
        return row[0]

    def _forget(self, lease: Lease) -> None:
        held = self._held.get(lease.session_id)
        if held is not None and held.token == lease.token:
            del self._held[lease.session_id]


def _further(arguments: dict[str, Any]) -> list[Statement]:
    """What a commit writes beside the usual, in the same transaction; nothing for most turns."""
    rare = (("approvals", "ask_approvals"), ("closed", "close_approvals"))
    return [statement(name) for argument, name in rare if arguments[argument] is not None]


def _array(entries: Any) -> str | None:
    """A JSON array for a statement; null when empty, which costs the database nothing."""
    return orjson.dumps(entries).decode() if entries else None


def _numbered(events: tuple[Event, ...], first: int, turn_id: TurnId) -> tuple[Event, ...]:
    return tuple(
        Event(event.session_id, event.type, event.turn_id or turn_id, event.payload, first + place)
        for place, event in enumerate(events)
    )
