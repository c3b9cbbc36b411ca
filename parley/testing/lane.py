"""In-memory session lanes with the rules of `adapters.postgres.lanes`.

They never suspect poison turns, and turns wait for a missing predecessor without a time limit.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile

import orjson

from orchestrator.errors import LaneLost
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision, from_unix
from orchestrator.turns.effect import Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Committed, Lease, Said, TurnCommit, Work
from orchestrator.turns.step import Step
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import Epoch, FlowId, JsonObject, SessionId, TenantId, TurnId
from parley.testing.store import MemorySession, MemoryStore, MemoryTurn, Revision, keep_approvals


class MemoryLane:
    """The session lanes as used by one worker, which counts as alive until `die` is called."""

    def __init__(
        self,
        store: MemoryStore,
        *,
        lease_ttl_s: float = 15.0,
        turn_deadline_s: float = 120.0,
        max_attempts: int = 3,
    ) -> None:
        self._store = store
        self._ttl = timedelta(seconds=lease_ttl_s)
        self._deadline = timedelta(seconds=turn_deadline_s)
        self._max_attempts = max_attempts
        self._held: dict[SessionId, tuple[int, MemoryTurn]] = {}
        store.workers_ever += 1
        self._worker = store.workers_ever
        store.live_workers.add(self._worker)

    def die(self) -> None:
        """Simulate the death of this worker, so that other workers can take over its sessions."""
        self._store.live_workers.discard(self._worker)

    async def claim(self, session_id: SessionId) -> Lease | None:
        session, now = self._store.sessions.get(session_id), self._store.clock()
        if session is None or session_id in self._held or not self._free(session, now):
            return None
        unfinished = session.unfinished()
        if not unfinished:
            return None
        session.lease_owner, session.lease_token = self._worker, session.lease_token + 1
        session.lease_until = now + self._ttl
        work = self._take_next(session, unfinished, now)
        if work is None:
            return None
        return Lease(
            session_id=session_id,
            tenant_id=session.tenant_id,
            user_id=session.user_id,
            domain=session.domain,
            token=session.lease_token,
            epoch=session.epoch,
            state=session.state,
            work=work,
            root=session.root,
        )

    def _free(self, session: MemorySession, now: datetime) -> bool:
        expired = session.lease_until is None or session.lease_until < now
        return expired or session.lease_owner == self._worker

    def _take_next(
        self, session: MemorySession, unfinished: Sequence[MemoryTurn], now: datetime
    ) -> Work | None:
        """Mark the next turn as running and return its work. If no turn may run, release the lane and return None.

        Quarantine turns after too many attempts.
        """
        for turn in unfinished:
            if not session.may_run(turn):
                continue
            # A turn still marked as running has lost its worker. Rerunning the turn doesn't count as another
            # attempt.
            attempts = turn.attempts + (turn.status is not TurnStatus.RUNNING)
            over = attempts > self._max_attempts
            if over:
                acted = self._had_effects(turn)
                if turn.attempts > self._max_attempts or not acted:
                    self._store.end(session, turn, TurnStatus.QUARANTINED, turn.error, acted=acted)
                    continue
            turn.attempts = attempts
            self._held[session.session_id] = (session.lease_token, turn)
            return self._start(turn, now, turn.error if over else None)
        self._release(session)
        return None

    def _start(self, turn: MemoryTurn, now: datetime, failure: str | None) -> Work:
        turn.status = TurnStatus.RUNNING
        turn.deadline_at = turn.deadline_at or now + self._deadline
        turn.started_at = turn.started_at or now
        return Work(
            turn_id=turn.turn_id,
            seq=turn.seq,
            input=turn.input,
            attempts=turn.attempts,
            deadline_s=(turn.deadline_at - now).total_seconds(),
            cancelled=turn.cancel_requested,
            waited_s=(now - turn.accepted_at).total_seconds(),
            accepted_at=turn.accepted_at.timestamp(),
            steps=tuple(turn.steps.values()),
            failure=failure,
        )

    def _release(self, session: MemorySession) -> None:
        session.lease_owner = session.lease_until = None
        self._held.pop(session.session_id, None)

    def _fenced(self, lease: Lease) -> MemorySession:
        session = self._store.sessions[lease.session_id]
        if session.lease_token != lease.token or session.epoch != lease.epoch:
            if lease.session_id in self._held and self._held[lease.session_id][0] == lease.token:
                del self._held[lease.session_id]
            raise LaneLost("Another worker has taken over this session; the work is discarded.")
        return session

    async def commit(self, lease: Lease, commit: TurnCommit) -> Committed:
        session = self._fenced(lease)
        now = self._store.clock()
        _, turn = self._held[lease.session_id]
        session.epoch, session.state, session.updated_at = Epoch(session.epoch + 1), commit.state, now
        turn.result = dict(commit.result)
        turn.status, turn.error, turn.epoch = commit.status, commit.error, session.epoch
        turn.finished_at = now
        snapshot = orjson.loads(commit.state) if commit.snapshot or session.epoch == 1 else None
        session.revisions[session.epoch] = Revision(orjson.loads(commit.diff), snapshot)
        if not (turn.forget and commit.status is TurnStatus.CANCELLED) or self._had_effects(turn):
            session.utterances.extend(_lines_of(turn, commit, now))
        for frame in commit.frames:
            session.frames.pop(frame.flow_id, None)
            session.frames[frame.flow_id], session.framed[frame.flow_id] = frame, turn.turn_id
        if commit.approvals or commit.closed_approvals:
            keep_approvals(self._store, lease.tenant_id, commit)
        if commit.plans or commit.plan_revisions:
            session.keep_plans(turn.turn_id, commit, now)
        if commit.outbox:
            self._store.leave(session, turn.turn_id, commit.outbox)
        events = session.append(turn.turn_id, *commit.events)
        session.lease_until = now + self._ttl
        return Committed(session.epoch, events, self._take_next(session, session.unfinished(), now))

    def _had_effects(self, turn: MemoryTurn) -> bool:
        return any(entry.turn_id == turn.turn_id for entry in self._store.effects.values())

    async def abandon(self, lease: Lease, *, error: str | None = None) -> None:
        session = self._store.sessions[lease.session_id]
        if session.lease_token != lease.token:
            self._held.pop(lease.session_id, None)
            return
        self._release(session)
        for turn in session.unfinished():
            if turn.status is TurnStatus.RUNNING:
                failure = error if turn.turn_id == lease.work.turn_id else None
                turn.status = TurnStatus.QUEUED
                turn.attempts -= failure is None
                turn.error = failure or turn.error

    async def record(
        self,
        lease: Lease,
        turn_id: TurnId,
        step: Step,
        entry: LedgerEntry | None = None,
        heard: int | None = None,
    ) -> bool:
        session = self._fenced(lease)
        if entry is not None and heard is not None and session.said_seq > heard:
            return False
        self._store.turn(lease.tenant_id, turn_id)[1].steps[step.key] = step
        if entry is not None:
            entry = replace(entry, at=self._store.clock())
            self._store.effects[lease.session_id, entry.fingerprint] = entry
        return True

    async def said_meanwhile(self, lease: Lease) -> Said:
        session, mine = self._store.turn(lease.tenant_id, lease.work.turn_id)
        numbers = {None, *(turn.client_sequence for turn in session.turns)}

        def is_heard(turn: MemoryTurn) -> bool:
            number = turn.client_sequence or 1
            return turn.interjects and (number == 1 or number - 1 in numbers)

        later = (turn for turn in session.unfinished() if turn.seq > mine.seq)
        waiting = (
            Work(turn.turn_id, turn.seq, turn.input, 0, lease.work.deadline_s)
            for turn in takewhile(is_heard, later)
        )
        return Said(session.next_seq - 1, mine.cancel_requested, tuple(waiting))

    async def find_effect(self, lease: Lease, effect: Effect) -> LedgerEntry | None:
        return self._store.effects.get((lease.session_id, effect.fingerprint))

    async def adopt_effect(
        self, lease: Lease, turn_id: TurnId, step_key: str, *, fingerprint: str, flow_id: FlowId
    ) -> LedgerEntry | None:
        self._fenced(lease)
        for key, entry in list(self._store.effects.items()):
            if key[0] == lease.session_id and (entry.turn_id, entry.step_key) == (turn_id, step_key):
                del self._store.effects[key]
                adopted = replace(entry, fingerprint=fingerprint, flow_id=flow_id)
                self._store.effects[lease.session_id, fingerprint] = adopted
                return adopted
        return None

    async def mark_compensated(self, lease: Lease, fingerprint: str) -> None:
        self._fenced(lease)
        known = self._store.effects.get((lease.session_id, fingerprint))
        if known is not None:
            await self.resolve_effect(lease, replace(known, status=LedgerStatus.COMPENSATED))

    async def resolve_effect(self, lease: Lease, entry: LedgerEntry) -> None:
        self._fenced(lease)
        known = self._store.effects.get((lease.session_id, entry.fingerprint))
        if known is not None:
            self._store.effects[lease.session_id, entry.fingerprint] = replace(
                known, status=entry.status, result=entry.result, at=self._store.clock()
            )

    async def decide_approval(
        self, lease: Lease, approval_id: str, decision: Decision
    ) -> ApprovalRecord | None:
        record = decide_approval(self._store, lease.tenant_id, approval_id, decision)
        return record if record is not None and record.session_id == lease.session_id else None

    async def renew(self) -> list[tuple[SessionId, TurnId]]:
        cancelled: list[tuple[SessionId, TurnId]] = []
        for session_id, (token, turn) in list(self._held.items()):
            session = self._store.sessions[session_id]
            if session.lease_token != token:
                del self._held[session_id]
                continue
            session.lease_owner, session.lease_until = self._worker, self._store.clock() + self._ttl
            if turn.cancel_requested or session.said_seq > turn.seq:
                cancelled.append((session_id, turn.turn_id))
        return cancelled

    async def sweep(self, *, grace_s: float, limit: int = 500) -> list[SessionId]:
        """Release dead workers' leases. Return sessions with unfinished turns and no valid lease. Ignore `grace_s`."""
        now, named = self._store.clock(), list[SessionId]()
        for session in self._store.sessions.values():
            if session.lease_owner is not None and session.lease_owner not in self._store.live_workers:
                self._release(session)
            held = session.lease_until is not None and session.lease_until >= now
            if session.pending and not held:
                named.append(session.session_id)
        return named[:limit]


def _lines_of(turn: MemoryTurn, commit: TurnCommit, now: datetime) -> list[JsonObject]:
    of_turn = {"turn_id": turn.turn_id, "seq": turn.seq, "at": now.isoformat()}
    lines = ({"role": line.role, "form": line.form, "content": line.content} for line in commit.utterances)
    return [of_turn | line for line in lines]


def decide_approval(
    store: MemoryStore, tenant_id: TenantId, approval_id: str, decision: Decision
) -> ApprovalRecord | None:
    """Decide an approval that is pending and has not expired. Return the approval, or None if it doesn't exist.

    A repeated decision, or one by a caller without the required rights, changes nothing.
    """
    tenant, record = store.approvals.get(approval_id, (None, None))
    if tenant != tenant_id or record is None:
        return None
    now = store.clock() if decision.now is None else from_unix(decision.now)
    may = decision.suffices(operator_only=record.operator_only)
    if may and record.status_at(now) is ApprovalStatus.PENDING:
        record = replace(
            record,
            status=decision.status,
            decided_by=decision.decided_by,
            reason=decision.reason,
            decided_at=store.clock(),
        )
        store.approvals[approval_id] = (tenant_id, record)
    return record
