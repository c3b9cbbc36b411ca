"""Fenced claims on session lanes and runs: their holders, renewal and recovery.

Each claim has a token, an expiry time and a worker. A takeover changes or removes the token, so that
later statements of the former holder write nothing (RT-3, IF-9).
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
    """Proof that a worker is alive: a database connection that closes with the process (RT-11).

    The worker's row identifies the connection. If the worker dies, other workers notice before its claims
    expire. Other database users cannot fake the connection. After a reconnect, the worker has a new ID, and
    another worker's next sweep releases the remaining claims of the old ID.
    """

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._worker_id: WorkerId | None = None
        self._connection: Connection | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def worker_id(self) -> WorkerId:
        """Return the current worker ID. Raises Unavailable while reconnecting."""
        if self._worker_id is None:
            raise Unavailable("This worker is reconnecting to the database; try again later.")
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
        """Keep the worker registered. When the connection breaks, register again under a new ID."""
        delay_s = _RECONNECT_FIRST_S
        while True:
            try:
                if self._connection is None:
                    self._connection = await self._register()
                    delay_s = _RECONNECT_FIRST_S
                await _input_arrived(self._connection)
                await self._connection.execute("SELECT 1")  # raises if the server closed the connection
            except psycopg.Error as error:
                if self._connection is not None:
                    _log.warning(
                        "Lost the connection that holds the worker lock.",
                        error=error,
                        worker_id=self._worker_id,
                    )
                await self._forget()
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, _RECONNECT_MAX_S)

    async def _forget(self) -> None:
        self._worker_id = None
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def _input_arrived(connection: Connection) -> None:
    """Wait until the server sends something or closes the connection. psycopg's own waits poll ten times a second."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection.fileno(), arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(connection.fileno())


async def _take_number(connection: Connection) -> WorkerId:
    """Insert the worker's row, bound to this connection's server process, and return its ID."""
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
    """A claim of this process.

    For a session lane, `turn_id` is the current turn, and `pending` counts the turns to run, including that turn.
    """

    token: int
    turn_id: TurnId | None = None
    pending: int = 1


class HeldClaims(Generic[_Name]):
    """The process's claims of one kind, renewed in one statement until they are dropped or lost.

    Args:
        renewal: name of the renewing statement. Each of its rows starts with the name of a current claim.
    """

    def __init__(self, database: Database, worker: WorkerLock, renewal: str, *, lease_ttl_s: float) -> None:
        self._database = database
        self._worker = worker
        self._renewal = statement(renewal)
        self._ttl_s = lease_ttl_s
        self._held: dict[_Name, HeldClaim] = {}

    def owner(self) -> dict[str, object]:
        """Return the worker ID and lease duration as arguments for statements that claim work.

        Raises Unavailable while the worker reconnects.
        """
        return {"worker_id": self._worker.worker_id, "ttl_s": self._ttl_s}

    def keep(self, name: _Name, claim: HeldClaim) -> None:
        self._held[name] = claim

    def find(self, name: _Name, token: int | None = None) -> HeldClaim | None:
        held = self._held.get(name)
        return held if held is not None and token in {None, held.token} else None

    def drop(self, name: _Name, token: int) -> None:
        """Stop renewing a released or lost claim, unless this process has a newer claim with this name."""
        if self.find(name, token) is not None:
            del self._held[name]

    async def renew(self) -> tuple[list[TupleRow], list[_Name]]:
        """Renew all claims. Return the rows of current claims and the names of lost claims."""
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
    """Delete dead workers and release their session lanes. Return the released sessions.

    Callers must offer these sessions to workers, because sweeps don't return them before the grace period
    ends.
    """
    freed = await database.fetch_all(statement("reap_dead"), {})
    return [SessionId(row[0]) for row in freed]
