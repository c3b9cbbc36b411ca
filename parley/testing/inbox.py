"""An in-memory inbox with the rules of `adapters.postgres.turns.inbox`."""

from dataclasses import replace

from orchestrator.errors import InvalidInput
from orchestrator.turns.repair import require_looked_at
from orchestrator.turns.turn import (
    IfBusy,
    Receipt,
    Submission,
    TurnKind,
    TurnRecord,
    TurnStatus,
    require_droppable,
    require_retriable,
    require_room,
    sequence_in_use,
)
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId, new_id
from parley.testing.store import MemorySession, MemoryStore, MemoryTurn


class MemoryInbox:
    def __init__(self, store: MemoryStore, *, session_limit: int = 100) -> None:
        self._store = store
        self._session_limit = session_limit

    async def submit(self, submission: Submission) -> Receipt:
        _require_storable(submission)
        session = self._session(submission)
        earlier = _earlier(session, submission)
        if earlier is not None:
            return _receipt(session, earlier, repeated=True)
        rule = submission.if_busy or session.if_busy
        waiting = session.unfinished()
        of_users = [turn for turn in waiting if turn.input.kind is TurnKind.USER]
        require_room(
            rule,
            closed=session.closed,
            busy=bool(of_users),
            pending=len(waiting),
            limit=self._session_limit,
        )
        if submission.sequence in {turn.client_sequence for turn in session.turns} - {None}:
            raise sequence_in_use(submission)
        if rule in {IfBusy.INTERRUPT, IfBusy.ROLLBACK} and of_users:
            of_users[0].cancel_requested = True
            of_users[0].forget = rule is IfBusy.ROLLBACK
        turn = self._accept(session, submission)
        if rule is IfBusy.UNDERSTAND and of_users:
            turn.interjects, session.said_seq = True, turn.seq
        return Receipt(turn.turn_id, session.session_id, turn.seq, turn.status, len(waiting))

    def _session(self, submission: Submission) -> MemorySession:
        found = self._store.sessions.get(submission.session_id)
        if (found is None or found.tenant_id != submission.tenant_id) and submission.create_session:
            if submission.domain is None:
                raise InvalidInput("A new session needs a domain.", field="domain")
            return self._store.open_session(
                submission.tenant_id,
                submission.domain,
                session_id=submission.session_id,
                user_id=submission.user_id,
                if_busy=submission.session_if_busy,
            )
        return self._store.session(submission.tenant_id, submission.session_id)

    def _accept(self, session: MemorySession, submission: Submission) -> MemoryTurn:
        now, given = self._store.clock(), submission.input
        session.timezone, session.locale = given.timezone or session.timezone, given.locale or session.locale
        turn = MemoryTurn(
            turn_id=TurnId(new_id("turn")),
            session_id=session.session_id,
            tenant_id=session.tenant_id,
            seq=session.next_seq,
            input=replace(given, timezone=session.timezone, locale=session.locale),
            accepted_at=now,
            idempotency_key=submission.idempotency_key,
            client_sequence=submission.sequence,
        )
        session.turns.append(turn)
        self._store.enter(session, turn, now)
        return turn

    async def turn(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        return self._store.turn(tenant_id, turn_id)[1].record()

    async def submitted_as(
        self, tenant_id: TenantId, idempotency_key: str, session_id: SessionId | None = None
    ) -> list[TurnRecord]:
        return [
            turn.record()
            for session in self._store.sessions.values()
            for turn in session.turns
            if (turn.tenant_id, turn.idempotency_key) == (tenant_id, idempotency_key)
            and session_id in {None, turn.session_id}
        ][:2]

    async def turns(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        status: TurnStatus | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[TurnRecord]:
        matching = [
            turn
            for session in self._store.sessions.values()
            for turn in session.turns
            if turn.tenant_id == tenant_id
            and session_id in {None, turn.session_id}
            and status in {None, turn.status}
            and (before is None or turn.seq < before)
        ]
        newest = sorted(matching, key=lambda turn: (turn.accepted_at, turn.seq), reverse=True)
        return [turn.record() for turn in newest[:limit]]

    async def cancel(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        session, turn = self._store.turn(tenant_id, turn_id)
        if turn.status is TurnStatus.QUEUED:
            self._store.end(session, turn, TurnStatus.CANCELLED, "cancelled before it ran")
        elif turn.status is TurnStatus.RUNNING:
            turn.cancel_requested = True
        return turn.record()

    async def retry(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        session, turn = self._store.turn(tenant_id, turn_id)
        require_looked_at(moved=session.epoch != signed["epoch"])
        require_retriable(turn.record())
        self._store.sign(session, signed)
        now = self._store.clock()
        turn.seq, turn.status, turn.attempts = session.next_seq, TurnStatus.QUEUED, 0
        turn.error = turn.result = turn.deadline_at = turn.finished_at = None
        turn.cancel_requested = turn.interjects = False
        self._store.enter(session, turn, now)
        return turn.record()

    async def drop(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        session, turn = self._store.turn(tenant_id, turn_id)
        require_looked_at(moved=session.epoch != signed["epoch"])
        require_droppable(turn.record())
        self._store.sign(session, signed)
        self._store.end(session, turn, TurnStatus.CANCELLED, turn.error or "dropped by an operator")
        return turn.record()


def _earlier(session: MemorySession, submission: Submission) -> MemoryTurn | None:
    if submission.idempotency_key is None:
        return None
    same = (turn for turn in session.turns if turn.idempotency_key == submission.idempotency_key)
    return next(same, None)


def _receipt(session: MemorySession, turn: MemoryTurn, *, repeated: bool) -> Receipt:
    before = 0 if turn.finished else sum(other.seq < turn.seq for other in session.unfinished())
    return Receipt(turn.turn_id, turn.session_id, turn.seq, turn.status, before, repeated)


def _require_storable(submission: Submission) -> None:
    """Raise InvalidInput for text that PostgreSQL rejects."""
    for text in (submission.input.text or "", submission.idempotency_key or ""):
        if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidInput(
                "The input contains a character or number that can't be stored; remove it.", field="text"
            )
