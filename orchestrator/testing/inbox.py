"""The inbox in memory: the rules of `adapters.postgres.turns.inbox` over a `MemoryStore`."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.errors import InboxFull, InvalidInput, Refused, SessionBusy, SessionClosed
from orchestrator.testing.sessions import MemorySessions
from orchestrator.testing.store import MemorySession, MemoryStore, MemoryTurn
from orchestrator.turns.event import Event
from orchestrator.turns.turn import IfBusy, Receipt, Submission, TurnKind, TurnRecord, TurnStatus
from orchestrator.types import SessionId, TenantId, TurnId, new_id


class MemoryInbox:
    def __init__(self, store: MemoryStore, *, session_limit: int = 100, total_limit: int = 200_000) -> None:
        self._store = store
        self._session_limit = session_limit
        self._total_limit = total_limit
        self._sessions = MemorySessions(store)

    async def submit(self, submission: Submission) -> Receipt:
        if self._store.count_waiting() >= self._total_limit:
            raise InboxFull("Too many turns are waiting in all; try again later.", retry_after_s=5)
        _require_storable(submission)
        session = await self._session(submission)
        earlier = _earlier(session, submission)
        if earlier is not None:
            return _receipt(session, earlier, repeated=True)
        rule = submission.if_busy or session.if_busy
        waiting = session.unfinished()
        of_users = [turn for turn in waiting if turn.input.kind is TurnKind.USER]
        self._refuse(session, submission, busy=bool(of_users) and rule is IfBusy.REJECT)
        target = _merge_target(waiting, submission) if rule is IfBusy.MERGE else None
        if rule in {IfBusy.INTERRUPT, IfBusy.ROLLBACK} and of_users:
            of_users[0].cancel_requested = True
            of_users[0].forget = rule is IfBusy.ROLLBACK
        turn = self._accept(session, submission, target)
        return Receipt(turn.turn_id, session.session_id, turn.seq, turn.status, len(waiting))

    async def _session(self, submission: Submission) -> MemorySession:
        found = self._store.sessions.get(submission.session_id)
        if (found is None or found.tenant_id != submission.tenant_id) and submission.create_session:
            if submission.domain is None:
                raise InvalidInput("A session that does not exist yet needs a domain.", field="domain")
            await self._sessions.create(
                submission.tenant_id,
                submission.domain,
                session_id=submission.session_id,
                user_id=submission.user_id,
            )
        return self._store.session(submission.tenant_id, submission.session_id)

    def _refuse(self, session: MemorySession, submission: Submission, *, busy: bool) -> None:
        """Raises what stands in the way of the turn."""
        if session.closed:
            raise SessionClosed("The session has been closed; start a new one.")
        if busy:
            raise SessionBusy("The session is still working on an earlier turn; wait for its answer.")
        if session.pending >= self._session_limit:
            raise InboxFull(f"The session has {session.pending} unfinished turns; wait for some to finish.")
        used = {turn.client_sequence for turn in session.turns}
        if submission.sequence is not None and submission.sequence in used:
            raise InvalidInput(
                f"The sequence {submission.sequence} was used already by another turn of this session.",
                field="sequence",
            )

    def _accept(
        self, session: MemorySession, submission: Submission, target: MemoryTurn | None
    ) -> MemoryTurn:
        now = self._store.clock()
        turn = MemoryTurn(
            turn_id=TurnId(new_id("turn")),
            session_id=session.session_id,
            tenant_id=session.tenant_id,
            seq=session.next_seq,
            input=submission.input,
            accepted_at=now,
            idempotency_key=submission.idempotency_key,
            client_sequence=submission.sequence,
            merged_into=None if target is None else target.turn_id,
        )
        if target is not None:
            joined = f"{target.input.text}\n{submission.input.text}"
            target.input = replace(target.input, text=joined)
        if session.pending == 0:
            session.ready_at = now
        session.turns.append(turn)
        self._enter(session, turn)
        return turn

    def _enter(self, session: MemorySession, turn: MemoryTurn) -> None:
        self._store.enter(session, turn)
        session.next_seq += 1
        session.updated_at = self._store.clock()
        session.append(Event(session.session_id, "accepted", turn.turn_id, {"seq": turn.seq}))

    async def turn(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        return self._store.turn(tenant_id, turn_id)[1].record()

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
            _require_own(turn)
            self._store.end(session, turn, TurnStatus.CANCELLED, "cancelled before it ran")
        elif turn.status is TurnStatus.RUNNING:
            turn.cancel_requested = True
        return turn.record()

    async def retry(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        session, turn = self._store.turn(tenant_id, turn_id)
        if turn.status is not TurnStatus.QUARANTINED:
            raise Refused(f"Only a quarantined turn can be retried; this one is {turn.status}.")
        if session.pending == 0:
            session.ready_at = self._store.clock()
        turn.seq, turn.status, turn.attempts = session.next_seq, TurnStatus.QUEUED, 0
        turn.error = turn.result = turn.deadline_at = turn.finished_at = None
        turn.cancel_requested = False
        self._enter(session, turn)
        return turn.record()

    async def drop(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        session, turn = self._store.turn(tenant_id, turn_id)
        if turn.status not in {TurnStatus.QUEUED, TurnStatus.QUARANTINED}:
            raise Refused(f"Only a queued or quarantined turn can be dropped; this one is {turn.status}.")
        _require_own(turn)
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


def _merge_target(waiting: list[MemoryTurn], submission: Submission) -> MemoryTurn | None:
    """The last waiting turn, when both are plain texts of the user."""
    last = waiting[-1] if waiting else None
    mergeable = (
        last is not None
        and last.status is TurnStatus.QUEUED
        and last.attempts == 0
        and last.input.text is not None
        and last.input.kind is TurnKind.USER
        and not last.cancel_requested
        and submission.input.text is not None
        and submission.input.kind is TurnKind.USER
    )
    return last if mergeable else None


def _require_own(turn: MemoryTurn) -> None:
    if turn.merged_into is not None and not turn.finished:
        raise Refused(f"The turn was merged into {turn.merged_into}; cancel that one.")


def _require_storable(submission: Submission) -> None:
    """Raises InvalidInput for text that PostgreSQL does not take."""
    for text in (submission.input.text or "", submission.idempotency_key or ""):
        if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidInput("The input holds characters that cannot be stored.", field="text")
