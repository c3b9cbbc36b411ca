"""Asynchronous tools: the unmodified example; exactly once and without loss, although workers die (RT-32)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg
import pytest

from orchestrator.types import JsonObject
from tests.integration.chaos.suspicion import suspect_nobody
from tests.integration.front_door.examples import (
    EXAMPLES,
    WITHIN_S,
    kill_for,
    opened,
    run_example,
    say,
    settled,
)
from tests.processes.http import Asked, answering

DONATIONS = EXAMPLES / "donations"
BANK_PORT = 8711
SHORT_LIVED = httpx.Limits(keepalive_expiry=2)
"""Keep-alive shorter than five seconds, when the server closes connections."""
SESSIONS = 6
KILLING_S = 6.0


async def test_the_example_runs_as_it_stands(database_url: str, redis_url: str, tmp_path: Path) -> None:
    async with opened(database_url, redis_url, tmp_path, DONATIONS) as (url, crew):
        crew.start(1, application="workers.app")
        told = await run_example("answer_later.py", url)
    assert "I'll tell you here as soon as I know the result" in told
    assert "€20 for the bees has arrived; your receipt is R-17." in told
    assert "Your bank has declined the payment." in told
    assert "ledger: [('card_charge', 'done'), ('card_charge', 'failed')]" in told


@contextmanager
def _bank() -> Iterator[dict[str, JsonObject]]:
    """Run a bank that accepts each charge once and reports the accepted charges. Yield them by key."""
    charges: dict[str, JsonObject] = {}

    def answer(asked: Asked) -> tuple[int, JsonObject]:
        if asked.body:
            charges.setdefault(asked.headers["Idempotency-Key"], asked.json())
            return 202, {}
        [key] = parse_qs(urlsplit(asked.path).query)["idempotency_key"]
        return 200, {"status": "unknown" if key in charges else "not_done"}

    with answering(answer, port=BANK_PORT):
        yield charges


@pytest.mark.slow
async def test_each_result_has_its_effect_once_although_workers_are_killed(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """Charges are accepted and confirmed twice, while workers are killed at random."""
    suspect_nobody(database_url)
    chance = random.Random(32)
    doors = opened(database_url, redis_url, tmp_path, DONATIONS, PARLEY_MAX_ATTEMPTS="50")
    with _bank() as charges:
        async with (
            doors as (url, crew),
            httpx.AsyncClient(base_url=url, timeout=90, limits=SHORT_LIVED) as http,
            asyncio.timeout(WITHIN_S),
        ):
            crew.start(2, application="workers.app")
            killing = asyncio.create_task(kill_for(crew, KILLING_S, chance))
            names = [f"donor-{number}" for number in range(SESSIONS)]
            await asyncio.gather(*(_donate(http, name, chance) for name in names))
            await _confirm_all(http, charges, chance)
            await killing
            turns = await asyncio.gather(*(settled(http, name) for name in names))
        for told in turns:
            replies = [turn["reply"] for turn in told if turn["status"] == "done" and turn["reply"]]
            assert sum("your receipt is" in reply for reply in replies) == 1, replies
            assert Counter(turn["status"] for turn in told) == {"done": len(told)}
        assert len(charges) == SESSIONS
        with psycopg.connect(database_url) as connection:
            query = "SELECT tool_id, status FROM effects WHERE session_id LIKE 'donor-%'"
            assert connection.execute(query).fetchall() == [("card_charge", "done")] * SESSIONS
            doubled = "SELECT turn_id FROM utterances GROUP BY turn_id, role HAVING count(*) > 1"
            assert connection.execute(doubled).fetchall() == []


async def _donate(http: httpx.AsyncClient, session: str, chance: random.Random) -> None:
    await http.post("/v1/sessions", json={"domain": "donations", "session_id": session})
    for text in (f"donate {chance.randint(5, 99)} euros for the bees", "yes"):
        turn = await say(http, session, text)
    assert turn["flows"][0]["reason"] == "awaiting_result", turn


async def _confirm_all(
    http: httpx.AsyncClient, charges: dict[str, JsonObject], chance: random.Random
) -> None:
    """Deliver each result twice, while the users talk about something else."""
    for number, charge in enumerate(list(charges.values())):
        await asyncio.sleep(chance.uniform(0, 0.5))
        aside = {"text": "where does the money go?"}
        await http.post(f"/v1/sessions/donor-{number}/turns", json=aside)
        for _ in range(2):
            result = {"status": "done", "data": {"receipt": f"R-{number}"}}
            answer = await http.post(charge["callback_url"], json=result)
            assert answer.status_code == 202, answer.text
