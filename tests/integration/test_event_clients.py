"""Clients that follow a session: each durable event once and in order, despite interruptions (RT-15)."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Self

import pytest
from redis import Redis

from orchestrator.adapters.redis.events import CHANNEL
from orchestrator.errors import NotFound, Unavailable
from orchestrator.turns.event import Event
from orchestrator.types import SessionId, TurnId
from parley.embedded import open_redis
from parley.embedded.ports import free_port
from parley.embedded.redis import find_server
from parley_client import AsyncClient, Client, SessionEvent
from tests.integration.chaos.fleet import wait_until
from tests.integration.gateway import House, open_house
from tests.processes.servers import running

PAUSE_S = 0.04
"""Pause between two turns, so that a client that reads few events at a time can keep up."""


@pytest.mark.parametrize("times", [25, pytest.param(100, marks=pytest.mark.slow)])
async def test_a_client_that_reconnects_often_misses_nothing(
    database_url: str, redis_url: str, times: int
) -> None:
    """At random moments, with Redis flushed and connections cut in between."""
    chance = random.Random(15)
    async with open_house(database_url, redis_url) as house, AsyncClient(house.url) as client:
        session = await house.session()
        stop = asyncio.Event()
        working = asyncio.create_task(_work(house, session, stop))
        seen: list[SessionEvent] = []
        with Redis.from_url(redis_url) as redis:
            for number in range(times):
                await _listen_for_a_while(client, session, seen, chance.randint(0, 6))
                if number % 10 == 9:
                    redis.flushdb()
                if number % 25 == 24:
                    redis.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        stop.set()
        await working
        logged = await house.logged(session)
        async with aclosing(client.stream(session, after=_last(seen))) as events:
            while _last(seen) < len(logged):
                seen.append(await anext(events))

    durable = [event for event in seen if event.number is not None]
    assert [event.number for event in durable] == list(range(1, len(logged) + 1))
    assert [(event.type, event.turn_id, event.payload) for event in durable] == [
        (event.type, event.turn_id, event.payload) for event in logged
    ]
    assert len(logged) > times


async def _work(house: House, session: SessionId, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await house.submit(session)
        await house.answer(session)
        await asyncio.sleep(PAUSE_S)


def _last(seen: list[SessionEvent]) -> int:
    return next((event.number for event in reversed(seen) if event.number is not None), 0)


async def _listen_for_a_while(
    client: AsyncClient, session: SessionId, seen: list[SessionEvent], events: int
) -> None:
    """Read some events, or none, and close the connection while more arrive."""
    async with aclosing(client.stream(session, after=_last(seen))) as stream:
        for _ in range(events):
            seen.append(await anext(stream))  # noqa: PERF401  # kept when it is interrupted


async def test_a_client_goes_on_when_redis_restarts(database_url: str, tmp_path: Path) -> None:
    """Without Redis from the log, and afterwards live, from the new Redis that replaced the lost one."""
    with open_redis(tmp_path, durable=False) as store:
        async with open_house(database_url, store.url) as house, AsyncClient(house.url) as client:
            session = await house.session()
            async with aclosing(client.stream(session)) as events:
                await house.submit(session)
                await house.answer(session)
                before = [await anext(events) for _ in range(3)]
                with Redis.from_url(store.url) as redis, suppress(ConnectionError):
                    redis.shutdown(nosave=True)  # type: ignore[call-arg]
                turn_id = await house.submit(session)
                await house.answer(session)
                after = [await anext(events) for _ in range(3)]
                with running([find_server(), tmp_path / "redis" / "redis.conf"], tmp_path / "again.log"):
                    telling = asyncio.create_task(_tell_until_cancelled(house, session, turn_id))
                    heard = await anext(events)
                    telling.cancel()
                    await asyncio.gather(telling, return_exceptions=True)
    assert [event.number for event in before + after] == [1, 2, 3, 4, 5, 6]
    assert (heard.type, heard.number, heard.payload["text"]) == ("token", None, "I am")


async def _tell_until_cancelled(house: House, session: SessionId, turn_id: str) -> None:
    """Repeat an event, because a live event without listeners is lost."""
    token = Event(session, "token", TurnId(turn_id), {"text": "I am", "offset": 0})
    while True:
        await house.ports.shared.live.publish(session, (token,))
        await asyncio.sleep(0.05)


async def test_a_client_comes_back_by_itself(database_url: str, redis_url: str) -> None:
    """The gateway stops and another replaces it."""
    port = free_port()
    async with open_house(database_url, redis_url, port=port) as house:
        session = await house.session()
        await house.submit(session)
        client = AsyncClient(house.url)
        events = client.stream(session)
        first = await anext(events)
    following = asyncio.ensure_future(anext(events))
    async with open_house(database_url, redis_url, port=port) as house:
        await house.answer(session)
        second = await following
        await events.aclose()
        await client.close()
    assert (first.number, second.number) == (1, 2)


async def test_the_blocking_client_follows_too(house: House) -> None:
    session = await house.session()
    await house.submit(session)
    await house.answer(session)

    def read() -> list[SessionEvent]:
        with Client(house.url) as client:
            stream = client.stream(session, after=1)
            events = [next(stream), next(stream)]
            stream.close()
            return events

    events = await asyncio.to_thread(read)
    assert [(event.type, event.number) for event in events] == [("started", 2), ("answer", 3)]
    assert events[1].payload["reply"] == "you said hello"


async def test_who_leaves_does_not_interrupt_who_stays(house: House, redis_url: str) -> None:
    """All listeners share a connection, which must survive the end of a client."""
    staying, leaving = await house.session(), await house.session()
    with Redis.from_url(redis_url) as redis:
        channel = f"{CHANNEL}{leaving}"
        async with AsyncClient(house.url) as client, aclosing(client.stream(staying)) as events:
            await house.submit(staying)
            await anext(events)
            listening = {each["id"] for each in redis.client_list(_type="pubsub")}
            await house.submit(leaving)
            async with aclosing(client.stream(leaving)) as soon_closed:
                await anext(soon_closed)
            await asyncio.to_thread(
                wait_until,
                lambda: dict(redis.pubsub_numsub(channel)) == {channel.encode(): 0},
                within_s=20,
                what="the gateway has noticed that the client left",
            )
            assert {each["id"] for each in redis.client_list(_type="pubsub")} == listening


async def test_what_cannot_be_followed_is_said_at_once(house: House) -> None:
    async with AsyncClient(house.url) as client:
        with pytest.raises(NotFound):
            await anext(client.stream("nowhere"))
    async with AsyncClient(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(Unavailable):
            await anext(client.stream("nowhere"))


async def test_a_submission_whose_answer_was_lost_is_one_turn(house: House) -> None:
    """The client repeats the submission with the same key."""
    session = await house.session()
    lossy = _Lossy(house.url)
    async with lossy, AsyncClient(lossy.url) as client:
        receipt = await client.submit(session, "hello")
        turns = await client.turns(session_id=session)
    assert lossy.lost == 1
    assert [turn["turn_id"] for turn in turns] == [receipt["turn_id"]]


class _Lossy:
    """A proxy between client and gateway that loses the first answer."""

    def __init__(self, gateway: str) -> None:
        host, _, port = gateway.removeprefix("http://").partition(":")
        self._gateway = (host, int(port))
        self.lost = 0
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, onward = await asyncio.open_connection(*self._gateway)
        sending = asyncio.create_task(_copy(reader, onward))
        answer = await upstream.read(65536)
        if self.lost:
            writer.write(answer)
            await _copy(upstream, writer)
        else:
            self.lost += 1
        writer.close()
        onward.close()
        sending.cancel()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
