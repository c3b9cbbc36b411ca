"""The inbox on PostgreSQL: one merged statement accepts a turn; what is rare takes a transaction.

Knows nothing of wake-ups: who submits wakes the workers after this has returned.
"""

import time
from typing import Any
from uuid import uuid4

import orjson
import psycopg
from sqlalchemy import Row, desc, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.lane_lock import (
    append_event,
    end_turn,
    lock_lane,
    lock_lane_of_turn,
    unfinished,
)
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import NOW, lanes, record_of, required, turns
from orchestrator.adapters.postgres.turns.inbox_bound import InboxBound
from orchestrator.errors import InvalidInput, NotFound
from orchestrator.telemetry.traces import note_accepted
from orchestrator.turns.repair import REPAIRED, require_looked_at
from orchestrator.turns.turn import (
    IfBusy,
    Receipt,
    Submission,
    TurnInput,
    TurnKind,
    TurnRecord,
    TurnStatus,
    find_mergeable,
    require_droppable,
    require_own,
    require_retriable,
    require_room,
    sequence_in_use,
)
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId

# Without signals, which hold kept prompts and may be many times as long as all the rest.
_TURNS = select(*(column for column in turns.c if column is not turns.c.signals))


class PostgresInbox:
    def __init__(self, database: Database, *, session_limit: int = 100, total_limit: int = 200_000) -> None:
        """Both limits count unfinished turns; the total is an estimate of this process."""
        self._database = database
        self._session_limit = session_limit
        self._total = InboxBound(database, total_limit)
        self._sessions = PostgresSessions(database)
        self._submit = statement("submit")

    async def submit(self, submission: Submission) -> Receipt:
        await self._total.admit()
        turn_id = _new_turn_id()
        try:
            row = await self._database.fetch_one(self._submit, self._arguments(submission, turn_id))
        except psycopg.errors.UniqueViolation as violation:
            return await self._already_there(submission, violation)
        if row is not None:
            self._total.count()
            note_accepted(turn_id, submission.session_id)
            return Receipt(turn_id, submission.session_id, row[0], TurnStatus.QUEUED, row[1])
        return await self._submit_slowly(submission, turn_id)

    def _arguments(self, submission: Submission, turn_id: TurnId) -> dict[str, Any]:
        action = submission.input.action
        return {
            "session_id": submission.session_id,
            "tenant_id": submission.tenant_id,
            "turn_id": turn_id,
            "idempotency_key": submission.idempotency_key,
            "client_sequence": submission.sequence,
            "kind": submission.input.kind.value,
            "form": submission.input.form,
            "text": submission.input.text,
            "action": None if action is None else orjson.dumps(action).decode(),
            "if_busy": None if submission.if_busy is None else submission.if_busy.value,
            "inbox_limit": self._session_limit,
        }

    async def _already_there(
        self, submission: Submission, violation: psycopg.errors.UniqueViolation
    ) -> Receipt:
        """The key was used before (the earlier turn is the answer), or the sequence was."""
        if submission.idempotency_key is not None:
            async with self._database.transaction() as connection:
                earlier = await _find_by_key(connection, submission)
                if earlier is not None:
                    return await _receipt(connection, earlier, repeated=True)
        if violation.diag.constraint_name == "turns_client_sequence_key":
            raise sequence_in_use(submission) from violation
        raise violation

    async def _submit_slowly(self, submission: Submission, turn_id: TurnId) -> Receipt:
        """Treat what the merged statement did not take: raise the reason, or follow a rule beyond enqueue."""
        async with self._database.transaction() as connection:
            lane = await lock_lane(connection, submission.session_id, submission.tenant_id)
            if lane is not None:
                receipt = await self._submit_locked(connection, lane, submission, turn_id)
                self._total.count()
                return receipt
        if not submission.create_session:
            raise NotFound("session", submission.session_id)
        if submission.domain is None:
            raise InvalidInput("A session that does not exist yet needs a domain.", field="domain")
        await self._sessions.create(
            submission.tenant_id,
            submission.domain,
            session_id=submission.session_id,
            user_id=submission.user_id,
            if_busy=submission.session_if_busy,
        )
        return await self.submit(submission)

    async def _submit_locked(
        self, connection: AsyncConnection, lane: Row[Any], submission: Submission, turn_id: TurnId
    ) -> Receipt:
        earlier = await _find_by_key(connection, submission)
        if earlier is not None:
            return await _receipt(connection, earlier, repeated=True)
        rule = submission.if_busy or IfBusy(lane.if_busy)
        queue = await connection.execute(unfinished(lane.session_id, lane.done_seq))
        waiting = [_turn_record(row) for row in queue]
        of_users = [turn for turn in waiting if turn.input.kind is TurnKind.USER]
        require_room(
            rule,
            closed=lane.closed,
            busy=bool(of_users),
            pending=lane.pending,
            limit=self._session_limit,
        )
        if await _sequence_exists(connection, submission):
            raise sequence_in_use(submission)
        target = find_mergeable(waiting, submission) if rule is IfBusy.MERGE else None
        if rule in {IfBusy.INTERRUPT, IfBusy.ROLLBACK} and of_users:
            await _ask_to_stop(connection, of_users[0].turn_id, forget=rule is IfBusy.ROLLBACK)
        interjects = rule is IfBusy.UNDERSTAND and bool(of_users)
        await _insert_turn(connection, lane, submission, turn_id, target, interjects=interjects)
        note_accepted(turn_id, submission.session_id)
        return Receipt(turn_id, submission.session_id, lane.next_seq, TurnStatus.QUEUED, lane.pending)

    async def turn(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        query = _TURNS.where(turns.c.turn_id == turn_id, turns.c.tenant_id == tenant_id)
        return _turn_record(required(await self._database.read_one(query), "turn", turn_id))

    async def turns(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        status: TurnStatus | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[TurnRecord]:
        query = _TURNS.where(turns.c.tenant_id == tenant_id).limit(limit)
        if session_id is None:
            query = query.order_by(desc(turns.c.turn_id))
        else:
            query = query.where(turns.c.session_id == session_id).order_by(desc(turns.c.seq))
        if before is not None:
            query = query.where(turns.c.seq < before)
        if status is TurnStatus.QUARANTINED:
            query = query.where(turns.c.quarantined_at.is_not(None))
        elif status is not None:
            query = query.where(turns.c.status == status.value)
        return [_turn_record(row) for row in await self._database.read_all(query)]

    async def cancel(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        async with self._database.transaction() as connection:
            lane, turn = await _locked(connection, tenant_id, turn_id)
            if turn.status == TurnStatus.QUEUED:
                require_own(_turn_record(turn))
                await end_turn(connection, lane, turn, TurnStatus.CANCELLED, "cancelled before it ran")
            elif turn.status == TurnStatus.RUNNING:
                await _ask_to_stop(connection, turn_id, forget=False)
        return await self.turn(tenant_id, turn_id)

    async def retry(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        async with self._database.transaction() as connection:
            lane, turn = await _locked(connection, tenant_id, turn_id)
            require_looked_at(moved=lane.epoch != signed["epoch"])
            require_retriable(_turn_record(turn))
            await append_event(connection, lane.session_id, None, REPAIRED, signed)
            await _queue_again(connection, lane, turn)
        return await self.turn(tenant_id, turn_id)

    async def drop(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        async with self._database.transaction() as connection:
            lane, turn = await _locked(connection, tenant_id, turn_id)
            require_looked_at(moved=lane.epoch != signed["epoch"])
            require_droppable(_turn_record(turn))
            await append_event(connection, lane.session_id, None, REPAIRED, signed)
            await end_turn(
                connection, lane, turn, TurnStatus.CANCELLED, turn.error or "dropped by an operator"
            )
        return await self.turn(tenant_id, turn_id)


async def _locked(
    connection: AsyncConnection, tenant_id: TenantId, turn_id: TurnId
) -> tuple[Row[Any], Row[Any]]:
    found = await lock_lane_of_turn(connection, tenant_id, turn_id)
    if found is None:
        raise NotFound("turn", turn_id)
    return found


async def _find_by_key(connection: AsyncConnection, submission: Submission) -> Row[Any] | None:
    if submission.idempotency_key is None:
        return None
    query = select(turns).where(
        turns.c.session_id == submission.session_id,
        turns.c.tenant_id == submission.tenant_id,
        turns.c.idempotency_key == submission.idempotency_key,
    )
    return (await connection.execute(query)).one_or_none()


async def _sequence_exists(connection: AsyncConnection, submission: Submission) -> bool:
    if submission.sequence is None:
        return False
    query = select(turns.c.turn_id).where(
        turns.c.session_id == submission.session_id, turns.c.client_sequence == submission.sequence
    )
    return (await connection.execute(query)).one_or_none() is not None


async def _receipt(connection: AsyncConnection, turn: Row[Any], *, repeated: bool) -> Receipt:
    before = select(func.count()).select_from(
        unfinished(turn.session_id, 0).where(turns.c.seq < turn.seq).subquery()
    )
    position = 0 if turn.finished_at is not None else (await connection.execute(before)).scalar_one()
    return Receipt(
        TurnId(turn.turn_id),
        SessionId(turn.session_id),
        turn.seq,
        TurnStatus(turn.status),
        position,
        repeated,
    )


async def _ask_to_stop(connection: AsyncConnection, turn_id: str, *, forget: bool) -> None:
    await connection.execute(
        update(turns)
        .where(turns.c.turn_id == turn_id, turns.c.finished_at.is_(None))
        .values(cancel_requested_at=func.coalesce(turns.c.cancel_requested_at, NOW), forget=forget)
    )


async def _insert_turn(
    connection: AsyncConnection,
    lane: Row[Any],
    submission: Submission,
    turn_id: TurnId,
    target: TurnRecord | None,
    *,
    interjects: bool,
) -> None:
    """Insert at the end of the queue, or as merged into the last waiting turn; `interjects`: it is to be heard."""
    given = submission.input
    await connection.execute(
        insert(turns).values(
            turn_id=turn_id,
            session_id=submission.session_id,
            tenant_id=submission.tenant_id,
            seq=lane.next_seq,
            client_sequence=submission.sequence,
            idempotency_key=submission.idempotency_key,
            kind=given.kind.value,
            form=given.form,
            text=given.text,
            action=given.action,
            merged_into=None if target is None else target.turn_id,
            interjects=interjects or None,
        )
    )
    if interjects:
        said = update(lanes).where(lanes.c.session_id == lane.session_id).values(said_seq=lane.next_seq)
        await connection.execute(said)
    if target is not None:
        await connection.execute(
            update(turns)
            .where(turns.c.turn_id == target.turn_id)
            .values(text=f"{target.input.text}\n{given.text}", merges=turns.c.merges + 1)
        )
    await _enqueue(connection, lane, turn_id, counted=target is None)


async def _queue_again(connection: AsyncConnection, lane: Row[Any], turn: Row[Any]) -> None:
    """A quarantined turn as the session's last one, with all its attempts before it."""
    await connection.execute(
        update(turns)
        .where(turns.c.turn_id == turn.turn_id)
        .values(
            seq=lane.next_seq,
            status=TurnStatus.QUEUED.value,
            attempts=0,
            error=None,
            result=None,
            merges=0,
            interjects=None,
            cancel_requested_at=None,
            deadline_at=None,
            finished_at=None,
            quarantined_at=None,
        )
    )
    await _enqueue(connection, lane, turn.turn_id)


async def _enqueue(
    connection: AsyncConnection, lane: Row[Any], turn_id: str, *, counted: bool = True
) -> None:
    """Note on the lane, and in the session's log, that a turn has taken its next place."""
    await connection.execute(
        update(lanes)
        .where(lanes.c.session_id == lane.session_id)
        .values(
            next_seq=lanes.c.next_seq + 1,
            pending=lanes.c.pending + int(counted),
            ready_at=NOW if lane.pending == 0 else lane.ready_at,
            check_at=func.least(lanes.c.check_at, NOW),
            updated_at=NOW,
        )
    )
    await append_event(connection, lane.session_id, turn_id, "accepted", {"seq": lane.next_seq})


def _new_turn_id() -> TurnId:
    """An identifier that begins with its time: neighbours in time are neighbours in the index."""
    return TurnId(f"turn_{time.time_ns() // 1_000_000:012x}{uuid4().hex[:20]}")


def _turn_record(row: Row[Any]) -> TurnRecord:
    return record_of(
        TurnRecord,
        row,
        input=record_of(TurnInput, row),
        cancel_requested=row.cancel_requested_at is not None,
    )
