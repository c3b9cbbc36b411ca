"""HTTP conversations while workers are killed at random and replaced."""

from __future__ import annotations

import asyncio
import random

import httpx

from orchestrator.turns.turn import FINISHED
from orchestrator.types import JsonObject
from tests.integration.chaos.fleet import Fleet

WITHIN_S = 240.0


async def say(http: httpx.AsyncClient, session: str, text: str) -> JsonObject:
    """Submit a turn and return it when it is done, regardless of how long workers need to start."""
    sent = await http.post(f"/v1/sessions/{session}/turns", json={"text": text})
    assert sent.status_code == 202, sent.text
    while True:
        turn: JsonObject = (await http.get(f"/v1/turns/{sent.json()['turn_id']}", params={"wait": 10})).json()
        if turn["status"] in FINISHED:
            assert turn["status"] == "done", turn
            return turn


async def kill_for(crew: Fleet, seconds: float, chance: random.Random) -> None:
    """Kill workers at random moments, each after starting its replacement."""
    ends_at = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < ends_at:
        await asyncio.sleep(chance.uniform(0.3, 1.0))
        alive = [worker for worker in crew.workers if worker.process.poll() is None]
        crew.launch(application="workers.app")
        chance.choice(alive).kill()
