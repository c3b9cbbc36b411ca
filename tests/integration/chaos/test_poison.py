"""Turns that end their workers are set aside, and nobody else; with the defaults that ship (RT-26)."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from orchestrator.adapters.postgres.migrate import migrate
from tests.integration.chaos.fleet import fleet
from tests.integration.chaos.submitting import submitter

WORKERS = 2
WITHIN_S = 120.0


def count(database: str, like: str) -> Counter[str]:
    """The states of the turns whose text begins so."""
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT status, count(*)::int FROM turns WHERE text LIKE %s GROUP BY 1", (f"{like}%",)
        ).fetchall()
    return Counter(dict(rows))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("neighbours", "poisons"), [(8, 2), pytest.param(480, 20, marks=pytest.mark.slow)], ids=["few", "many"]
)
async def test_neighbours_of_poison_turns_are_answered(
    neighbours: int, poisons: int, database_url: str, redis_url: str, tmp_path: Path
) -> None:
    migrate(database_url)
    with fleet(database_url, redis_url, tmp_path) as crew:
        async with submitter(database_url, redis_url) as client:
            await asyncio.to_thread(crew.start, WORKERS)
            for number in range(neighbours):
                await client.submit(f"neighbour-{number}", "wait 2")
            await asyncio.sleep(0.5)
            for number in range(poisons):
                await client.submit(f"poison-{number}", "exit")
            async with asyncio.timeout(WITHIN_S * (1 + poisons // 2)):
                while count(database_url, "")["queued"] + count(database_url, "")["running"]:
                    alive = sum(worker.process.poll() is None for worker in crew.workers)
                    for _ in range(WORKERS - alive):
                        await asyncio.to_thread(crew.launch)
                    await asyncio.sleep(0.2)

    assert count(database_url, "exit") == {"quarantined": poisons}
    assert count(database_url, "wait") == {"done": neighbours}
