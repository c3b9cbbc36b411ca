"""Fenced claims, as lanes and runs have them alike: who holds them, their renewal, and what the dead held.

A claim is a row with a token and a time at which it runs out, in the name of a worker. Whoever takes it over
changes or removes the token, and the statements of its former holder then write nothing (RT-3, IF-9).
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

import psycopg
from psycopg.rows import TupleRow

from orchestrator.adapters.postgres.errors import Translated
from orchestrator.adapters.postgres.pool import Connection, Database, connection_options
from orchestrator.adapters.postgres.statements import statement
from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.types import SessionId, TurnId, WorkerId

_RECONNECT_FIRST_S = 0.1
_RECONNECT_MAX_S = 2.0

_log = get_logger(__name__)
_Name = TypeVar("_Name", bound=Hashable)


class WorkerLock:
    """Show that this process lives: a connection that its row names, and that goes when the process goes (RT-11).

    The others see a death at once, and not when its claims run out. No lock that another user of the database
    could take stands for it. A broken connection gets a new number. The row stays behind: the next sweep of
    another worker frees what this one still held.
    """

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._worker_id: WorkerId | None = None
        self._connection: Connection | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def worker_id(self) -> WorkerId:
        """The present number. Raises Unavailable while the connection is being made again."""
        if self._worker_id is None:
            raise Unavailable("This worker is connecting to the database again; try again later.")
        return self._worker_id

    async def __aenter__(self) -> Self:
        with Translated():
            self._connection = await self._register()
        self._watch = asyncio.create_task(self._keep())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        await self._forget()

    async def _register(self) -> Connection:
        connection: Connection = await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, **connection_options("parley worker lock")
        )
        try:
            self._worker_id = await _take_number(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _keep(self) -> None:
        """Watch the connection and register anew, under a new number, when it breaks."""
        delay_s = _RECONNECT_FIRST_S
        while True:
            try:
                if self._connection is None:
                    self._connection = await self._register()
                    delay_s = _RECONNECT_FIRST_S
                async for _ in self._connection.notifies():
                    pass
            except psycopg.Error as error:
                if self._connection is not None:
                    _log.warning(
                        "The worker lock's connection broke.", error=error, worker_id=self._worker_id
                    )
                await self._forget()
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, _RECONNECT_MAX_S)

    async def _forget(self) -> None:
        self._worker_id = None
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def _take_number(connection: Connection) -> WorkerId:
    """Take a fresh number, and tie it to this connection's process at the server."""
    cursor = await connection.execute(
        "INSERT INTO workers (host, pid, backend_pid, backend_start)"
        " SELECT %s, %s, pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid() RETURNING worker_id",
        (socket.gethostname(), os.getpid()),
    )
    row = await cursor.fetchone()
    assert row is not None
    return WorkerId(int(row[0]))


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A claim of this process. Of a lane also: the turn in hand, how many were merged into it, and how many wait."""

    token: int
    turn_id: TurnId | None = None
    merges: int = 0
    pending: int = 1


class HeldClaims(Generic[_Name]):
    """Keep what this process has claimed, and prolong it in one statement until it is dropped or lost.

    Args:
        renewal: the statement that prolongs; it gives a row for each claim that is still current, the name first.
    """

    def __init__(self, database: Database, worker: WorkerLock, renewal: str, *, lease_ttl_s: float) -> None:
        self._database = database
        self._worker = worker
        self._renewal = statement(renewal)
        self._ttl_s = lease_ttl_s
        self._held: dict[_Name, HeldClaim] = {}

    def owner(self) -> dict[str, object]:
        """The arguments that every claiming statement takes. Raises Unavailable without a worker lock."""
        return {"worker_id": self._worker.worker_id, "ttl_s": self._ttl_s}

    def keep(self, name: _Name, claim: HeldClaim) -> None:
        self._held[name] = claim

    def find(self, name: _Name, token: int | None = None) -> HeldClaim | None:
        """The claim of this name, if it is held here, and has this token when one is given."""
        held = self._held.get(name)
        return held if held is not None and token in {None, held.token} else None

    def drop(self, name: _Name, token: int) -> None:
        """Stop prolonging a claim that was given back or taken away, unless it was made anew meanwhile."""
        if self.find(name, token) is not None:
            del self._held[name]

    async def renew(self) -> tuple[list[TupleRow], list[_Name]]:
        """Prolong everything; the rows of what is still held, and the names of what was lost."""
        asked = dict(sorted(self._held.items()))
        if not asked:
            return [], []
        arguments = {
            "names": [*asked],
            "tokens": [held.token for held in asked.values()],
            "turn_ids": [held.turn_id for held in asked.values()],
        }
        rows = await self._database.fetch_all(self._renewal, arguments | self.owner())
        current = {row[0] for row in rows}
        lost = [name for name in asked if name not in current]
        for name in lost:
            self.drop(name, asked[name].token)
        return rows, lost


async def reap_dead(database: Database) -> list[SessionId]:
    """Forget workers that are gone and free their lanes; the sessions of these, for the caller to offer at once.

    Whoever calls must do that: nobody else is given these sessions before the grace of the next sweep is over.
    """
    freed = await database.fetch_all(statement("reap_dead"), {})
    return [SessionId(row[0]) for row in freed]


async def free_claims(database: Database) -> None:
    """Free what workers that are forgotten or silent held of runs."""
    await database.fetch_all(statement("free_claims"), {})
