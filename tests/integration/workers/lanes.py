"""Lanes of several concurrent workers over one database."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import psycopg

from orchestrator.adapters.postgres.claims import WorkerLock
from orchestrator.adapters.postgres.lanes.lane import PostgresLane
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.postgres.turns.inbox import PostgresInbox
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.contract.factories import new_session_id, submission


class Stage:
    """A database with its inbox and sessions, and workers as required."""

    def __init__(self, url: str, database: Database, stack: AsyncExitStack) -> None:
        self.url = url
        self.database = database
        self.inbox = PostgresInbox(database)
        self.sessions = PostgresSessions(database)
        self._stack = stack

    async def worker(self) -> WorkerLock:
        return await self._stack.enter_async_context(WorkerLock(self.url))

    async def lane(self, **options: Any) -> PostgresLane:
        return PostgresLane(self.database, await self.worker(), **options)

    async def session(self, *texts: str) -> SessionId:
        name = new_session_id()
        await self.sessions.create(DEFAULT_TENANT, "travel", session_id=name)
        for text in texts:
            await self.inbox.submit(submission(DEFAULT_TENANT, name, text))
        return name

    async def run(self, statement: str, *arguments: Any) -> list[Any]:
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            cursor = await connection.execute(statement, arguments)
            return [] if cursor.description is None else await cursor.fetchall()

    async def expire(self, session: SessionId) -> None:
        await self.run("UPDATE lanes SET lease_until = clock_timestamp() WHERE session_id = %s", session)
