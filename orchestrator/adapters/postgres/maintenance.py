"""Maintenance of PostgreSQL data: find idle, inconsistent and expired sessions, repair rows, and delete old data."""

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, or_, select, text, true
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import parse, run_named, statement
from orchestrator.adapters.postgres.states import DIFFS
from orchestrator.adapters.postgres.tables import NOW, lanes, record_of, seconds, sessions, states
from orchestrator.dialogue.storage.serialization import rebuild
from orchestrator.memory.user_memory import SESSION_OWNER, owner_of
from orchestrator.ports.maintenance import SessionRows, SessionState
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, UserId

_LOOK_BACK_S = 86_400.0

PAGE = 500
"""Maximum number of sessions per pruning statement."""
BATCH = 5000
"""Maximum number of rows deleted per transaction, small enough not to delay turns."""
_PAGE = parse("SELECT session_id FROM lanes WHERE session_id > %(after)s ORDER BY session_id LIMIT %(limit)s")


class PostgresMaintenance:
    """The `maintenance` tool for background flows, across all tenants. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def states(
        self, *, quiet_for_s: float, after: str = "", limit: int = 500, among: list[str] | None = None
    ) -> list[SessionState]:
        """Return quiet open sessions with stacked tasks or open approvals, ordered by ID, starting after `after`.

        `quiet_for_s`: minimum time without activity, in seconds. `among`: consider only these sessions.
        Default: all sessions.
        """
        query = (
            select(sessions.c.tenant_id, sessions.c.session_id, states.c.epoch, states.c.body, DIFFS)
            .join(lanes, lanes.c.session_id == sessions.c.session_id)
            .join(states, states.c.session_id == sessions.c.session_id)
            .where(
                lanes.c.closed.is_(False),
                lanes.c.updated_at < _ago(quiet_for_s),
                sessions.c.session_id > after,
                true() if among is None else sessions.c.session_id.in_(among),
                or_(func.cardinality(states.c.flows) > 0, states.c.approvals > 0),
            )
            .order_by(sessions.c.session_id)
            .limit(limit)
        )
        return [
            record_of(SessionState, row, state=rebuild(row.body, row.diffs))
            for row in await self._database.read_all(query)
        ]

    async def broken(
        self, *, quiet_for_s: float, after: str = "", limit: int = 500, among: list[str] | None = None
    ) -> list[SessionRows]:
        """Return each quiet session's counts of inconsistent rows, which can be zero, ordered by session ID.

        `quiet_for_s`, `after`: as in `states`. `among`: check only these sessions. Default: sessions that were
        active within the last day.
        """
        arguments = {"after": after, "limit": limit, "quiet_s": quiet_for_s, "sessions": among}
        rows = await self._database.fetch_all(statement("find_broken"), arguments)
        return [SessionRows(TenantId(row[1]), SessionId(row[0]), *row[2:]) for row in rows]

    async def repair(self, session_id: SessionId) -> bool:
        """Repair a session's inconsistent rows. Return False, without changes, if a worker holds the session."""
        return await self._database.fetch_one(statement("mend_rows"), {"session_id": session_id}) is not None

    async def idle(self, *, idle_s: float, limit: int = 500) -> list[tuple[TenantId, SessionId]]:
        """Return open sessions that have no pending turns and were inactive for the last `idle_s` seconds."""
        query = (
            select(lanes.c.tenant_id, lanes.c.session_id)
            .where(lanes.c.closed.is_(False), lanes.c.pending == 0, lanes.c.updated_at < _ago(idle_s))
            .limit(limit)
        )
        return await self._names(query)

    async def expired(self, *, retention_s: float, limit: int = 500) -> list[tuple[TenantId, SessionId]]:
        """Return sessions that were closed more than `retention_s` seconds ago."""
        query = (
            select(sessions.c.tenant_id, sessions.c.session_id)
            .where(sessions.c.closed_at < _ago(retention_s))
            .limit(limit)
        )
        return await self._names(query)

    async def sessions_of(self, tenant_id: TenantId, user_id: UserId) -> list[SessionId]:
        """Return a user's sessions, including closed sessions. An anonymous user has one session and its forks."""
        query = select(sessions.c.session_id).where(sessions.c.tenant_id == tenant_id)
        if user_id.startswith(SESSION_OWNER):
            root = user_id.removeprefix(SESSION_OWNER)
            query = query.where(or_(sessions.c.session_id == root, sessions.c.root == root))
        else:
            query = query.where(sessions.c.user_id == user_id)
        return [SessionId(row.session_id) for row in await self._database.read_all(query)]

    async def branches_of(self, tenant_id: TenantId, session_id: SessionId) -> list[SessionId]:
        """Return all direct and indirect forks of a session, nearest last."""
        named = {"session_id": session_id, "tenant_id": tenant_id}
        async with self._database.transaction() as connection:
            rows = await run_named(connection, "branches_of", **named)
        return [SessionId(name) for (name,) in rows]

    async def delete_session(self, tenant_id: TenantId, session_id: SessionId) -> None:
        """Delete a session with all its data, including an anonymous user's memories.

        The session's running turn, if any, can no longer commit.
        """
        names = {"session": session_id, "tenant": tenant_id}
        async with self._database.transaction() as connection:
            for table in ("internal_runs", "sessions"):  # foreign keys delete the rest
                deletion = f"DELETE FROM {table} WHERE session_id = :session AND tenant_id = :tenant"  # noqa: S608
                await connection.execute(text(deletion), names)
            # An anonymous user's memories last only as long as the session.
            await _delete_user(connection, tenant_id, owner_of(None, session_id))

    async def delete_user(self, tenant_id: TenantId, user_id: UserId) -> None:
        """Delete a user's documents and preferences, including the records of forgotten preferences."""
        async with self._database.transaction() as connection:
            await _delete_user(connection, tenant_id, user_id)

    async def prune_archive(
        self, *, keep_flows: int, keep_epochs: int, within_s: float
    ) -> tuple[dict[str, int], bool]:
        """Delete archived flows and epochs, except the newest `keep_flows` and `keep_epochs` per session (ST-3).

        Return the number of deleted rows by table, and whether pruning finished within `within_s` seconds.
        """
        kept: dict[str, JsonObject] = {
            "flows_archive": {"keep": keep_flows},
            "state_history": {"keep": keep_epochs},
        }
        return await self._prune({}, kept, within_s)

    async def prune_runtime(self, *, older_than_s: float, within_s: float) -> tuple[dict[str, int], bool]:
        """Delete events, journal steps, runs, firings and scheduled events older than `older_than_s` seconds.

        Return the same values as `prune_archive`.
        """
        old: JsonObject = {"old_s": older_than_s}
        aged: dict[str, JsonObject] = dict.fromkeys(
            ("journal", "internal_runs", "schedule_firings", "scheduled_events"), old
        )
        return await self._prune(aged, {"events": old}, within_s)

    async def _prune(
        self, whole: Mapping[str, JsonObject], by_session: Mapping[str, JsonObject], within_s: float
    ) -> tuple[dict[str, int], bool]:
        """Prune the tables in `whole` directly and the others by pages of sessions, so that each step uses an index."""
        ends_at = time.monotonic() + within_s
        counts: dict[str, int] = dict.fromkeys((*whole, *by_session), 0)
        for name, arguments in whole.items():
            counts[name] += await self._empty(name, arguments, ends_at)
        after = ""
        while time.monotonic() < ends_at:
            found = await self._database.fetch_all(_PAGE, {"after": after, "limit": PAGE})
            page = [row[0] for row in found]
            for name, arguments in by_session.items():
                counts[name] += await self._empty(name, {**arguments, "sessions": page}, ends_at)
            if len(page) < PAGE:
                return counts, time.monotonic() < ends_at
            after = page[-1]
        return counts, False

    async def _empty(self, name: str, arguments: JsonObject, ends_at: float) -> int:
        total, gone = 0, BATCH
        while gone == BATCH and time.monotonic() < ends_at:
            row = await self._database.fetch_one(statement(f"prune_{name}"), {**arguments, "limit": BATCH})
            gone = 0 if row is None else row[0]
            total += gone
        return total

    async def unsummarized(
        self, *, idle_s: float, least_turns: int
    ) -> list[tuple[TenantId, SessionId, Epoch]]:
        """Return up to 100 open, idle sessions that have unsummarized turns and were active within about a day.

        `idle_s`: minimum idle time, in seconds. `least_turns`: minimum number of unsummarized turns.
        """
        query = (
            select(lanes.c.tenant_id, lanes.c.session_id, lanes.c.epoch)
            .join(states, states.c.session_id == lanes.c.session_id)
            .where(
                lanes.c.closed.is_(False),
                lanes.c.pending == 0,
                # Older sessions were already checked. Don't retry their failures forever.
                lanes.c.updated_at.between(_ago(idle_s + _LOOK_BACK_S), _ago(idle_s)),
                states.c.unsummarized >= least_turns,
            )
            .order_by(lanes.c.updated_at)
            .limit(100)
        )
        rows = await self._database.read_all(query)
        return [(TenantId(row.tenant_id), SessionId(row.session_id), Epoch(row.epoch)) for row in rows]

    async def _names(self, query: Any) -> list[tuple[TenantId, SessionId]]:
        rows = await self._database.read_all(query)
        return [(TenantId(row.tenant_id), SessionId(row.session_id)) for row in rows]


def _ago(since_s: float) -> Any:
    return NOW - seconds(since_s)


async def _delete_user(connection: AsyncConnection, tenant_id: TenantId, user_id: UserId) -> None:
    for table in ("preferences", "forgotten_preferences", "documents"):
        deletion = f"DELETE FROM {table} WHERE user_id = :user AND tenant_id = :tenant"  # noqa: S608
        await connection.execute(text(deletion), {"user": user_id, "tenant": tenant_id})
