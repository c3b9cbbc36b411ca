"""Webhooks to real receivers: in order, signed, until confirmed, and never to private addresses (RT-16)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from orchestrator.adapters.postgres.claims import WorkerLock
from orchestrator.adapters.postgres.lanes.lane import PostgresLane
from orchestrator.adapters.postgres.pool import Database
from orchestrator.errors import InvalidInput, NotFound, Unauthenticated
from orchestrator.types import SessionId, TenantId, new_id
from tests.cases import for_each
from tests.celery_clients import celery_client, submit_turn
from tests.integration.access.posting import Post
from tests.integration.access.receiver import Receiver, receiver
from tests.integration.chaos.fleet import fleet
from tests.integration.chaos.processes.counting import EFFECTS
from workers import webhook_posts


@pytest.fixture
async def post(database_url: str) -> AsyncIterator[Post]:
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM webhook_feeds")  # undelivered events of earlier tests
    async with Database(database_url) as database, WorkerLock(database_url) as worker:
        place = Post(database_url, database, PostgresLane(database, worker), TenantId(new_id("tenant")))
        place.secret = await place.webhooks.rotate_secret(place.tenant)
        yield place


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Retry within a second, so that tests need not wait."""
    monkeypatch.setattr(webhook_posts, "FIRST_RETRY_S", 0.05)
    monkeypatch.setattr(webhook_posts, "LONGEST_RETRY_S", 0.5)


def numbers(place: Receiver, post: Post, session: SessionId) -> list[int]:
    return [event["number"] for event in place.events(post.secret) if event["session_id"] == session]


async def test_the_events_of_a_session_arrive_in_order_and_signed(post: Post) -> None:
    async with receiver() as place, post.worker():
        session = await post.session(place.url)
        other = await post.session()
        await post.talk(session, 5)
        await post.talk(other, 2)
        await place.wait_for(15)

        assert numbers(place, post, session) == list(range(1, 16))
        assert [event["type"] for event in place.events(post.secret)][:3] == ["accepted", "started", "answer"]
        headers, _ = place.deliveries[2]
        assert (headers["content-type"], headers["parley-event"]) == ("application/json", "answer")
        assert await post.webhooks.failing(post.tenant) == []


async def test_a_tenants_webhook_hears_all_its_sessions_from_then_on(post: Post) -> None:
    async with receiver() as place, post.worker():
        before = await post.session()
        await post.talk(before)
        await post.webhooks.create(post.tenant, place.url, events=("answer",))
        after = await post.session()
        await post.talk(before)
        await post.talk(after)
        await place.wait_for(2)
        await post.talk(after)
        await place.wait_for(3)

        assert {event["type"] for event in place.events(post.secret)} == {"answer"}
        assert numbers(place, post, before) == [6]
        assert numbers(place, post, after) == [3, 6]


async def test_a_receiver_that_was_away_gets_everything_once_it_is_back(post: Post) -> None:
    """The receiver stops in the middle, and another worker replaces the first meanwhile."""
    async with receiver() as place:
        session = await post.session(place.url)
        async with post.worker():
            await post.talk(session, 2)
            await place.wait_for(6)
            await place.down()
            await post.talk(session, 5)
            (feed,) = await post.failing(error="Connect")
            assert feed.delivered == 6
        async with post.worker():
            await post.talk(session, 3)
            await place.up()
            await place.wait_for(30)

        assert numbers(place, post, session) == list(range(1, 31))


async def test_an_event_that_the_receiver_refused_is_sent_again_before_the_next(post: Post) -> None:
    async def third_fails_twice(number: int) -> bytes:
        status = b"500 No" if number in {3, 4} else b"200 Yes"
        return b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    async with receiver() as place, post.worker():
        place.answer = third_fails_twice
        session = await post.session(place.url)
        await post.talk(session, 2)
        await place.wait_for(8)

        sent = [headers["webhook-id"].rpartition(":")[2] for headers, _ in place.deliveries]
        assert sent == ["1", "2", "3", "3", "3", "4", "5", "6"]
        assert [headers["parley-attempt"] for headers, _ in place.deliveries][2:6] == ["1", "2", "3", "1"]


