"""Examples' domains with a gateway and workers, which run the unmodified examples or are killed at random."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import run as run_process

import httpx
import pytest

from gateway.app import create_app
from gateway.wiring import open_dependencies
from orchestrator.settings import read_settings
from orchestrator.turns.turn import FINISHED
from orchestrator.types import JsonObject
from tests.integration.chaos.fleet import ROOT, Fleet, fleet
from tests.integration.gateway import serve

EXAMPLES = ROOT / "examples"
WITHIN_S = 240.0


@asynccontextmanager
async def opened(
    database_url: str, redis_url: str, logs: Path, domain: str | Path, **environment: str
) -> AsyncIterator[tuple[str, Fleet]]:
    """Yield the URL of a gateway, and workers to start. `environment`: of the workers."""
    told = {"PARLEY_DOMAIN": str(domain), "OPENAI_BASE_URL": "", "PARLEY_LEASE_TTL_S": "3", **environment}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**told, "DATABASE_URL": database_url, "REDIS_URL": redis_url}.items():
            patch.setenv(name, value)
        settings = read_settings()
    async with serve(create_app(lambda: open_dependencies(settings))) as url:
        with fleet(database_url, redis_url, logs, {"PARLEY_PUBLIC_URL": url, **told}) as crew:
            yield url, crew


async def run_example(name: str, url: str) -> str:
    """Run an example as it is, and return its output."""
    command = [sys.executable, str(EXAMPLES / name), url]
    ended = await asyncio.to_thread(run_process, command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


async def say(http: httpx.AsyncClient, session: str, text: str) -> JsonObject:
    """Submit a turn and return it when it is done, regardless of how long workers need to start."""
    sent = await http.post(f"/v1/sessions/{session}/turns", json={"text": text})
    assert sent.status_code == 202, sent.text
    while True:
        turn: JsonObject = (await http.get(f"/v1/turns/{sent.json()['turn_id']}", params={"wait": 10})).json()
        if turn["status"] in FINISHED:
            assert turn["status"] == "done", turn
            return turn


async def settled(http: httpx.AsyncClient, session: str) -> list[JsonObject]:
    """Return the session's turns, when all have ended and the stack is empty."""
    while True:
        turns = (await http.get(f"/v1/sessions/{session}/turns")).json()
        state = (await http.get(f"/v1/sessions/{session}")).json()["state"]
        if all(turn["status"] in FINISHED for turn in turns) and not state["stack"]:
            return turns
        await asyncio.sleep(0.2)


async def kill_for(crew: Fleet, seconds: float, chance: random.Random) -> None:
    """Kill workers at random moments, each after starting its replacement."""
    ends_at = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < ends_at:
        await asyncio.sleep(chance.uniform(0.3, 1.0))
        alive = [worker for worker in crew.workers if worker.process.poll() is None]
        crew.launch(application="workers.app")
        chance.choice(alive).kill()
