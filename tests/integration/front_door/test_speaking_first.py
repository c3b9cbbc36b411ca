"""Messages that the assistant initiates, over HTTP, Celery, events and webhooks; once although workers die
(RT-31).
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from orchestrator.adapters.redis.address import for_celery
from orchestrator.bootstrap import Ports
from orchestrator.turns.scheduled import NewEvent
from orchestrator.turns.turn import FINISHED, TurnKind, TurnRecord
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId
from tests.celery_clients import connected
from tests.conversation import run_turn
from tests.integration.access.receiver import receiver
from tests.integration.chaos.fleet import fleet
from tests.integration.chaos.suspicion import suspect_nobody
from tests.integration.front_door.examples import kill_for, opened, run_example
from tests.integration.front_door.plain_backend import make_app

TRAVEL = {"PARLEY_DOMAIN": "travel", "OPENAI_BASE_URL": "", "PARLEY_LEASE_TTL_S": "3"}
SESSIONS = 6
CHANGES = 3
"""External events for each session, in addition to its reminder."""
SPREAD_S = 6.0


async def test_over_http_celery_events_and_webhooks(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """The unmodified example runs; Celery tasks do the same, and a webhook receives the message."""
    doors = opened(database_url, redis_url, tmp_path, "travel", PARLEY_WEBHOOK_NETWORKS='["127.0.0.0/8"]')
    async with doors as (url, crew):
        crew.start(1, application="workers.app", queues="turns,submissions,internal")
        told = await run_example("speak_first.py", url)
        assert "I'll remind you two hours before" in told
        assert "Reminder: your flight" in told
        assert "gate" in told.split("has changed)")[1]
        assert "reminders to come: []" in told
        async with receiver() as hook, httpx.AsyncClient(base_url=url, timeout=30) as http:
            await _check_doors(http, redis_url, hook)


async def _check_doors(http: httpx.AsyncClient, redis_url: str, hook: Any) -> None:
    secret = (await http.post("/v1/webhooks/secret", json={})).json()["secret"]
    made = await http.post("/v1/sessions", json={"domain": "travel", "webhook": hook.url})
    session = made.json()["session_id"]
    unknown = await http.post(f"/v1/sessions/{session}/events", json={"name": "flight_chnged"})
    assert unknown.status_code == 409
    assert "flight_changed, flight_reminder" in unknown.json()["detail"]

    change = {"flight_number": "SK1465"}
    with connected(make_app(for_celery(redis_url), for_celery(redis_url))) as backend:

        def call(verb: str, **kwargs: Any) -> JsonObject:
            sent = backend.send_task(f"orchestrator.{verb}", kwargs=kwargs, queue="submissions")
            return sent.get(timeout=40, interval=0.05)

        event = {"session_id": session, "name": "flight_changed", "payload": change}
        later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        waiting = await asyncio.to_thread(
            call, "send_event", **event, not_before=later, idempotency_key="later"
        )
        assert waiting["status"] == "scheduled"
        cancelled = await asyncio.to_thread(call, "cancel_event", session_id=session, event_id="later")
        assert cancelled["status"] == "cancelled"
        now = await asyncio.to_thread(call, "send_event", **event, idempotency_key="now")
        again = await asyncio.to_thread(call, "send_event", **event, idempotency_key="now")
        assert again["turn_id"] == now["turn_id"]
        with pytest.raises(Exception, match="known events"):
            await asyncio.to_thread(call, "send_event", session_id=session, name="nothing")
    turn = (await http.get(f"/v1/turns/{now['turn_id']}", params={"wait": 20})).json()
    assert turn["status"] == "done"
    async with asyncio.timeout(20):
        while not (answers := [one for one in hook.events(secret) if one["type"] == "answer"]):
            await asyncio.sleep(0.1)
    assert [one["payload"]["reply"] for one in answers] == [turn["reply"]]
    acted = await http.post(
        f"/v1/sessions/{session}/turns?wait=20",
        json={"action": {"name": "event", "payload": {"name": "flight_changed", "payload": change}}},
    )
    assert acted.json()["tools"] == [], "an event is not for users to send"


@pytest.mark.slow
async def test_each_event_is_told_once_although_workers_are_killed(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """Reminders and events fall due while workers are killed at random: each is one turn with one answer."""
    suspect_nobody(database_url)
    chance = random.Random(31)
    with fleet(database_url, redis_url, tmp_path, {**TRAVEL, "PARLEY_MAX_ATTEMPTS": "50"}) as crew:
        async with crew.ports(PARLEY_DOMAIN="travel") as ports:
            crew.start(2, application="workers.app")
            sessions = [SessionId(f"killed-{number}") for number in range(SESSIONS)]
            for session in sessions:
                await _prepare(ports, session, chance)
            await kill_for(crew, SPREAD_S, chance)
            async with asyncio.timeout(90):
                turns = [await _settled(ports, session) for session in sessions]
        for told in turns:
            events = Counter(turn.input.action["payload"]["name"] for turn in told if turn.input.action)
            assert events == {"flight_reminder": 1, "flight_changed": CHANGES}
            assert {turn.status.value for turn in told} == {"done"}
            [reminder] = [turn for turn in told if "flight_reminder" in str(turn.input.action)]
            assert reminder.result is not None
            assert "Reminder: your flight" in reminder.result["reply"]
        with psycopg.connect(database_url) as connection:
            query = "SELECT session_id, turn_id, count(*) FROM utterances GROUP BY 1, 2 HAVING count(*) > 1"
            assert connection.execute(query).fetchall() == []
            undelivered = (
                "SELECT count(*) FROM scheduled_events"
                " WHERE status <> 'delivered' AND session_id LIKE 'killed-%'"
            )
            assert connection.execute(undelivered).fetchone() == (0,)


async def _prepare(ports: Ports, session: SessionId, chance: random.Random) -> None:
    """Book a flight and request a reminder, then make it and external events due within seconds."""
    day = datetime.now(UTC) + timedelta(days=5)
    for text in (f"Book a flight from Oslo to Madrid on {day:%d %B %Y}", "yes", "remind me an hour before"):
        turn = await run_turn(ports, session, text, "travel")
    assert turn.result is not None
    assert turn.result["completed"] == ["remind_flight"], turn.result["reply"]
    [reminder] = await ports.stores.scheduled.of_session(DEFAULT_TENANT, session)
    for number in range(CHANGES):
        event = NewEvent(
            session, DEFAULT_TENANT, "flight_changed", reminder.payload, f"change {number}", _soon(chance)
        )
        await ports.stores.scheduled.schedule(event)
    await ports.stores.scheduled.move(DEFAULT_TENANT, session, reminder.event_id, _soon(chance))


def _soon(chance: random.Random) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=chance.uniform(1, SPREAD_S))


async def _settled(ports: Ports, session: SessionId) -> list[TurnRecord]:
    """Return the session's system turns, when all have ended."""
    while True:
        turns = await ports.stores.inbox.turns(DEFAULT_TENANT, session_id=session)
        of_system = [turn for turn in turns if turn.input.kind is TurnKind.SYSTEM]
        if len(of_system) >= CHANGES + 1 and all(turn.status in FINISHED for turn in turns):
            return of_system
        await asyncio.sleep(0.2)
