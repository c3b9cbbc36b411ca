"""Sessions in PostgreSQL: records, history, earlier states (ST-2) and forks (ST-4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import orjson
from sqlalchemy import Row, Select, desc, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_or_skip
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.lane_lock import append_event, free_lane, require_lane
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import run_named
from orchestrator.adapters.postgres.states import DIFFS, fold
from orchestrator.adapters.postgres.tables import (
    NOW,
    lanes,
    plan_revisions,
    plans,
    record_of,
    required,
    sessions,
    state_history,
    states,
    utterances,
)
from orchestrator.adapters.postgres.webhooks import add_webhook
from orchestrator.dialogue.storage.branching import branch_state
from orchestrator.dialogue.storage.serialization import diff, outline_of, rebuild
from orchestrator.dialogue.storage.upgrade import keep_labels
from orchestrator.errors import NotFound, SessionBusy
from orchestrator.turns.lease import AGENT
from orchestrator.turns.plan import PlanRecord, PlanRevision, show_plan, show_revision
from orchestrator.turns.repair import REPAIRED, require_held
from orchestrator.turns.turn import (
    LONGEST_TITLE,
    IfBusy,
    SessionRecord,
    require_branch,
    session_in_use,
)
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, UserId, new_id


class PostgresSessions:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self,
        tenant_id: TenantId,
        domain: str,
        *,
        session_id: SessionId | None = None,
        user_id: UserId | None = None,
        if_busy: IfBusy = IfBusy.UNDERSTAND,
        webhook: str | None = None,
        timezone: str | None = None,
        locale: str | None = None,
    ) -> SessionRecord:
        identifier = session_id or SessionId(new_id("session"))
        facts = {
            "session_id": identifier,
            "tenant_id": tenant_id,
            "user_id": user_id,
            "domain": domain,
        }
        lane: dict[str, Any] = {
            "session_id": identifier,
            "tenant_id": tenant_id,
            "if_busy": if_busy.value,
            "timezone": timezone or _last_of_user("timezone", tenant_id, user_id),
            "locale": locale or _last_of_user("locale", tenant_id, user_id),
        }
        async with self._database.transaction() as connection:
            made = insert_or_skip(sessions).values(facts).on_conflict_do_nothing()
            new = (await connection.execute(made.returning(sessions.c.session_id))).one_or_none()
            if new is not None and webhook is not None:
                await add_webhook(connection, tenant_id, webhook, session_id=identifier)
            await connection.execute(insert_or_skip(lanes).values(lane).on_conflict_do_nothing())
            found = await connection.execute(_joined().where(sessions.c.session_id == identifier))
            row = found.one_or_none()  # None if another tenant has the session
        if row is None or row.tenant_id != tenant_id or row.domain != domain:
            raise session_in_use(identifier)
        return record_of(SessionRecord, row)

    async def get(self, tenant_id: TenantId, session_id: SessionId) -> SessionRecord:
        query = (
            _joined()
            .add_columns(states.c.body, DIFFS, _TITLE)
            .outerjoin(states, states.c.session_id == sessions.c.session_id)
            .where(sessions.c.session_id == session_id, sessions.c.tenant_id == tenant_id)
        )
        row = required(await self._database.read_one(query), "session", session_id)
        return record_of(SessionRecord, row, state=None if row.body is None else rebuild(row.body, row.diffs))

    async def list(
        self, tenant_id: TenantId, *, user_id: UserId | None = None, limit: int = 100
    ) -> list[SessionRecord]:
        query = (
            _joined()
            .add_columns(_TITLE)
            .where(lanes.c.tenant_id == tenant_id)
            .order_by(desc(lanes.c.updated_at))
            .limit(limit)
        )
        if user_id is not None:
            query = query.where(sessions.c.user_id == user_id)
        return [record_of(SessionRecord, row) for row in await self._database.read_all(query)]

    async def owner(self, tenant_id: TenantId, session_id: SessionId) -> UserId | None:
        query = select(sessions.c.user_id).where(
            sessions.c.session_id == session_id, sessions.c.tenant_id == tenant_id
        )
        return required(await self._database.read_one(query), "session", session_id).user_id

    async def close(self, tenant_id: TenantId, session_id: SessionId) -> SessionRecord:
        async with self._database.transaction() as connection:
            lane = await require_lane(connection, tenant_id, session_id)
            await _make_checkpoint(connection, session_id, Epoch(lane.epoch))
            await connection.execute(
                update(sessions)
                .where(sessions.c.session_id == session_id, sessions.c.closed_at.is_(None))
                .values(closed_at=NOW)
            )
            await connection.execute(
                update(lanes).where(lanes.c.session_id == session_id).values(closed=True, updated_at=NOW)
            )
        return await self.get(tenant_id, session_id)

    async def history(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        before: int | None = None,
        until: Epoch | None = None,
        limit: int = 200,
    ) -> list[JsonObject]:
        line = utterances.c
        newest = (
            select(utterances)
            .where(line.session_id == session_id, line.tenant_id == tenant_id)
            .order_by(desc(line.epoch), desc(line.seq))
            .limit(limit)
        )
        if before is not None:
            newest = newest.where(line.seq < before)
        if until is not None:
            newest = newest.where(line.epoch <= until)
        rows = await self._database.read_all(newest)
        if not rows:
            await self.get(tenant_id, session_id)
        return [line for row in reversed(rows) for line in _lines(row)][-limit:]

    async def plan(self, tenant_id: TenantId, session_id: SessionId) -> JsonObject:
        latest = (
            select(plans)
            .where(plans.c.session_id == session_id, plans.c.tenant_id == tenant_id)
            .order_by(desc(plans.c.at))
            .limit(1)
        )
        kept = plan_revisions.c
        async with self._database.transaction() as connection:
            row = (await connection.execute(latest)).one_or_none()
            if row is None:
                raise NotFound("plan of session", session_id)
            revised = select(plan_revisions).where(
                kept.session_id == session_id, kept.tenant_id == tenant_id, kept.plan_id == row.plan_id
            )
            rows = (await connection.execute(revised.order_by(kept.epoch, kept.number))).all()
        revisions = [
            show_revision(record_of(PlanRevision, each), each.turn_id, each.at.isoformat()) for each in rows
        ]
        return show_plan(record_of(PlanRecord, row), row.turn_id, row.at.isoformat(), revisions)

    async def state_at(self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch) -> JsonObject:
        async with self._database.transaction() as connection:
            return await _rebuild(connection, tenant_id, session_id, epoch)

    async def release_lane(
        self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch, signed: JsonObject
    ) -> SessionRecord:
        async with self._database.transaction() as connection:
            lane = await require_lane(connection, tenant_id, session_id)
            require_held(held=lane.lease_owner is not None, moved=lane.epoch != epoch)
            await free_lane(connection, lane)
            await append_event(connection, session_id, None, REPAIRED, signed)
        return await self.get(tenant_id, session_id)

    async def rollback(self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch) -> SessionRecord:
        async with self._database.transaction() as connection:
            lane = await require_lane(connection, tenant_id, session_id)
            if lane.pending > 0:
                raise SessionBusy("The session has unfinished turns; roll it back when they are done.")
            present = await _rebuild(connection, tenant_id, session_id, Epoch(lane.epoch))
            wanted = keep_labels(await _rebuild(connection, tenant_id, session_id, epoch), present)
            following = lane.epoch + 1
            await connection.execute(
                update(lanes).where(lanes.c.session_id == session_id).values(epoch=following, updated_at=NOW)
            )
            await connection.execute(
                update(states)
                .where(states.c.session_id == session_id)
                .values(epoch=following, base_epoch=following, body=wanted, **asdict(outline_of(wanted)))
            )
            await connection.execute(
                insert(state_history).values(
                    session_id=session_id,
                    epoch=following,
                    tenant_id=tenant_id,
                    diff=diff(present, wanted),
                    snapshot=wanted,
                )
            )
        return await self.get(tenant_id, session_id)

    async def branch(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        epoch: Epoch | None = None,
        branch_id: SessionId | None = None,
    ) -> SessionRecord:
        identifier = branch_id or SessionId(new_id("session"))
        since = (await self.get(tenant_id, session_id)).epoch if epoch is None else epoch
        async with self._database.transaction() as connection:
            state = await _rebuild(connection, tenant_id, session_id, since)
            await run_named(
                connection,
                "branch",
                branch_id=identifier,
                session_id=session_id,
                tenant_id=tenant_id,
                epoch=since,
                **_branch_arguments(state, branch_state(state, identifier)),
            )
        known = _joined().where(sessions.c.session_id == identifier, sessions.c.tenant_id == tenant_id)
        row = await self._database.read_one(known)
        if row is None:
            raise session_in_use(identifier)
        found = record_of(SessionRecord, row)
        require_branch(found, session_id, epoch)
        return found


def _branch_arguments(state: JsonObject, made: JsonObject) -> dict[str, Any]:
    return {
        "body": orjson.dumps(made).decode(),
        "diff": orjson.dumps(diff(state, made)).decode(),
        **asdict(outline_of(made)),
        "known": [note["fingerprint"] for note in made.get("effects", ()) if note.get("fingerprint")],
        "stack": orjson.dumps(made["stack"]).decode(),
    }


_TITLE = (
    select(func.left(utterances.c.content, LONGEST_TITLE))
    .where(
        utterances.c.session_id == sessions.c.session_id,
        utterances.c.role == "user",
        utterances.c.form == "text",
    )
    .order_by(utterances.c.epoch)
    .limit(1)
    .scalar_subquery()
    .label("title")
)


def _lines(row: Row[Any]) -> Iterator[JsonObject]:
    """Yield the input and the reply from an `utterances` row."""
    for role, form, content in ((row.role, row.form, row.content), (AGENT, "text", row.reply)):
        if content is not None:
            line = {"turn_id": row.turn_id, "seq": row.seq, "role": role, "form": form, "content": content}
            yield line | {"at": row.at.isoformat()}


def _last_of_user(name: str, tenant_id: TenantId, user_id: UserId | None) -> Any:
    """Return a subquery for the `timezone` or `locale` of the user's newest session that has one.

    Return None if there is no user.
    """
    if user_id is None:
        return None
    column = lanes.c[name]
    return (
        select(column)
        .join_from(sessions, lanes, lanes.c.session_id == sessions.c.session_id)
        .where(sessions.c.tenant_id == tenant_id, sessions.c.user_id == user_id, column.is_not(None))
        .order_by(desc(sessions.c.created_at))
        .limit(1)
        .scalar_subquery()
    )


def _joined() -> Select[*tuple[Any, ...]]:
    return select(
        sessions.c.session_id,
        sessions.c.tenant_id,
        sessions.c.user_id,
        sessions.c.domain,
        sessions.c.created_at,
        lanes.c.epoch,
        lanes.c.closed,
        lanes.c.pending,
        lanes.c.updated_at,
        lanes.c.if_busy,
        sessions.c.parent,
        sessions.c.parent_epoch,
        sessions.c.root,
        lanes.c.timezone,
        lanes.c.locale,
    ).join_from(sessions, lanes, lanes.c.session_id == sessions.c.session_id)


async def _make_checkpoint(connection: AsyncConnection, session_id: SessionId, epoch: Epoch) -> None:
    """Store a snapshot at this epoch, so that the session can be restored without diffs (CO-1)."""
    state = await fold(connection, session_id)
    kept = state_history.c
    if state is not None:
        await connection.execute(
            update(state_history)
            .where(kept.session_id == session_id, kept.epoch == epoch, kept.snapshot.is_(None))
            .values(snapshot=state)
        )


async def _rebuild(
    connection: AsyncConnection, tenant_id: TenantId, session_id: SessionId, epoch: Epoch
) -> JsonObject:
    """Return the state at an epoch, rebuilt from the latest snapshot up to then and later diffs. Raises NotFound."""
    kept = state_history.c
    base = (
        select(kept.epoch)
        .where(kept.session_id == session_id, kept.epoch <= epoch, kept.snapshot.is_not(None))
        .order_by(desc(kept.epoch))
        .limit(1)
        .scalar_subquery()
    )
    rows = (
        await connection.execute(
            select(kept.epoch, kept.diff, kept.snapshot)
            .where(
                kept.session_id == session_id,
                kept.tenant_id == tenant_id,
                kept.epoch.between(base, epoch),
            )
            .order_by(kept.epoch)
        )
    ).all()
    if not rows or rows[-1].epoch != epoch:
        raise NotFound(f"epoch {epoch} of session", session_id)
    return rebuild(rows[0].snapshot, (row.diff for row in rows[1:]))
