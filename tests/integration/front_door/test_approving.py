"""Approvals over HTTP and Celery: the unmodified example; each call once although workers die (PX-17)."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import httpx
import psycopg
import pytest

from orchestrator.adapters.redis.address import for_celery
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
from tests.integration.front_door.plain_backend import make_app

TREASURY = EXAMPLES / "treasury"
SESSIONS = 6
KILLING_S = 5.0


async def test_the_example_runs_as_it_stands_and_celery_decides_too(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    async with opened(database_url, redis_url, tmp_path, TREASURY) as (url, crew):
        crew.start(1, application="workers.app", queues="turns,submissions")
        told = await run_example("approvals.py", url)
        assert "The invoice of Acme is paid." in told
        assert "Madrid stays open" in told
        assert "This approval is void because the call has changed." in told
        assert "ledger: [({'supplier': 'Acme'}, 'done'), ({'supplier': 'Initech'}, 'done')]" in told
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            await _decide_by_celery(http, redis_url)


async def _decide_by_celery(http: httpx.AsyncClient, redis_url: str) -> None:
    asked = await _ask(http, "by-celery")
    with make_app(for_celery(redis_url), for_celery(redis_url)) as backend:

        def decide(tool_id: str, decision: str) -> JsonObject:
            arguments = {"approval_id": asked[tool_id], "decision": decision}
            sent = backend.send_task("orchestrator.decide_approval", kwargs=arguments, queue="submissions")
            return sent.get(timeout=40, interval=0.05)

        with pytest.raises(Exception, match="Only an operator"):
            await asyncio.to_thread(decide, "invoice_pay", "grant")
        denied = await asyncio.to_thread(decide, "account_close", "deny")
        again = await asyncio.to_thread(decide, "account_close", "deny")
    assert (denied["status"], again["resumed_by"]) == ("denied", denied["resumed_by"])
    granted = await http.post(f"/v1/approvals/{asked['invoice_pay']}", json={"decision": "grant"})
    assert granted.status_code == 200, granted.text
    await settled(http, "by-celery")
    ledger = (await http.get("/v1/sessions/by-celery/effects")).json()
    assert [(line["arguments"], line["status"]) for line in ledger] == [({"supplier": "Acme"}, "done")]


@pytest.mark.slow
async def test_calls_are_made_once_in_reverse_order_although_workers_are_killed(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    suspect_nobody(database_url)
    chance, before = random.Random(38), _count_orders(database_url)
    doors = opened(database_url, redis_url, tmp_path, TREASURY, PARLEY_MAX_ATTEMPTS="50")
    async with (
        doors as (url, crew),
        httpx.AsyncClient(base_url=url, timeout=90) as http,
        asyncio.timeout(WITHIN_S),
    ):
        crew.start(2, application="workers.app")
        killing = asyncio.create_task(kill_for(crew, KILLING_S, chance))
        names = [f"payer-{number}" for number in range(SESSIONS)]
        asked = await asyncio.gather(*(_ask(http, name) for name in names))
        for tool_id in ("invoice_pay", "account_close"):
            for approvals in asked:
                path = f"/v1/approvals/{approvals[tool_id]}"
                for _ in range(2):
                    granted = await http.post(path, json={"decision": "grant"})
                    assert granted.status_code in {200, 409}, granted.text
        await killing
        await asyncio.gather(*(settled(http, name) for name in names))
    with psycopg.connect(database_url) as connection:
        mine = "WHERE session_id LIKE 'payer-%'"
        ledger = connection.execute(f"SELECT tool_id, status FROM effects {mine} ORDER BY tool_id").fetchall()
        assert ledger == [("account_close", "done")] * SESSIONS + [("invoice_pay", "done")] * SESSIONS
        closed = connection.execute(f"SELECT DISTINCT status FROM approvals {mine}").fetchall()
        assert closed == [("used",)]
    assert _count_orders(database_url) == before + 2 * SESSIONS


def _count_orders(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        found = connection.execute("SELECT count(*) FROM records WHERE collection = 'orders'").fetchone()
    assert found is not None
    return found[0]


async def _ask(http: httpx.AsyncClient, session: str) -> dict[str, str]:
    """Create a session in which two calls wait for approval. Return the approvals by tool."""
    await http.post("/v1/sessions", json={"domain": "treasury", "session_id": session})
    for text in ("pay the invoice of Acme", "close the account of Madrid"):
        await say(http, session, text)
    pending = await http.get("/v1/approvals", params={"session_id": session, "status": "pending"})
    asked = {approval["tool_id"]: approval["approval_id"] for approval in pending.json()}
    assert set(asked) == {"invoice_pay", "account_close"}
    return asked
