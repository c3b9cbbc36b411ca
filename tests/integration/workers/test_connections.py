"""RT-20: reusable connections recover from any failure."""

from __future__ import annotations

import asyncio
import hashlib
from typing import LiteralString, cast

import psycopg
import pytest

from orchestrator.adapters.postgres import hot_connections
from orchestrator.adapters.postgres.hot_connections import MOST_PREPARED
from orchestrator.adapters.postgres.pool import Database
from orchestrator.errors import Unavailable

PID = "SELECT pg_backend_pid()"


async def pid_of(database: Database) -> int:
    row = await database.fetch_one(PID, {})
    assert row is not None
    return row[0]


async def test_the_same_connection_serves_one_statement_after_the_other(database_url: str) -> None:
    async with Database(database_url, size=4) as database:
        assert len({await pid_of(database) for _ in range(5)}) == 1


async def test_one_that_the_server_has_ended_is_replaced(database_url: str) -> None:
    async with Database(database_url, size=1) as database:
        ended = await pid_of(database)
        with psycopg.connect(database_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])
        assert await pid_of(database) != ended


async def test_surplus_connections_return_to_the_pool(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool closes them, so that a burst doesn't hold connections of the server forever."""
    async with Database(database_url, size=3) as database:
        await asyncio.gather(*(database.fetch_one("SELECT pg_sleep(0.1)::text", {}) for _ in range(3)))
        monkeypatch.setattr(hot_connections, "UNUSED_FOR_S", 0.0)

        assert len({await pid_of(database) for _ in range(3)}) == 1

        assert database.pool.get_stats()["pool_available"] == 2


async def test_one_whose_statement_was_cancelled_is_not_lost(database_url: str) -> None:
    async with Database(database_url, size=1) as database:
        sleeping = asyncio.create_task(database.fetch_one("SELECT pg_sleep(60)::text", {}))
        while not await _sleeps(database_url):
            await asyncio.sleep(0.01)
        sleeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping
        assert not await _sleeps(database_url), "the server was told to stop"
        assert await pid_of(database) > 0


async def test_what_fills_the_socket_is_sent_whole(database_url: str) -> None:
    much = "x" * 20_000_000
    async with Database(database_url, size=1) as database:
        row = await database.fetch_one("SELECT md5(%(much)s::text), %(much)s::text", {"much": much})
    assert row == (hashlib.md5(much.encode()).hexdigest(), much)


async def test_a_transaction_is_written_whole_or_not_at_all(database_url: str) -> None:
    async with Database(database_url, size=1) as database:
        await database.fetch_all("CREATE TABLE notes (n integer PRIMARY KEY)", {})
        with pytest.raises(psycopg.errors.UniqueViolation):
            await _add(database, 1, 1)
        await _add(database, 2, 3)
        assert await database.fetch_all("SELECT n FROM notes ORDER BY n", {}) == [(2,), (3,)]


async def test_the_server_keeps_a_bounded_number_of_prepared_statements(database_url: str) -> None:
    kept = "SELECT count(*) FROM pg_prepared_statements"
    async with Database(database_url, size=1) as database:
        for number in range(MOST_PREPARED + 10):
            assert await database.fetch_all(cast("LiteralString", f"SELECT {number}"), {}) == [(number,)]
        [(count,)] = await database.fetch_all(kept, {})
    assert 1 <= count <= MOST_PREPARED


async def test_who_waits_too_long_in_line_is_told_so(database_url: str) -> None:
    async with Database(database_url, size=1, timeout_s=2.0) as database, database.hot_transaction() as held:
        with pytest.raises(Unavailable, match="in use"):
            await database.fetch_all("SELECT 1", {})
        await held.fetch_all("SELECT 1", {})


async def test_all_wait_their_turn_for_few(database_url: str) -> None:
    async with Database(database_url, size=2) as database:
        pids = await asyncio.gather(*(pid_of(database) for _ in range(50)))
    assert 1 <= len(set(pids)) <= 2


async def _add(database: Database, *numbers: int) -> None:
    async with database.hot_transaction() as transaction:
        for number in numbers:
            await transaction.fetch_all("INSERT INTO notes VALUES (%(n)s::integer)", {"n": number})


async def _sleeps(database_url: str) -> bool:
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        found = await other.execute(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
        )
        return await found.fetchone() is not None
