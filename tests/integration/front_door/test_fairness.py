"""One tenant's burst delays no other tenant (RT-5), and refusals cost less than acceptances."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
from celery import Celery
from kombu.utils.json import dumps

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.turns.inbox import PostgresInbox
from orchestrator.adapters.redis.address import for_celery
from orchestrator.adapters.redis.client import connect
from orchestrator.errors import InboxFull
from orchestrator.ports.tasks import SUBMISSIONS
from orchestrator.types import DEFAULT_TENANT
from tests.celery_clients import connected, submit_turn
from tests.contract.factories import new_session_id, submission
from tests.integration.chaos.fleet import Fleet, fleet, times_as_long, wait_until
from tests.integration.front_door.plain_backend import make_app
from workers.messages import fairness
from workers.messages.fairness import SHARE, FairOrder, choose_first, read_tenant


@pytest.fixture
def crew(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Fleet]:
    with fleet(database_url, redis_url, tmp_path, {"PARLEY_SESSION_INBOX_LIMIT": "10000"}) as crew:
        for queues in ("turns", "submissions"):
            crew.start(1, queues=queues)
        yield crew


@pytest.fixture
def app(redis_url: str) -> Iterator[Celery]:
    url = for_celery(redis_url)
    with connected(make_app(url, url)) as app:
        yield app


@pytest.mark.parametrize(
    ("behind", "sessions", "burst"),
    [
        ("submissions", 1, 1000),
        pytest.param("submissions", 1, 4000, marks=pytest.mark.slow),
        pytest.param("submissions", 4000, 4000, marks=pytest.mark.slow),
        pytest.param("turns", 4000, 4000, marks=pytest.mark.slow),
    ],
)
def test_another_tenant_is_answered_within_a_second(
    crew: Fleet,
    app: Celery,
    database_url: str,
    behind: str,
    sessions: int,
    burst: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Behind a burst of submissions in the broker, and behind as many turns waiting for a worker."""
    name = f"{behind}-{sessions}-{burst}"

    def send(tenant: str, session: str, **more: Any) -> Any:
        return submit_turn(app, session, "say", ignore_result="wait" not in more, tenant_id=tenant, **more)

    def count(condition: str) -> int:
        with psycopg.connect(database_url) as connection:
            query = f"SELECT count(*) FROM turns WHERE session_id LIKE 'loud-{name}-%' AND {condition}"
            [(found,)] = connection.execute(query.encode()).fetchall()
        return found

    held = crew.workers[0 if behind == "turns" else 1]
    held.freeze()  # otherwise it would keep up with the sender
    for number in range(burst):
        send("loud", f"loud-{name}-{number % sessions}")
    if behind == "turns":
        wait_until(lambda: count("true") == burst, within_s=60, what="all are accepted", look_every_s=0.5)
    held.thaw()
    times: list[float] = []
    for number in range(5):
        began = time.monotonic()
        send("quiet", f"quiet-{name}-{number}", wait=60).get(timeout=60, interval=0.02)
        times.append(time.monotonic() - began)
    over = count("finished_at IS NOT NULL" if behind == "turns" else "true")
    with capsys.disabled():
        seconds = ", ".join(f"{one:.2f}" for one in times)
        print(f"\nbehind {burst} {behind} of {sessions} sessions ({over} over by then): {seconds} s")
    assert over < burst, "the burst was over before it could be in anybody's way"
    assert sorted(times)[len(times) // 2] < 1.0 * times_as_long()


def message_of(tenant: str, number: int) -> bytes:
    return f"{tenant}-{number}".encode()


def envelope_of(tenant: str, number: int) -> bytes:
    return orjson.dumps({"number": number, "body": dumps([[], {"tenant_id": tenant}, {}])})


async def test_new_messages_of_quiet_tenants_go_ahead_in_their_order(redis_url: str) -> None:
    async with connect(redis_url) as client:
        redis: Any = client
        await redis.delete(SUBMISSIONS)
        order = FairOrder(client, "consumer")

        async def taken(count: int) -> list[tuple[str, int]]:
            found = [await redis.rpop(SUBMISSIONS) for _ in range(count)]
            return [(read_tenant(message), orjson.loads(message)["number"]) for message in found]

        await redis.lpush(SUBMISSIONS, *(envelope_of("loud", number) for number in range(200)))
        assert await order.arrange() == 0
        await redis.lpush(SUBMISSIONS, envelope_of("quiet", 0), envelope_of("loud", 200))
        await redis.lpush(SUBMISSIONS, envelope_of("quiet", 1), envelope_of("third", 0))
        assert await order.arrange() == 3
        assert await taken(2) == [("quiet", 0), ("quiet", 1)]

        await redis.lpush(SUBMISSIONS, envelope_of("quiet", 2))
        assert await order.arrange() == 1
        assert await taken(3) == [("third", 0), ("quiet", 2), ("loud", 0)]
        await redis.lpush(SUBMISSIONS, envelope_of("quiet", 3))
        assert await order.arrange() == 1
        assert await taken(2) == [("quiet", 3), ("loud", 1)], "nothing of its own is ahead any more"
        assert await redis.llen(SUBMISSIONS) == 199
        await redis.delete(SUBMISSIONS)


async def test_a_tenant_with_many_waiting_gains_on_one_with_more(redis_url: str) -> None:
    async with connect(redis_url) as client:
        redis: Any = client
        await redis.delete(SUBMISSIONS)
        await redis.lpush(SUBMISSIONS, *(envelope_of("loud", number) for number in range(300)))
        await redis.lpush(SUBMISSIONS, *(envelope_of("busy", number) for number in range(SHARE + 9)))
        order = FairOrder(client, "consumer")

        assert await order.arrange() == SHARE
        await redis.lpush(SUBMISSIONS, envelope_of("busy", SHARE + 9))
        assert await order.arrange() == 0, "older ones of the tenant would be overtaken"
        messages = [await redis.rpop(SUBMISSIONS) for _ in range(SHARE + 1)]
        numbers = [orjson.loads(message)["number"] for message in messages]
        assert numbers == [*range(SHARE), 0]
        await redis.delete(SUBMISSIONS)


async def test_an_idle_worker_looks_at_the_queue_as_soon_as_it_consumes_a_submission(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fairness, "LOOK_WHEN_IDLE_EVERY_S", 60.0)
    async with connect(redis_url) as client:
        order = FairOrder(client, "consumer")
        watching = asyncio.create_task(order.watch())
        await asyncio.sleep(2 * fairness.LOOK_WHEN_SHORT_EVERY_S)
        assert not watching.done()

        order.note_consumed()

        await asyncio.wait_for(watching, 10.0)


def test_the_fewest_come_first_one_of_each_in_turn() -> None:
    waiting = [message_of("a", n) for n in range(100)]
    waiting += [message_of("b", 0), message_of("c", 0), message_of("b", 1)]
    waiting += [message_of("d", n) for n in range(SHARE + 5)]
    tenants = {message: message.decode()[0] for message in waiting}

    first = choose_first(waiting, tenants)

    assert first[:5] == [
        message_of("b", 0),
        message_of("c", 0),
        message_of("d", 0),
        message_of("b", 1),
        b"d-1",
    ]
    assert len(first) == 3 + SHARE
    rest = [message for message in waiting if message not in first]
    assert choose_first([*first, *rest], tenants) == first, "they are at the head already"
    assert choose_first(waiting[:100], tenants) == [], "nobody else waits"


def test_a_message_tells_its_tenant_or_counts_as_the_default_one() -> None:
    with Celery(set_as_current=False, broker="memory://") as app:
        body = app.amqp.as_task_v2("id", "orchestrator.submit_turn", kwargs={"tenant_id": "shop"}).body
    told = {"body": dumps(body), "properties": {}}
    assert read_tenant(json.dumps(told).encode()) == "shop"
    for odd in (
        b"",
        b"{",
        b"7",
        b'{"body": 7}',
        b'{"body": "[7]"}',
        b'{"body": "[[], [], 0]"}',
        os.urandom(20),
    ):
        assert read_tenant(odd) == DEFAULT_TENANT


async def test_a_session_that_is_held_up_holds_up_no_other(database_url: str) -> None:
    """Submissions that wait for a locked lane do not use all connections."""
    async with Database(database_url) as connections:
        inbox = PostgresInbox(connections)
        held, free = new_session_id(), new_session_id()
        for name in (held, free):
            await inbox.submit(submission(DEFAULT_TENANT, name, "say", create_session=True, domain="travel"))
        async with await psycopg.AsyncConnection.connect(database_url) as holder:
            await holder.execute("SELECT FROM lanes WHERE session_id = %s FOR UPDATE", [held])
            waiting = [
                asyncio.create_task(inbox.submit(submission(DEFAULT_TENANT, held, "say"))) for _ in range(20)
            ]
            await asyncio.sleep(0.2)
            async with asyncio.timeout(3):
                await inbox.submit(submission(DEFAULT_TENANT, free, "say"))
            assert not any(task.done() for task in waiting)
            await holder.rollback()
        assert sorted(receipt.seq for receipt in await asyncio.gather(*waiting)) == list(range(2, 22))


async def test_a_turn_for_a_busy_session_is_one_statement_and_so_is_a_refusal(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Database(database_url) as connections:
        inbox = PostgresInbox(connections, session_limit=3)
        name = new_session_id()
        await inbox.submit(submission(DEFAULT_TENANT, name, "say", create_session=True, domain="travel"))
        statements: list[str] = []
        fetch_one = Database.fetch_one

        async def counted(self: Database, query: Any, arguments: Any) -> Any:
            statements.append(query.text.split()[0])
            return await fetch_one(self, query, arguments)

        monkeypatch.setattr(Database, "fetch_one", counted)
        monkeypatch.delattr(Database, "transaction")

        for _ in range(2):
            await inbox.submit(submission(DEFAULT_TENANT, name, "stop"))
        assert statements == ["WITH", "WITH"]
        heard = await connections.fetch_all(
            "SELECT seq, interjects, said_seq FROM turns JOIN lanes USING (session_id)"
            " WHERE session_id = %(name)s ORDER BY seq",
            {"name": name},
        )
        assert heard == [(1, None, 3), (2, True, 3), (3, True, 3)]
        for _ in range(2):
            statements.clear()
            with pytest.raises(InboxFull):
                await inbox.submit(submission(DEFAULT_TENANT, name, "say"))
        assert statements == ["SELECT"]


async def test_refusing_costs_less_than_accepting(database_url: str) -> None:
    async with Database(database_url) as connections:
        inbox = PostgresInbox(connections, session_limit=300)
        name = new_session_id()
        first = submission(DEFAULT_TENANT, name, "say", create_session=True, domain="travel")
        await inbox.submit(first)

        accepting = await _count_log_bytes(connections, inbox, name, 299)
        refusing = await _count_log_bytes(connections, inbox, name, 299)
        with pytest.raises(InboxFull):
            await inbox.submit(submission(DEFAULT_TENANT, name, "say"))

    assert refusing < accepting / 10, "a refusal reads and writes nothing"


async def _count_log_bytes(database: Database, inbox: PostgresInbox, name: Any, times: int) -> int:
    """Submit this many times, and return the size of PostgreSQL's log for this, in bytes."""
    log = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
    before = await database.fetch_one(log, {})
    for _ in range(times):
        try:
            await inbox.submit(submission(DEFAULT_TENANT, name, "say"))
        except InboxFull:
            continue
    after = await database.fetch_one(log, {})
    assert before is not None
    assert after is not None
    return after[0] - before[0]
