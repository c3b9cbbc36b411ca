"""A long chat has the same answers with and without maintenance, on real workers (IF-12)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from orchestrator.bootstrap import Ports, open_ports
from orchestrator.ports.runs.records import RunRecord
from orchestrator.ports.runs.status import RunStatus
from orchestrator.settings import Settings
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId
from tests.conversation import say
from tests.integration.chaos.fleet import ROOT, fleet

DEPOT = ROOT / "tests" / "domains" / "depot"
OFF, ON = "turns,submissions", "turns,submissions,internal,urgent"
WITHIN_S = 120
ROUND = (
    "put part P{n:04} on shelf S{n:02}",
    "yes",
    "fetch part P{n:04} from shelf S{n:02}",
    "yes",
    "list the shelves",
)


def lines(count: int) -> list[str]:
    return [ROUND[number % len(ROUND)].format(n=number // len(ROUND) + 1) for number in range(count)]


@pytest.mark.parametrize("turns", [45, pytest.param(200, marks=pytest.mark.slow)])
async def test_turns_are_answered_alike(
    database_url: str, redis_url: str, tmp_path: Path, turns: int
) -> None:
    settings = Settings(DATABASE_URL=database_url, REDIS_URL=redis_url)
    told: dict[str, list[JsonObject]] = {}
    async with open_ports(settings) as ports:
        for name, queues in (("off", OFF), ("on", ON)):
            session_id = SessionId(f"{name}-{turns}")
            (tmp_path / name).mkdir()
            with fleet(database_url, redis_url, tmp_path / name, {"PARLEY_DOMAIN": str(DEPOT)}) as crew:
                crew.start(1, application="workers.app", queues=queues, threads=16)
                said = lines(turns)
                told[name] = [await say(ports, session_id, line, "depot") for line in said[: turns // 2]]
                if name == "on":
                    await _await_background(ports, session_id)
                told[name] += [await say(ports, session_id, line, "depot") for line in said[turns // 2 :]]
                assert bool(await _done(ports, session_id)) is (name == "on")

    assert [turn["reply"] for turn in told["on"]] == [turn["reply"] for turn in told["off"]]
    assert [turn["completed"] for turn in told["on"]] == [turn["completed"] for turn in told["off"]]
    assert sum(bool(turn["completed"]) for turn in told["on"]) >= turns // 5


async def _done(ports: Ports, session_id: SessionId) -> list[RunRecord]:
    return await ports.stores.runs.list(DEFAULT_TENANT, session_id=session_id, status=RunStatus.DONE)


async def _await_background(ports: Ports, session_id: SessionId) -> None:
    """Wait until maintenance has changed something, so that later messages are answered after it."""
    ends_at = time.monotonic() + WITHIN_S
    while not await _done(ports, session_id):
        assert time.monotonic() < ends_at, "no run was done"
        await asyncio.sleep(0.1)
