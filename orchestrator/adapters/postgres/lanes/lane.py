"""Session lanes in PostgreSQL. Claim, commit and renewal usually take one statement each (RT-2, RT-3, RT-20).

`claim_repair` handles cases that require the lane's lock: a turn without remaining attempts, a gap in
`sequence`, or a turn that arrived during the statement.
"""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from orchestrator.adapters.postgres.claims import HeldClaim, HeldClaims, WorkerLock, reap_dead
from orchestrator.adapters.postgres.lanes import claim_repair
from orchestrator.adapters.postgres.lanes.commit import commit_surely, number_events
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.turns.approvals import decide_approval
from orchestrator.adapters.postgres.turns.effects import (
    adopt_effect,
    change_effect,
    find_effect,
    record_effect,
)
from orchestrator.errors import LaneLost
from orchestrator.saying import WordFor, unworded
from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Committed, Lease, Said, TurnCommit, Work
from orchestrator.turns.step import Step, StepStatus
from orchestrator.turns.turn import TurnInput, TurnKind
from orchestrator.types import Epoch, FlowId, SessionId, TenantId, TurnId, UserId

Freed = Callable[[Sequence[SessionId]], None]
"""A callback for sessions of dead workers that this process's sweep released."""

SUSPECTED_AFTER = 2
"""Number of crashes after which a turn is a suspected poison turn and runs only in an isolated process."""
_SWEEP_ROUNDS = 10
_LOST = "Another worker has taken over this session; the work is discarded."


