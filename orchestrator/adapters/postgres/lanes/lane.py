"""Session lanes in PostgreSQL. Claim, commit and renewal usually take one statement each (RT-2, RT-3, RT-20).

`claim_repair` handles cases that require the lane's lock: a turn without remaining attempts, a gap in
`sequence`, or a turn that arrived during the statement.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.claims import HeldClaim, HeldClaims, WorkerLock, reap_dead
from orchestrator.adapters.postgres.lanes.claim_repair import ClaimRepair, Quarantined, Suspected
from orchestrator.adapters.postgres.lanes.commit import commit_surely, number_events
from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import NOW, effects, lanes, record_of
from orchestrator.adapters.postgres.turns.approvals import decide_approval
from orchestrator.errors import LaneLost
from orchestrator.saying import WordFor, unworded
from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Committed, Lease, Said, TurnCommit, Work
from orchestrator.turns.step import Step, StepStatus
from orchestrator.turns.turn import TurnInput, TurnKind
from orchestrator.types import Epoch, FlowId, Json, JsonObject, SessionId, TenantId, TurnId, UserId

Freed = Callable[[Sequence[SessionId]], None]
"""A callback for sessions of dead workers that this process's sweep released."""

SUSPECTED_AFTER = 2
"""Number of crashes after which a turn is a suspected poison turn and runs only in an isolated process."""
_SWEEP_ROUNDS = 10


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
        suspected: Suspected = lambda _session, _crashes: None,
        quarantined: Quarantined = lambda _session, _turn: None,
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
        self._repair = ClaimRepair(
            database, self._limits, sequence_gap_timeout_s, suspected, quarantined, word
        )
        self._freed = freed

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
        tenant_id, token, epoch, pending, user_id, domain, root, *stored, suspected = row[:11]
        turn = row[11:]
        if suspected is not None:
            await self._repair.leave(session_id, token, suspected)
            return None
        work = await self._take(session_id, token, turn, pending)
        if work is None:
            return None
        if stored[0] != epoch and epoch > 0:  # the state changed between this claim's snapshot and its lock
            found = await self._database.fetch_one(statement("read_state"), {"session_id": session_id})
            assert found is not None
            stored = list(found)
        _, body, diffs = stored
        return Lease(
            session_id=session_id,
            tenant_id=TenantId(tenant_id),
            user_id=None if user_id is None else UserId(user_id),
            domain=domain,
            root=None if root is None else SessionId(root),
            patches=tuple(diffs or ()),
            token=token,
            epoch=Epoch(epoch),
            state=body,
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
            found = await self._repair.take_turn(session_id, token)
            if found is None:
                return None
            turn = found
        turn_id, seq, kind, form, text, action, timezone, locale, *of_attempt = turn
        attempts, deadline_s, cancelled, waited_s, accepted_at, resumed, failure = of_attempt
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
            "result": dump_json(step.result),
            "duration_ms": step.duration_ms,
        }
        if entry is not None:
            arguments |= {
                "fingerprint": entry.fingerprint,
                "flow_id": entry.flow_id,
                "tool_id": entry.tool_id,
                "idempotency_key": entry.idempotency_key,
                "arguments": dump_json(entry.arguments),
                "slots": dump_json(entry.slots),
                "effect_status": entry.status.value,
                "effect_result": dump_json(entry.result),
                "heard": heard,
            }
        name = "record_step" if entry is None else "record_effect"
        row = await self._database.fetch_one(statement(name), arguments)
        if row is None:
            raise self._lost(lease)
        return entry is None or row[0]

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
        named = {"session_id": lease.session_id, "fingerprint": effect.fingerprint}
        row = await self._database.fetch_one(statement("find_effect"), named)
        if row is None:
            return None
        turn_id, step_key, key, flow_id, tool_id, arguments, slots, status, *ended = row
        facts = (lease.session_id, effect.fingerprint, turn_id, step_key, key, flow_id, tool_id)
        return LedgerEntry(*facts, arguments, slots, LedgerStatus(status), *ended)

    async def adopt_effect(
        self, lease: Lease, turn_id: TurnId, step_key: str, *, fingerprint: str, flow_id: FlowId
    ) -> LedgerEntry | None:
        of_step = (
            effects.c.session_id == lease.session_id,
            effects.c.turn_id == turn_id,
            effects.c.step_key == step_key,
        )
        async with self._database.transaction() as connection:
            await self._hold(connection, lease)
            row = (await connection.execute(select(effects).where(*of_step))).one_or_none()
            if row is not None and row.fingerprint != fingerprint:
                adopted = {"fingerprint": fingerprint, "flow_id": flow_id}
                changing = update(effects).where(*of_step).values(adopted).returning(effects)
                row = (await connection.execute(changing)).one()
        return None if row is None else record_of(LedgerEntry, row)

    async def mark_compensated(self, lease: Lease, fingerprint: str) -> None:
        await self._change_effect(lease, fingerprint, status=LedgerStatus.COMPENSATED.value)

    async def resolve_effect(self, lease: Lease, entry: LedgerEntry) -> None:
        changes: JsonObject = {"status": entry.status.value, "result": entry.result}
        await self._change_effect(lease, entry.fingerprint, **changes)

    async def _change_effect(self, lease: Lease, fingerprint: str, **changes: Json) -> None:
        mine = (effects.c.session_id == lease.session_id, effects.c.fingerprint == fingerprint)
        async with self._database.transaction() as connection:
            await self._hold(connection, lease)
            await connection.execute(update(effects).where(*mine).values(**changes, at=NOW))

    async def _hold(self, connection: AsyncConnection, lease: Lease) -> None:
        """Protect the lane from a takeover until the transaction ends. Raises LaneLost."""
        held = (
            select(lanes.c.session_id)
            .where(
                lanes.c.session_id == lease.session_id,
                lanes.c.lease_token == lease.token,
                lanes.c.epoch == lease.epoch,
            )
            .with_for_update(read=True)
        )
        if (await connection.execute(held)).one_or_none() is None:
            raise self._lost(lease)

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
                    await self._repair.fail_gap(SessionId(session_id))
                if pending > 0:
                    named.append(SessionId(session_id))
            left -= sum(row[1] > 0 for row in rows)
            if left == 0 or len(rows) < asked:
                break
        return named

    def _lost(self, lease: Lease) -> LaneLost:
        self._held.drop(lease.session_id, lease.token)
        return LaneLost("Another worker has taken over this session; the work is discarded.")
