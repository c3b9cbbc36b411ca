"""A user with only read access can't stop workers or keep dead workers alive (RT-11)."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from orchestrator.adapters.postgres.claims import WorkerLock
from orchestrator.adapters.postgres.statements import statement

EVERY_LOCK = """
SELECT pg_advisory_lock(class, number) FROM generate_series(1, 500) AS number, (VALUES (1347506764), (0)) AS c (class)
"""


@pytest.fixture
def database(database_url: str) -> str:
    return database_url


async def test_a_worker_starts_and_is_missed_while_a_reader_holds_every_lock(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as reader:
        reader.execute(EVERY_LOCK)
        async with asyncio.timeout(10):
            async with WorkerLock(database) as worker:
                number = worker.worker_id
                reader.execute(statement("reap_dead").text)
                living = "SELECT 1 FROM workers WHERE worker_id = %s"
                assert reader.execute(living, (number,)).fetchone() is not None
            while reader.execute(living, (number,)).fetchone() is not None:
                reader.execute(statement("reap_dead").text)
                await asyncio.sleep(0.05)


async def test_a_row_with_the_number_of_another_process_is_of_a_dead_worker(database: str) -> None:
    """The server has reused the process ID for another connection."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO workers (host, pid, backend_pid, backend_start) VALUES ('here', 1, pg_backend_pid(), now())"
        )

        connection.execute(statement("reap_dead").text)

        assert connection.execute("SELECT 1 FROM workers WHERE pid = 1").fetchone() is None
