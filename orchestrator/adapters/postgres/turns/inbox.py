"""The PostgreSQL inbox. One statement accepts most turns, and a transaction handles rare cases.

Callers must wake workers after a submission.
"""

import asyncio
import time
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import psycopg
from sqlalchemy import Row, desc, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.lane_lock import (
    append_event,
    end_turn,
    enqueue_turn,
    lock_lane,
    lock_lane_of_turn,
    unfinished,
)
from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import NOW, lanes, record_of, required, turns
from orchestrator.adapters.postgres.turns.inbox_bound import InboxBound
from orchestrator.errors import InvalidInput, NotFound
from orchestrator.saying import WordFor, unworded
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
    inbox_full,
    require_droppable,
    require_retriable,
    require_room,
    sequence_in_use,
)
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId

_MOST_FULL = 1000
"""Maximum number of sessions with full inboxes that a process remembers."""

# Without signals, which contain prompts and can be larger than all other columns together.
_TURNS = select(*(column for column in turns.c if column is not turns.c.signals))


class PostgresInbox:
    def __init__(
        self,
        database: Database,
        *,
        session_limit: int = 100,
        total_limit: int = 200_000,
        word: WordFor = unworded,
    ) -> None:
        """Create an inbox that limits unfinished turns per session and, approximately, in total.

        `word`: renders the replies of turns that end without an Agent.
        """
        self._database, self._session_limit, self.word = database, session_limit, word
        self._total = InboxBound(database, total_limit)
        self._sessions = PostgresSessions(database)
        self._lines = WeakValueDictionary[SessionId, asyncio.Lock]()
        self._full: set[SessionId] = set()
        """Sessions whose last submission found a full inbox.

        While the inbox stays full, a single read is enough to reject further submissions.
        """

    async def submit(self, submission: Submission) -> Receipt:
        await self._total.admit()
        # Submit a session's turns one at a time. Concurrent submissions would hold connections while they wait
        # for the lane's row.
        async with self._lines.setdefault(submission.session_id, asyncio.Lock()):
            return await self._submit(submission)

    async def _submit(self, submission: Submission) -> Receipt:
        turn_id = _new_turn_id()
        arguments = self._arguments(submission, turn_id)
        if submission.session_id in self._full:
            await self._is_there(submission, arguments)
        try:
            row = await self._database.fetch_one(statement("submit"), arguments)
        except psycopg.errors.UniqueViolation as violation:
            return await self._already_there(submission, violation)
        if row is not None:
            self._total.count()
            note_accepted(turn_id, submission.session_id)
            return Receipt(turn_id, submission.session_id, row[0], TurnStatus.QUEUED, row[1])
        if await self._is_there(submission, arguments):
            return await self._submit_slowly(submission, turn_id)
        return await self._submit_first(submission)

    async def _is_there(self, submission: Submission, arguments: dict[str, Any]) -> bool:
        """Return whether the session exists. Raises InboxFull if the session's inbox is full."""
        found = await self._database.fetch_one(statement("find_refusal"), arguments)
        pending, is_full = found or (0, False)
        if not is_full:
            self._full.discard(submission.session_id)
            return found is not None
        if len(self._full) >= _MOST_FULL:
            self._full.clear()
        self._full.add(submission.session_id)
        raise inbox_full(pending)

    def _arguments(self, submission: Submission, turn_id: TurnId) -> dict[str, Any]:
        columns = _columns(submission, turn_id)
        return {
            **columns,
            "action": None if columns["action"] is None else dump_json(columns["action"]),
            "if_busy": None if submission.if_busy is None else submission.if_busy.value,
            "inbox_limit": self._session_limit,
        }

    async def _already_there(
        self, submission: Submission, violation: psycopg.errors.UniqueViolation
    ) -> Receipt:
        """Return the receipt of the turn with the same idempotency key.

        Raises Refused if the sequence number is in use, or `violation` for any other conflict.
        """
        if submission.idempotency_key is not None:
            async with self._database.transaction() as connection:
                earlier = await _find_by_key(connection, submission)
                if earlier is not None:
                    return await _receipt(connection, earlier)
        if violation.diag.constraint_name == "turns_client_sequence_key":
            raise sequence_in_use(submission) from violation
        raise violation

    async def _submit_slowly(self, submission: Submission, turn_id: TurnId) -> Receipt:
        """Accept a turn that `submit.sql` can't accept, or raise an error that explains the refusal."""
        async with self._database.transaction() as connection:
            lane = await lock_lane(connection, submission.session_id, submission.tenant_id)
            if lane is not None:
                receipt = await self._accept(connection, lane, submission, turn_id)
                self._total.count()
                return receipt
        return await self._submit_first(submission)

    async def _submit_first(self, submission: Submission) -> Receipt:
        """Create the session if the submission permits it, then submit the turn.

        Raises NotFound if the submission doesn't permit this, or InvalidInput if it doesn't name a domain.
        """
        if not submission.create_session:
            raise NotFound("session", submission.session_id)
        if submission.domain is None:
            raise InvalidInput("A new session needs a domain.", field="domain")
        await self._sessions.create(
            submission.tenant_id,
            submission.domain,
            session_id=submission.session_id,
            user_id=submission.user_id,
            if_busy=submission.session_if_busy,
        )
        return await self._submit(submission)

    async def submit_locked(
        self, connection: AsyncConnection, lane: Row[Any], submission: Submission
    ) -> Receipt:
        """Accept a turn in a transaction that has locked its lane, or raise an error that explains the refusal."""
        return await self._accept(connection, lane, submission, _new_turn_id())

    async def _accept(
        self, connection: AsyncConnection, lane: Row[Any], submission: Submission, turn_id: TurnId
    ) -> Receipt:
        earlier = await _find_by_key(connection, submission)
        if earlier is not None:
            return await _receipt(connection, earlier)
        rule = submission.if_busy or IfBusy(lane.if_busy)
        of_users = unfinished(lane.session_id, lane.done_seq).where(turns.c.kind == TurnKind.USER.value)
        first = (await connection.execute(of_users.limit(1))).one_or_none()
        require_room(
            rule,
            closed=lane.closed,
            busy=first is not None,
            pending=lane.pending,
            limit=self._session_limit,
        )
        if await _sequence_exists(connection, submission):
            raise sequence_in_use(submission)
        if rule in {IfBusy.INTERRUPT, IfBusy.ROLLBACK} and first is not None:
            await _ask_to_stop(connection, first.turn_id, forget=rule is IfBusy.ROLLBACK)
        interjects = rule is IfBusy.UNDERSTAND and first is not None
        await _insert_turn(connection, lane, submission, turn_id, interjects=interjects)
        note_accepted(turn_id, submission.session_id)
        return Receipt(turn_id, submission.session_id, lane.next_seq, TurnStatus.QUEUED, lane.pending)

    async def turn(self, tenant_id: TenantId, turn_id: TurnId) -> TurnRecord:
        query = _TURNS.where(turns.c.turn_id == turn_id, turns.c.tenant_id == tenant_id)
        return _turn_record(required(await self._database.read_one(query), "turn", turn_id))

    async def submitted_as(
        self, tenant_id: TenantId, idempotency_key: str, session_id: SessionId | None = None
    ) -> list[TurnRecord]:
        query = _TURNS.where(
            turns.c.idempotency_key == idempotency_key, turns.c.tenant_id == tenant_id
        ).limit(2)
        if session_id is not None:
            query = query.where(turns.c.session_id == session_id)
        return [_turn_record(row) for row in await self._database.read_all(query)]

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
            lane, turn = await lock_lane_of_turn(connection, tenant_id, turn_id)
            if turn.status == TurnStatus.QUEUED:
                await end_turn(
                    connection, lane, turn, TurnStatus.CANCELLED, "canceled before it ran", self.word
                )
            elif turn.status == TurnStatus.RUNNING:
                await _ask_to_stop(connection, turn_id, forget=False)
        return await self.turn(tenant_id, turn_id)

    async def retry(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        async with self._database.transaction() as connection:
            lane, turn = await lock_lane_of_turn(connection, tenant_id, turn_id)
            require_looked_at(moved=lane.epoch != signed["epoch"])
            require_retriable(_turn_record(turn))
            await append_event(connection, lane.session_id, None, REPAIRED, signed)
            await _queue_again(connection, lane, turn)
        return await self.turn(tenant_id, turn_id)

    async def drop(self, tenant_id: TenantId, turn_id: TurnId, signed: JsonObject) -> TurnRecord:
        async with self._database.transaction() as connection:
            lane, turn = await lock_lane_of_turn(connection, tenant_id, turn_id)
            require_looked_at(moved=lane.epoch != signed["epoch"])
            require_droppable(_turn_record(turn))
            await append_event(connection, lane.session_id, None, REPAIRED, signed)
            why = turn.error or "dropped by an operator"
            await end_turn(connection, lane, turn, TurnStatus.CANCELLED, why, self.word)
        return await self.turn(tenant_id, turn_id)


def _columns(submission: Submission, turn_id: TurnId) -> dict[str, Any]:
    given = submission.input
    return {
        "session_id": submission.session_id,
        "tenant_id": submission.tenant_id,
        "turn_id": turn_id,
        "idempotency_key": submission.idempotency_key,
        "client_sequence": submission.sequence,
        "kind": given.kind.value,
        "form": given.form,
        "text": given.text,
        "action": given.action,
        "timezone": given.timezone,
        "locale": given.locale,
    }


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


async def _receipt(connection: AsyncConnection, turn: Row[Any]) -> Receipt:
    """Return the receipt of a turn that was already accepted."""
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
        repeated=True,
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
    *,
    interjects: bool,
) -> None:
    """Insert a turn at the end of the queue. `interjects`: True if the running turn classifies the new turn."""
    given = submission.input
    columns = _columns(submission, turn_id) | {
        "seq": lane.next_seq,
        "timezone": given.timezone or lane.timezone,
        "locale": given.locale or lane.locale,
        "interjects": interjects or None,
    }
    await connection.execute(insert(turns).values(columns))
    named = {
        "timezone": given.timezone,
        "locale": given.locale,
        "said_seq": lane.next_seq if interjects else None,
    }
    if kept := {name: value for name, value in named.items() if value is not None}:
        await connection.execute(update(lanes).where(lanes.c.session_id == lane.session_id).values(kept))
    await enqueue_turn(connection, lane, turn_id)


async def _queue_again(connection: AsyncConnection, lane: Row[Any], turn: Row[Any]) -> None:
    """Requeue a quarantined turn as the session's last turn, with all attempts available."""
    await connection.execute(
        update(turns)
        .where(turns.c.turn_id == turn.turn_id)
        .values(
            seq=lane.next_seq,
            status=TurnStatus.QUEUED.value,
            attempts=0,
            error=None,
            result=None,
            interjects=None,
            cancel_requested_at=None,
            deadline_at=None,
            finished_at=None,
            quarantined_at=None,
        )
    )
    await enqueue_turn(connection, lane, turn.turn_id)


def _new_turn_id() -> TurnId:
    """Return an ID that starts with a timestamp, so that successive turns are adjacent in the index."""
    return TurnId(f"turn_{time.time_ns() // 1_000_000:012x}{uuid4().hex[:20]}")


def _turn_record(row: Row[Any]) -> TurnRecord:
    return record_of(
        TurnRecord,
        row,
        input=record_of(TurnInput, row),
        cancel_requested=row.cancel_requested_at is not None,
    )
