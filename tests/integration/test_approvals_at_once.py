"""PX-17, RT-10: a call with concurrent approvals, from two processes and in the chat, is made once.

Two gateways and two Celery workers, each in its own process, on real stores.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psycopg

from orchestrator.turns.turn import FINISHED
from orchestrator.types import JsonObject
from tests.integration.chaos.fleet import ROOT, fleet
from tests.processes.gateway import gateway

DESK = ROOT / "tests" / "transcripts" / "domains" / "desk"
SESSIONS = 6
WITHIN_S = 240


@asynccontextmanager
async def two_gateways(environment: dict[str, str], logs: Path) -> AsyncIterator[list[httpx.AsyncClient]]:
    with gateway(environment, logs / "one.log") as one, gateway(environment, logs / "two.log") as other:
        async with (
            httpx.AsyncClient(base_url=one, timeout=60) as first,
            httpx.AsyncClient(base_url=other, timeout=60) as second,
        ):
            yield [first, second]


async def say(client: httpx.AsyncClient, session: str, **body: object) -> JsonObject:
    """Run a turn to its end."""
    sent = await client.post(f"/v1/sessions/{session}/turns", json=body)
    assert sent.status_code in {200, 201, 202}, sent.text
    return await ended(client, sent.json()["turn_id"])


async def ended(client: httpx.AsyncClient, turn_id: str) -> JsonObject:
    async with asyncio.timeout(WITHIN_S):
        while True:
            answer = await client.get(f"/v1/turns/{turn_id}", params={"wait": 10})
            assert answer.status_code in {200, 202}, answer.text
            turn: JsonObject = answer.json()
            if turn["status"] in FINISHED:
                return turn


async def ask(client: httpx.AsyncClient) -> tuple[str, JsonObject]:
    """Create a session with a task that waits for an approval."""
    session = (await client.post("/v1/sessions", json={})).json()["session_id"]
    await say(client, session, text="wipe disk of printer one")
    answer = await client.get("/v1/approvals", params={"session_id": session, "status": "pending"})
    [asked] = answer.json()
    return session, asked


async def grant_everywhere(clients: list[httpx.AsyncClient], number: int) -> str:
    """Grant at both gateways, and click in the chat, while another turn of the session runs."""
    session, asked = await ask(clients[0])
    if number % 2:
        await clients[0].post(f"/v1/sessions/{session}/turns", json={"text": "check the queue"})
    click = {"name": "approve", "payload": {"approval_id": asked["approval_id"], "flow_id": asked["flow_id"]}}
    granted = [
        client.post(f"/v1/approvals/{asked['approval_id']}", json={"decision": "grant"})
        for client in (*clients, *clients)
    ]
    clicked = asyncio.create_task(say(clients[number % 2], session, action=click))
    answers = await asyncio.gather(*granted)
    await clicked
    late = [answer.json()["detail"] for answer in answers if answer.status_code == 409]
    assert all("was already used by" in detail for detail in late), late
    resumed = {answer.json()["resumed_by"] for answer in answers if answer.status_code == 200}
    assert len(resumed) <= 1
    assert resumed or late
    for turn_id in resumed:
        assert (await ended(clients[0], turn_id))["status"] == "done"
    return session


async def test_a_call_approved_at_once_from_everywhere_is_made_once(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    environment = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "PARLEY_DOMAIN": str(DESK)}
    with fleet(database_url, redis_url, tmp_path, environment) as crew:
        crew.start(2, application="workers.app")
        async with two_gateways(environment, tmp_path) as clients:
            sessions = await asyncio.gather(
                *(grant_everywhere(clients, number) for number in range(SESSIONS))
            )

    with psycopg.connect(database_url) as connection:
        effects = connection.execute(
            "SELECT session_id, tool_id, status FROM effects ORDER BY session_id"
        ).fetchall()
        closed = connection.execute("SELECT status FROM approvals").fetchall()
    assert effects == [(session, "disk_wipe", "done") for session in sorted(sessions)]
    assert closed == [("used",)] * SESSIONS