class PostgresLane:
    """The session lanes of one worker process. Create one object per `WorkerLock`.

    The object remembers its claims. Claiming a lane that the process already holds returns None without a
    query. A lease whose response was lost can be claimed again.
    """

    def __init__(
        self,
        database: Database,
        worker: WorkerLock,
        *,
        lease_ttl_s: float = 15.0,
        turn_deadline_s: float = 120.0,
        sequence_gap_timeout_s: float = 30.0,
        max_attempts: int = 3,
        crashes_below: int | None = SUSPECTED_AFTER,
        suspected: claim_repair.Suspected = lambda _session, _crashes: None,
        quarantined: claim_repair.Quarantined = lambda _session, _turn: None,
        freed: Freed = lambda _sessions: None,
        word: WordFor = unworded,
    ) -> None:
        """Create a worker's session lanes.

        `crashes_below`: turns with this many crashes go to `suspected` instead of running. None in an
        isolated process (RT-26). `quarantined`: receives turns without remaining attempts. `freed`:
        receives sessions released from dead workers. `word`: renders the replies of turns that end without an Agent.
        """
        self.worker = worker
        self._database = database
        self._held: HeldClaims[SessionId] = HeldClaims(
            database, worker, "renew_leases", lease_ttl_s=lease_ttl_s
        )
        self._claiming: set[SessionId] = set()
        # Arguments for all statements that claim a turn.
        self._limits = {
            "ttl_s": lease_ttl_s,
            "deadline_s": turn_deadline_s,
            "max_attempts": max_attempts,
            "crashes_below": crashes_below,
        }
        self._suspected = suspected
        self._quarantined = quarantined
        self._freed = freed
        self._word = word
        self._gap_timeout_s = sequence_gap_timeout_s

    async def claim(self, session_id: SessionId) -> Lease | None:
        if session_id in self._claiming or self._held.find(session_id) is not None:
            return None
        self._claiming.add(session_id)
        try:
            return await self._claim_free(session_id)
        finally:
            self._claiming.discard(session_id)

    async def _claim_free(self, session_id: SessionId) -> Lease | None:
        arguments = {"session_id": session_id, **self._held.owner(), **self._limits}
        row = await self._database.fetch_one(statement("claim"), arguments)
        if row is None:
            return None
        tenant_id, token, epoch, pending, user_id, domain, root, state_epoch, state, suspected = row[:10]
        turn = row[10:]
        if suspected is not None:
            await self._leave(session_id, token, suspected)
            return None
        work = await self._take(session_id, token, turn, pending)
        if work is None:
            return None
        if state_epoch != epoch and epoch > 0:  # the state changed between this claim's snapshot and its lock
            found = await self._database.fetch_one(statement("read_state"), {"session_id": session_id})
            assert found is not None
            [state] = found
        return Lease(
            session_id=session_id,
            tenant_id=TenantId(tenant_id),
            user_id=None if user_id is None else UserId(user_id),
            domain=domain,
            root=None if root is None else SessionId(root),
            token=token,
            epoch=Epoch(epoch),
            state=state,
            work=work,
        )

    async def commit(self, lease: Lease, commit: TurnCommit) -> Committed:
        held = self._held.find(lease.session_id, lease.token)
        last = held is not None and held.pending == 1
        row = await commit_surely(self._database, lease, commit, self._limits, last=last)
        if row is None:
            raise self._lost(lease)
        epoch, first_event, pending, awaited, *turn = row
        following = None
        if pending > 0:
            following = await self._take(lease.session_id, lease.token, turn, pending)
        if following is None:
            self._held.drop(lease.session_id, lease.token)
        return Committed(
            epoch=Epoch(epoch),
            events=number_events(commit.events, first_event, lease.work.turn_id),
            next=following,
            awaited=awaited,
        )

    async def _take(
        self, session_id: SessionId, token: int, turn: Sequence[Any], pending: int
    ) -> Work | None:
        """Return the claimed turn and remember the claim, or return None if no turn can be claimed.

        If `turn` is an empty row, claim a turn in a transaction that locks the lane.
        """
        if not turn or turn[0] is None:
            found = await claim_repair.take_turn(
                self._database,
                session_id,
                token,
                self._limits,
                gap_timeout_s=self._gap_timeout_s,
                suspected=self._suspected,
                quarantined=self._quarantined,
                word=self._word,
            )
            if found is None:
                return None
            turn = found
        (
            turn_id,
            seq,
            kind,
            form,
            text,
            action,
            timezone,
            locale,
            attempts,
            deadline_s,
            cancelled,
            waited_s,
            accepted_at,
            resumed,
            failure,
        ) = turn
        steps = await self._read_steps(turn_id) if resumed else ()
        self._held.keep(session_id, HeldClaim(token, turn_id, pending))
        return Work(
            turn_id=turn_id,
            seq=seq,
            input=TurnInput(text, action, form, TurnKind(kind), timezone, locale),
            attempts=attempts,
            deadline_s=deadline_s,
            cancelled=cancelled,
            waited_s=waited_s,
            accepted_at=accepted_at,
            steps=steps,
            failure=failure,
        )

    async def _leave(self, session_id: SessionId, token: int, crashes: int) -> None:
        """Leave a lane whose next turn is a suspected poison turn to an isolated process.

        This takes a single statement, because one crash can affect many lanes.
        """
        arguments = {"session_id": session_id, "token": token, "left_for_s": claim_repair.LEFT_FOR_S}
        if await self._database.fetch_one(statement("leave_lane"), arguments) is not None:
            self._suspected(session_id, crashes)

    async def _read_steps(self, turn_id: TurnId) -> tuple[Step, ...]:
        """Return the steps journaled in the turn's earlier attempts, oldest first."""
        rows = await self._database.fetch_all(statement("read_steps"), {"turn_id": turn_id})
        return tuple(
            Step(key, kind, StepStatus(status), request_hash, result)
            for key, kind, status, request_hash, result in rows
        )

    async def abandon(self, lease: Lease, *, error: str | None = None) -> None:
        self._held.drop(lease.session_id, lease.token)
        arguments = {
            "session_id": lease.session_id,
            "turn_id": lease.work.turn_id,
            "token": lease.token,
            "error": error,
        }
        await self._database.fetch_all(statement("release_lane"), arguments)

    async def record(
        self,
        lease: Lease,
        turn_id: TurnId,
        step: Step,
        entry: LedgerEntry | None = None,
        heard: int | None = None,
    ) -> bool:
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
            "duration_ms": step.duration_ms,
        }
        if entry is None:
            written = await self._database.fetch_one(statement("record_step"), arguments) is not None or None
        else:
            written = await record_effect(self._database, entry, {**arguments, "heard": heard})
        if written is None:
            raise self._lost(lease)
        return written

    async def said_meanwhile(self, lease: Lease) -> Said:
        named = {"session_id": lease.session_id, "turn_id": lease.work.turn_id}
        upto, cancelled, waiting = 0, False, list[Work]()
        for row in await self._database.fetch_all(statement("said_meanwhile"), named):
            upto, cancelled, turn_id, seq, kind, form, text, action, is_heard = row
            if turn_id is None or not is_heard:
                break
            given = TurnInput(text=text, action=action, form=form, kind=TurnKind(kind))
            waiting.append(Work(turn_id, seq, given, attempts=0, deadline_s=lease.work.deadline_s))
        return Said(upto, cancelled, tuple(waiting))

    async def find_effect(self, lease: Lease, effect: Effect) -> LedgerEntry | None:
        return await find_effect(self._database, lease.session_id, effect)

    async def adopt_effect(
        self, lease: Lease, turn_id: TurnId, step_key: str, *, fingerprint: str, flow_id: FlowId
    ) -> LedgerEntry | None:
        return await adopt_effect(self._database, lease, turn_id, step_key, fingerprint, flow_id)

    async def mark_compensated(self, lease: Lease, fingerprint: str) -> None:
        await change_effect(self._database, lease, fingerprint, LedgerStatus.COMPENSATED)

    async def resolve_effect(self, lease: Lease, entry: LedgerEntry) -> None:
        await change_effect(self._database, lease, entry.fingerprint, entry.status, result=entry.result)

    async def decide_approval(
        self, lease: Lease, approval_id: str, decision: Decision
    ) -> ApprovalRecord | None:
        async with self._database.transaction() as connection:
            record = await decide_approval(connection, lease.tenant_id, approval_id, decision)
        return record if record is not None and record.session_id == lease.session_id else None

    async def renew(self) -> list[tuple[SessionId, TurnId]]:
        rows, _ = await self._held.renew()
        return [(session_id, turn_id) for session_id, turn_id, called in rows if called]

    async def sweep(self, *, grace_s: float, limit: int = 500) -> list[SessionId]:
        named = await reap_dead(self._database)
        self._freed(named)
        left = limit
        for _ in range(_SWEEP_ROUNDS):
            asked = left
            rows = await self._database.fetch_all(
                statement("sweep_lanes"), {"grace_s": grace_s, "limit": asked}
            )
            for session_id, pending, gap_over in rows:
                if gap_over:
                    await claim_repair.fail_gap(self._database, session_id, self._gap_timeout_s, self._word)
                if pending > 0:
                    named.append(SessionId(session_id))
            left -= sum(row[1] > 0 for row in rows)
            if left == 0 or len(rows) < asked:
                break
        return named

    def _lost(self, lease: Lease) -> LaneLost:
        self._held.drop(lease.session_id, lease.token)
        return LaneLost(_LOST)
