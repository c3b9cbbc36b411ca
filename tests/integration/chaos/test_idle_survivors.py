"""A killed worker's session is taken over soon by idle workers (RT-11)."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from tests.integration.chaos.submitting import all_finished, submitter
from tests.integration.chaos.takeover import ANY, LOADED, QUIET, Machine, percentile
from tests.integration.chaos.worker_pool import worker_pool

WORKERS = 3
HOLDER = (
    "SELECT workers.pid FROM turns JOIN lanes USING (session_id) JOIN workers ON workers.worker_id = lanes.lease_owner"
    " WHERE turn_id = %s AND turns.status = 'running'"
)
CRASHES = "SELECT crashes FROM turns WHERE turn_id = %s"


async def _poll(connection: psycopg.AsyncConnection, query: LiteralString, turn_id: str) -> int:
    """Poll every few milliseconds until the query returns a number other than 0."""
    async with asyncio.timeout(300):
        while True:
            row = await (await connection.execute(query, (turn_id,))).fetchone()
            if row is not None and row[0]:
                return row[0]
            await asyncio.sleep(0.005)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("kills", "machine"),
    [
        (1, ANY),
        pytest.param(100, QUIET, marks=pytest.mark.slow),
        pytest.param(100, LOADED, marks=pytest.mark.slow),
    ],
    ids=["short", "quiet", "loaded"],
)
async def test_idle_workers_take_over_at_once(
    kills: int,
    machine: Machine,
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    times: list[float] = []
    now = asyncio.get_running_loop().time
    chance = random.Random(5)
    settings = {**machine.settings, "PARLEY_RUNNER_LINGER_S": "0.2"}
    with worker_pool(database_url, redis_url, tmp_path, **settings) as pool, machine.load():
        for _ in range(WORKERS):
            pool.begin()
        async with (
            submitter(database_url, redis_url) as client,
            await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection,
        ):
            for number in range(kills):
                while len(pool.ready()) < WORKERS:
                    await asyncio.sleep(0.05)
                await asyncio.sleep(0.5 + chance.random())  # the other workers have become idle
                receipt = await client.submit(f"alone-{machine.loaded}-{number}", "wait 1")
                holder = await _poll(connection, HOLDER, receipt.turn_id)
                [victim] = [worker for worker in pool.ready() if worker.pid == holder]
                pool.forget(victim)
                killed_at = now()
                victim.kill()
                await _poll(connection, CRASHES, receipt.turn_id)
                times.append(now() - killed_at)
                pool.begin()
            await all_finished(database_url, within_s=60)

    times.sort()
    with capsys.disabled():
        print(
            f"\n{kills} kills with idle survivors; until another had the turn: p50 {percentile(times, 50):.2f} s,"
            f" p99 {percentile(times, 99):.2f} s"
        )
    assert percentile(times, 99) <= machine.bar_s
