"""Asynchronous tools: the unmodified example; exactly once and without loss, although workers die (RT-32)."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import run as run_process
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg
import pytest

from gateway.app import create_app
from gateway.wiring import open_dependencies
from orchestrator.settings import Settings
from orchestrator.types import JsonObject
from tests.integration.chaos.fleet import fleet
from tests.integration.chaos.suspicion import suspect_nobody
from tests.integration.front_door.killing import WITHIN_S, kill_for, say
from tests.integration.gateway import serve
from tests.processes.http import Asked, answering

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
DONATIONS = EXAMPLES / "donations"
BANK_PORT = 8711
SHORT_LIVED = httpx.Limits(keepalive_expiry=2)
"""Keep-alive shorter than five seconds, when the server closes connections."""
SESSIONS = 6
KILLING_S = 6.0


def _settings(database_url: str, redis_url: str) -> Settings:
    return Settings(database_url=database_url, redis_url=redis_url, domain=str(DONATIONS))


def _environment(url: str) -> dict[str, str]:
    return {
        "PARLEY_DOMAIN": str(DONATIONS),
        "OPENAI_BASE_URL": "",
        "PARLEY_PUBLIC_URL": url,
        "PARLEY_LEASE_TTL_S": "3",
    }


async def test_the_example_runs_as_it_stands(database_url: str, redis_url: str, tmp_path: Path) -> None:
    settings = _settings(database_url, redis_url)
    async with serve(create_app(lambda: open_dependencies(settings))) as url:
        with fleet(database_url, redis_url, tmp_path, _environment(url)) as crew:
            crew.start(1, application="workers.app")
            command = [sys.executable, str(EXAMPLES / "answer_later.py"), url]
            ended = await asyncio.to_thread(run_process, command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "I'll tell you here as soon as I know the result" in ended.stdout
    assert "€20 for the bees has arrived; your receipt is R-17." in ended.stdout
    assert "Your bank has declined the payment." in ended.stdout
    assert "ledger: [('card_charge', 'done'), ('card_charge', 'failed')]" in ended.stdout


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
    settings = _settings(database_url, redis_url)
    with _bank() as charges:
        async with serve(create_app(lambda: open_dependencies(settings))) as url:
            environment = {**_environment(url), "PARLEY_MAX_ATTEMPTS": "50"}
            with fleet(database_url, redis_url, tmp_path, environment) as crew:
                crew.start(2, application="workers.app")
                async with httpx.AsyncClient(base_url=url, timeout=90, limits=SHORT_LIVED) as http:
                    killing = asyncio.create_task(kill_for(crew, KILLING_S, chance))
                    donors = [_donate(http, f"donor-{number}", chance) for number in range(SESSIONS)]
                    async with asyncio.timeout(WITHIN_S):
                        await asyncio.gather(*donors)
                        await _confirm_all(http, charges, chance)
                        await killing
                        turns = await asyncio.gather(
                            *(_settled(http, f"donor-{number}") for number in range(SESSIONS))
                        )
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


async def _settled(http: httpx.AsyncClient, session: str) -> list[JsonObject]:
    """Return the session's turns, when all have ended and no result is awaited."""
    while True:
        turns = (await http.get(f"/v1/sessions/{session}/turns")).json()
        state = (await http.get(f"/v1/sessions/{session}")).json()
        if all(turn["status"] not in {"queued", "running"} for turn in turns) and not state["state"]["stack"]:
            return turns
        await asyncio.sleep(0.2)
