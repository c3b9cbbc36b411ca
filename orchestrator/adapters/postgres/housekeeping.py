"""Find what is idle or old, and remove it, on PostgreSQL. Works in batches; nothing here is urgent."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import func, select, text

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.rows import record_of
from orchestrator.adapters.postgres.tables import lanes, metadata, sessions, states
from orchestrator.memory.user_memory import owner_of
from orchestrator.ports.housekeeping import SessionState, SlotUse
from orchestrator.types import Epoch, SessionId, TenantId, UserId

_PARENTS = ("turns", "lanes", "states", "sessions")
"""Tables that others refer to, or that say which session it is: they come last."""
_OF_SESSION = (
    *sorted(
        name for name, table in metadata.tables.items() if "session_id" in table.c and name not in _PARENTS
    ),
    *_PARENTS,
)
"""Tables with rows of sessions, in an order in which these can be removed: all that the schema has."""

_LOOK_BACK_S = 86_400.0

_OLD = {
    "journal": "turn_id IN (SELECT turn_id FROM turns WHERE finished_at < {old})",
    "events": "at < {old}",
    "outbox": "acknowledged_at < {old}",
    "internal_items": "run_id IN (SELECT run_id FROM internal_runs WHERE finished_at < {old})",
    "internal_runs": "finished_at < {old} AND NOT EXISTS "
    "(SELECT FROM internal_items WHERE internal_items.run_id = internal_runs.run_id)",
    "schedule_firings": "fired_at < {old}",
}


class PostgresHousekeeping:
    """The tool `housekeeping` of Internal flows, over all tenants. Every method raises Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def state(self, tenant_id: TenantId, session_id: SessionId) -> SessionState | None:
        """None: the session is not there, or nothing has happened in it."""
        query = _with_state().where(sessions.c.session_id == session_id, sessions.c.tenant_id == tenant_id)
        row = await self._database.read_one(query)
        return None if row is None else _state(row)

    async def states(self, *, quiet_for_s: float, after: str = "", limit: int = 500) -> list[SessionState]:
        """Open sessions of all tenants with tasks on their stack or approvals, quiet for so long, by identifier."""
        query = (
            _with_state()
            .where(
                lanes.c.closed.is_(False),
                lanes.c.updated_at < _ago(quiet_for_s),
                sessions.c.session_id > after,
                text(
                    "(json_array_length(states.body::json -> 'stack') > 0"
                    " OR json_array_length(states.body::json -> 'approvals') > 0)"
                ),
            )
            .order_by(sessions.c.session_id)
            .limit(limit)
        )
        return [
            record_of(SessionState, row, state=orjson.loads(row.body))
            for row in await self._database.read_all(query)
        ]

    async def idle(self, *, idle_s: float, limit: int = 500) -> list[tuple[TenantId, SessionId]]:
        """Open sessions without activity for so long."""
        query = (
            select(lanes.c.tenant_id, lanes.c.session_id)
            .where(lanes.c.closed.is_(False), lanes.c.pending == 0, lanes.c.updated_at < _ago(idle_s))
            .limit(limit)
        )
        return await self._names(query)

    async def expired(self, *, retention_s: float, limit: int = 500) -> list[tuple[TenantId, SessionId]]:
        """Sessions closed for so long."""
        query = (
            select(sessions.c.tenant_id, sessions.c.session_id)
            .where(sessions.c.closed_at < _ago(retention_s))
            .limit(limit)
        )
        return await self._names(query)

    async def delete_session(self, tenant_id: TenantId, session_id: SessionId) -> None:
        """Remove a closed session with everything it left."""
        async with self._database.transaction() as connection:
            await connection.execute(
                text(
                    "DELETE FROM internal_items USING internal_runs AS runs WHERE internal_items.run_id = runs.run_id"
                    " AND runs.session_id = :session AND runs.tenant_id = :tenant"
                ),
                {"session": session_id, "tenant": tenant_id},
            )
            for table in _OF_SESSION:
                await connection.execute(
                    text(f"DELETE FROM {table} WHERE session_id = :session AND tenant_id = :tenant"),  # noqa: S608
                    {"session": session_id, "tenant": tenant_id},
                )
            # What was remembered of a user whom nobody knew was to last as long as the session.
            await connection.execute(
                text("DELETE FROM preferences WHERE user_id = :owner AND tenant_id = :tenant"),
                {"owner": owner_of(None, session_id), "tenant": tenant_id},
            )

    async def prune_archive(self, *, keep_flows: int, keep_epochs: int, limit: int = 5000) -> dict[str, int]:
        """Remove archived flows and old epochs beyond so many per session; counts by table (ST-3)."""
        flows = (
            "DELETE FROM flows_archive WHERE (session_id, flow_id) IN (SELECT session_id, flow_id FROM"
            " (SELECT session_id, flow_id, row_number() OVER"
            " (PARTITION BY session_id ORDER BY at DESC) AS place FROM flows_archive) AS ranked"
            " WHERE place > :keep LIMIT :limit)"
        )
        # An epoch can be rebuilt from the snapshot before it: the newest one that is old enough stays.
        epochs = (
            "DELETE FROM state_history WHERE (session_id, epoch) IN (SELECT old.session_id, old.epoch"
            " FROM state_history AS old JOIN LATERAL (SELECT max(kept.epoch) AS epoch FROM state_history AS kept"
            " JOIN lanes ON lanes.session_id = kept.session_id WHERE kept.session_id = old.session_id"
            " AND kept.snapshot IS NOT NULL AND kept.epoch <= lanes.epoch - :keep) AS base ON true"
            " WHERE old.epoch < base.epoch LIMIT :limit)"
        )
        return {
            "flows_archive": await self._delete(flows, {"keep": keep_flows, "limit": limit}),
            "state_history": await self._delete(epochs, {"keep": keep_epochs, "limit": limit}),
        }

    async def prune_runtime(self, *, older_than_s: float, limit: int = 5000) -> dict[str, int]:
        """Remove events, journal entries, sent messages, runs and firings that are old; counts by table."""
        counts: dict[str, int] = {}
        for table, rule in _OLD.items():
            condition = rule.format(old="clock_timestamp() - :old * interval '1 second'")
            statement = (
                f"DELETE FROM {table} WHERE ctid = ANY(ARRAY("  # noqa: S608
                f"SELECT ctid FROM {table} WHERE {condition} LIMIT :limit))"
            )
            counts[table] = await self._delete(statement, {"old": older_than_s, "limit": limit})
        return counts

    async def slot_uses(self, tenant_id: TenantId, user_id: UserId) -> list[SlotUse]:
        """The user's values of completed tasks, with how often each was used."""
        query = text(
            "SELECT archive.dact, slot.key, slot.value -> 'value', count(*)"
            " FROM flows_archive AS archive JOIN sessions ON sessions.session_id = archive.session_id"
            " CROSS JOIN LATERAL jsonb_each(archive.body::jsonb -> 'slots') AS slot"
            " WHERE sessions.tenant_id = :tenant AND sessions.user_id = :user"
            " AND archive.state = 'Completed' AND slot.value ->> 'source' = 'user'"
            " GROUP BY 1, 2, 3 ORDER BY 1, 2, 4 DESC"
        )
        rows = await self._database.read_all(query, {"tenant": tenant_id, "user": user_id})
        return [SlotUse(*row) for row in rows]

    async def unsummarised(
        self, *, idle_s: float, least_turns: int, limit: int = 100
    ) -> list[tuple[TenantId, SessionId, Epoch]]:
        """Open sessions at rest for so long with at least so many turns that no summary covers."""
        uncovered = text(
            "(states.body::json ->> 'turn')::int"
            " - coalesce((states.body::json -> 'summary' ->> 'through_turn')::int, 0) >= :least"
        ).bindparams(least=least_turns)
        query = (
            select(lanes.c.tenant_id, lanes.c.session_id, lanes.c.epoch)
            .join(states, states.c.session_id == lanes.c.session_id)
            .where(
                lanes.c.closed.is_(False),
                lanes.c.pending == 0,
                # Older ones were looked at before; what failed then is not tried for ever.
                lanes.c.updated_at.between(_ago(idle_s + _LOOK_BACK_S), _ago(idle_s)),
                uncovered,
            )
            .order_by(lanes.c.updated_at)
            .limit(limit)
        )
        rows = await self._database.read_all(query)
        return [(TenantId(row.tenant_id), SessionId(row.session_id), Epoch(row.epoch)) for row in rows]

    async def _delete(self, statement: str, arguments: dict[str, Any]) -> int:
        return await self._database.write(text(statement), arguments)

    async def _names(self, query: Any) -> list[tuple[TenantId, SessionId]]:
        rows = await self._database.read_all(query)
        return [(TenantId(row.tenant_id), SessionId(row.session_id)) for row in rows]


def _ago(seconds: float) -> Any:
    return func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, seconds)


def _with_state() -> Any:
    return (
        select(
            sessions.c.tenant_id,
            sessions.c.session_id,
            sessions.c.user_id,
            sessions.c.domain,
            states.c.epoch,
            states.c.body,
        )
        .join(lanes, lanes.c.session_id == sessions.c.session_id)
        .join(states, states.c.session_id == sessions.c.session_id)
    )


def _state(row: Any) -> SessionState:
    return record_of(SessionState, row, state=orjson.loads(row.body))