async def test_a_slow_receiver_holds_up_nobody_else(post: Post) -> None:
    """Twenty sessions whose receiver never answers, and one whose receiver answers."""
    never = asyncio.Event()

    async def silence(_: int) -> bytes:
        await never.wait()
        return b""

    async with receiver() as slow, receiver() as quick, post.worker(timeout_s=1.0):
        slow.answer = silence
        stuck = f"http://localhost:{slow.port}/"
        for _ in range(20):
            await post.talk(await post.session(stuck))
        session = await post.session(quick.url)
        await post.talk(session, 3)

        await quick.wait_for(9)
        assert numbers(quick, post, session) == list(range(1, 10))
        feeds = await post.failing(error="no response within 1 s")
        assert all(feed.delivered == 0 for feed in feeds)
        never.set()


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://2130706433:{port}/",
    ],
)
async def test_a_private_address_is_never_spoken_to(post: Post, url: str) -> None:
    """`attacks/test_addresses.py` has all forms."""
    async with receiver() as place, post.worker(networks=()):
        await post.talk(await post.session(url.format(port=place.port)))
        await post.failing(error="the address is not public")
        assert place.deliveries == []


async def test_a_name_that_changes_its_address_is_spoken_to_where_it_was_checked(post: Post) -> None:
    """DNS rebinding: the connection uses the checked addresses, and a single private address is refused."""
    asked: list[str] = []

    async def look_up(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["93.184.215.14", "127.0.0.1"]

    async with receiver() as place, post.worker(networks=(), look_up=look_up):
        await post.talk(await post.session(f"http://hooks.example:{place.port}/"))
        await post.failing(error="the address is not public")
        assert asked[0] == "hooks.example"
        assert place.deliveries == []


async def test_a_redirect_to_a_private_address_is_refused(post: Post) -> None:
    async with receiver() as inside, receiver() as outside, post.worker():

        async def redirect(_: int) -> bytes:
            place = f"Location: {inside.url}\r\n".encode()
            return b"HTTP/1.1 307 There\r\n" + place + b"Content-Length: 0\r\nConnection: close\r\n\r\n"

        outside.answer = redirect
        await post.talk(await post.session(outside.url))
        await post.failing(error="returned 307: redirects are not followed")
        assert inside.deliveries == []


async def test_what_fails_for_too_long_is_given_up_until_an_operator_says_otherwise(post: Post) -> None:
    post.give_up_s = 0.2
    async with receiver() as place, post.worker() as sender:
        await place.down()
        session = await post.session(place.url)
        await post.talk(session)
        async with asyncio.timeout(20):
            while not (feeds := await post.webhooks.failing(post.tenant)) or feeds[0].given_up_at is None:
                await asyncio.sleep(0.02)
        (webhook,) = await post.webhooks.list(post.tenant)
        await place.up()
        await post.talk(session)  # later events wait as well
        await sender.send_due()
        await sender.settled()
        assert place.deliveries == []

        assert await post.webhooks.retry(post.tenant, webhook.webhook_id) == 1
        await place.wait_for(6)
        assert numbers(place, post, session) == list(range(1, 7))


async def test_a_receiver_that_is_gone_for_good_is_given_up_at_once(post: Post) -> None:
    async def gone(_: int) -> bytes:
        return b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    async with receiver() as place, post.worker():
        place.answer = gone
        await post.talk(await post.session(place.url))
        (feed,) = await post.failing(error="returned 410")
        assert feed.given_up_at is not None


async def test_both_secrets_are_used_while_one_replaces_the_other(post: Post) -> None:
    async with receiver() as place, post.worker():
        session = await post.session(place.url)
        new = await post.webhooks.rotate_secret(post.tenant)
        await post.talk(session)
        await place.wait_for(3)
        assert len(place.events(post.secret)) == len(place.events(new)) == 3

        await post.webhooks.rotate_secret(post.tenant)
        await post.talk(session)
        await place.wait_for(6)
        with pytest.raises(Unauthenticated):
            place.events(post.secret)
        assert len(place.events(new)) == 6


async def test_a_closed_webhook_hears_nothing(post: Post) -> None:
    async with receiver() as place, post.worker() as sender:
        session = await post.session(place.url)
        await post.talk(session)
        await place.wait_for(3)
        (webhook,) = await post.webhooks.list(post.tenant)
        await post.webhooks.close(post.tenant, webhook.webhook_id)
        await post.talk(session)
        await sender.send_due()
        await sender.settled()
        assert len(place.deliveries) == 3
        assert await post.webhooks.list(post.tenant) == []


async def test_two_workers_deliver_each_event_once(post: Post) -> None:
    async with receiver() as place, post.worker(), post.worker():
        sessions = [await post.session(place.url) for _ in range(5)]
        for session in sessions:
            await post.talk(session, 4)
        await place.wait_for(60)
        assert len(place.deliveries) == 60
        for session in sessions:
            assert numbers(place, post, session) == list(range(1, 13))


@for_each(
    "url",
    ["ftp://a/", "http://", "https://user:word@a/", "http://a:99999/", "http://[::1/", "https://a/#part"],
)
async def test_an_address_that_is_none_is_refused(post: Post, url: str) -> None:
    with pytest.raises(InvalidInput):
        await post.session(url)
    with pytest.raises(InvalidInput):
        await post.webhooks.create(post.tenant, url)


async def test_a_webhook_of_a_session_that_is_not_there_is_refused(post: Post) -> None:
    """The database's foreign key error is not reported as an internal error."""
    with pytest.raises(NotFound, match="Session 'nobody' not found"):
        await post.webhooks.create(post.tenant, "https://hooks.example/", session_id=SessionId("nobody"))
    assert await post.webhooks.list(post.tenant) == []


async def test_without_a_webhook_nothing_is_noted(post: Post) -> None:
    """Sessions without webhooks have no overhead: no marked lanes, no feeds."""
    session = await post.session()
    await post.talk(session)
    with psycopg.connect(post.url) as connection:
        row = connection.execute("SELECT has_webhook FROM lanes WHERE session_id = %s", (session,)).fetchone()
        feeds = connection.execute("SELECT FROM webhook_feeds WHERE session_id = %s", (session,)).fetchall()
    assert (row, feeds) == ((False,), [])


async def test_a_worker_process_delivers(post: Post, redis_url: str, tmp_path: Path) -> None:
    """The whole path: a turn over the queue, its worker, and the receiver. The settings say when it gives up."""
    with psycopg.connect(post.url) as connection:
        connection.execute(EFFECTS)
    settings = {
        "PARLEY_LEASE_TTL_S": "3",
        "PARLEY_WEBHOOK_NETWORKS": '["127.0.0.0/8"]',
        "PARLEY_WEBHOOK_TIMEOUT_S": "1",
        "PARLEY_WEBHOOK_GIVE_UP_S": "0.5",
    }
    never = asyncio.Event()

    async def silence(_: int) -> bytes:
        await never.wait()
        return b""

    async with receiver() as place, receiver() as silent:
        silent.answer = silence
        session = await post.session(place.url)
        await post.talk(await post.session(silent.url))
        with fleet(post.url, redis_url, tmp_path, settings) as crew:
            await asyncio.to_thread(crew.start, 1, queues="turns,submissions,internal,urgent")
            with celery_client(redis_url) as app:
                sent = submit_turn(app, session, "say", domain="travel", tenant_id=post.tenant, wait=20)
                done = await asyncio.to_thread(sent.get, timeout=30, interval=0.05)
            assert done["status"] == "done"
            async with asyncio.timeout(20):
                while not any(event["type"] == "answer" for event in place.events(post.secret)):
                    await asyncio.sleep(0.02)
                while not (feeds := await post.failing(error="no response within 1 s"))[0].given_up_at:
                    await asyncio.sleep(0.02)
        never.set()
    events = place.events(post.secret)
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert len(feeds) == 1
