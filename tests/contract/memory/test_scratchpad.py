"""The scratchpad, in memory and in Redis with PostgreSQL (RT-13, RT-14)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from orchestrator.adapters.postgres.memory.scratchpad import OwnedEntry, PostgresScratchpadArchive
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.redis.scratchpad import PREFIX, RedisScratchpad
from orchestrator.errors import NotFound, Unavailable
from orchestrator.ports.memory.scratchpad import CAPACITY, Entry, EntryKind, Scratchpad
from orchestrator.types import DEFAULT_TENANT, Epoch, SessionId, TenantId, new_id
from parley.testing.memory import MemoryScratchpad


def entry(text: str, *, kind: EntryKind = EntryKind.FINDING, **more) -> Entry:
    return Entry("gather_context", "turn_1", kind, at=1.5, text=text, **more)


@pytest.fixture
async def redis_pad(database_url: str, redis_url: str) -> AsyncIterator[tuple[RedisScratchpad, Redis]]:
    migrate(database_url)
    async with Redis.from_url(redis_url) as redis, Database(database_url) as database:
        yield RedisScratchpad(redis, PostgresScratchpadArchive(database), keep_s=60), redis


@pytest.fixture(params=["memory", "redis"])
def pad(request: pytest.FixtureRequest) -> Scratchpad:
    return MemoryScratchpad() if request.param == "memory" else request.getfixturevalue("redis_pad")[0]


@pytest.fixture
async def session(database_url: str) -> SessionId:
    """Return an existing session, which its scratchpad entries require."""
    migrate(database_url)
    async with Database(database_url) as database:
        return (await PostgresSessions(database).create(DEFAULT_TENANT, "travel")).session_id


async def texts(pad: Scratchpad, session: SessionId, **more) -> list[str | None]:
    return [found.text for found in await pad.read(DEFAULT_TENANT, session, **more)]


async def test_the_copies_of_many_sessions_are_read_at_once(database_url: str, session: SessionId) -> None:
    """The result is the same as that of single reads: the last saved entries, the latest at the end."""
    async with Database(database_url) as database:
        archive = PostgresScratchpadArchive(database)
        empty = (await PostgresSessions(database).create(DEFAULT_TENANT, "travel")).session_id
        for number in range(3):
            kept = [entry("kept", entry_id=f"{number} {one}") for one in range(CAPACITY // 2)]
            await archive.save(OwnedEntry(DEFAULT_TENANT, session, one) for one in kept)
        found = await archive.load_all([session, empty])

        alone = await archive.load(DEFAULT_TENANT, session)
        assert {name: len(entries) for name, entries in found.items()} == {session: CAPACITY}
        assert {one.entry_id for one in found[session]} == {one.entry_id for one in alone}


async def test_what_was_put_is_read_whole(pad: Scratchpad, session: SessionId) -> None:
    """RT-13"""
    given = entry("it", data={"rows": [1, 2]}, epoch=Epoch(7), labels=("untrusted", "private"), entry_id="e1")
    await pad.put(DEFAULT_TENANT, session, (given,))

    assert await pad.read(DEFAULT_TENANT, session) == [given]


async def test_entries_without_an_id_get_one(pad: Scratchpad, session: SessionId) -> None:
    await pad.put(DEFAULT_TENANT, session, (entry("a"), entry("a")))

    assert len({found.entry_id for found in await pad.read(DEFAULT_TENANT, session)}) == 2


async def test_the_same_id_is_replaced(pad: Scratchpad, session: SessionId) -> None:
    await pad.put(DEFAULT_TENANT, session, (entry("old", entry_id="x"), entry("other")))
    await pad.put(DEFAULT_TENANT, session, (entry("new", entry_id="x"),))

    assert await texts(pad, session) == ["other", "new"]


async def test_kinds_are_read_by_themselves(pad: Scratchpad, session: SessionId) -> None:
    await pad.put(DEFAULT_TENANT, session, (entry("f"), entry("s", kind=EntryKind.SUMMARY)))

    assert await texts(pad, session, kinds=frozenset({EntryKind.SUMMARY})) == ["s"]


async def test_the_least_recently_used_goes_first(pad: Scratchpad, session: SessionId) -> None:
    """RT-13: the capacity is 64, and reading a kind counts as use."""
    first = tuple(entry(str(number), entry_id=str(number)) for number in range(CAPACITY - 1))
    await pad.put(DEFAULT_TENANT, session, (entry("kept", kind=EntryKind.SUMMARY, entry_id="kept"), *first))
    await texts(pad, session, kinds=frozenset({EntryKind.SUMMARY}))
    gone = await pad.put(DEFAULT_TENANT, session, (entry("x"), entry("y")))

    left = await texts(pad, session, touch=False)
    assert gone == ["0", "1"]
    assert len(left) == CAPACITY
    assert "kept" in left


async def test_looking_without_touching_uses_nothing(pad: Scratchpad, session: SessionId) -> None:
    await pad.put(DEFAULT_TENANT, session, (entry("a"), entry("b", kind=EntryKind.RESULT)))
    await texts(pad, session, kinds=frozenset({EntryKind.FINDING}), touch=False)

    assert await texts(pad, session) == ["a", "b"]


async def test_an_operation_is_carried_out_once(pad: Scratchpad, session: SessionId) -> None:
    """RT-13: its response may have been lost."""
    await pad.put(DEFAULT_TENANT, session, (entry("once"),), operation="run_1:3")
    await pad.put(DEFAULT_TENANT, session, (entry("once"),), operation="run_1:3")

    assert await texts(pad, session) == ["once"]


async def test_writers_side_by_side_lose_nothing(pad: Scratchpad, session: SessionId) -> None:
    """RT-13"""
    await asyncio.gather(*(pad.put(DEFAULT_TENANT, session, (entry(f"{writer}"),)) for writer in range(40)))

    assert sorted(await texts(pad, session), key=str) == sorted(map(str, range(40)))


async def test_removed_and_forgotten_entries_are_gone(pad: Scratchpad, session: SessionId) -> None:
    await pad.put(DEFAULT_TENANT, session, (entry("a", entry_id="a"), entry("b", entry_id="b")))
    assert await pad.remove(DEFAULT_TENANT, session, ("a", "nothing")) == 1
    assert await texts(pad, session) == ["b"]

    await pad.forget(DEFAULT_TENANT, session)

    assert await texts(pad, session) == []


async def test_tenants_and_sessions_are_apart(pad: Scratchpad, session: SessionId) -> None:
    """RT-22"""
    await pad.put(DEFAULT_TENANT, session, (entry("mine"),))

    assert await pad.read(TenantId("other"), session) == []
    assert await texts(pad, SessionId(new_id("session"))) == []


async def test_a_scratchpad_that_redis_lost_returns(redis_pad, session: SessionId) -> None:
    """RT-14: at the next read or write."""
    pad, redis = redis_pad
    await pad.put(DEFAULT_TENANT, session, (entry("a"), entry("b")))
    await redis.flushdb()
    assert await texts(pad, session) == ["a", "b"]

    await redis.flushdb()
    await pad.put(DEFAULT_TENANT, session, (entry("c"),))

    assert sorted(await texts(pad, session), key=str) == ["a", "b", "c"]


async def test_evicted_and_removed_entries_do_not_return(redis_pad, session: SessionId) -> None:
    """RT-13, RT-14"""
    pad, redis = redis_pad
    entries = tuple(entry(str(number), entry_id=str(number)) for number in range(CAPACITY + 3))
    await pad.put(DEFAULT_TENANT, session, entries)
    await pad.remove(DEFAULT_TENANT, session, ("10",))
    await redis.flushdb()

    found = await texts(pad, session)
    assert found == [str(number) for number in range(3, CAPACITY + 3) if number != 10]


async def test_what_is_put_into_many_at_once_is_saved_for_all_that_are_there(
    redis_pad, session: SessionId, database_url: str
) -> None:
    """RT-14: a missing session does not affect the others, whose entries survive the loss of Redis."""
    pad, redis = redis_pad
    async with Database(database_url) as database:
        others = [
            (await PostgresSessions(database).create(DEFAULT_TENANT, "travel")).session_id for _ in range(3)
        ]
    gone = SessionId(new_id("session"))
    to = [session, others[0], gone, *others[1:]]
    ended = await asyncio.gather(
        *(pad.put(DEFAULT_TENANT, one, (entry("same", entry_id="same"),)) for one in to),
        return_exceptions=True,
    )
    await redis.flushdb()

    assert [type(one) for one in ended] == [list, list, NotFound, list, list]
    assert [await texts(pad, one) for one in to] == [["same"], ["same"], [], ["same"], ["same"]]


async def test_keys_are_in_one_slot_and_expire(redis_pad, session: SessionId) -> None:
    """RT-13"""
    pad, redis = redis_pad
    await pad.put(DEFAULT_TENANT, session, (entry("a"),), operation="o")
    keys = [key async for key in redis.scan_iter(f"{PREFIX}*")]

    assert len(keys) == 4
    assert {key.split(b"{")[1].split(b"}")[0] for key in keys} == {f"{DEFAULT_TENANT}/{session}".encode()}
    for key in keys:
        assert 0 < await redis.ttl(key) <= 60


async def test_a_redis_that_is_away_is_named(database_url: str, session: SessionId) -> None:
    """RT-18"""
    migrate(database_url)
    async with Redis.from_url("redis://127.0.0.1:1/0") as redis, Database(database_url) as database:
        pad = RedisScratchpad(redis, PostgresScratchpadArchive(database))
        with pytest.raises(Unavailable, match="Redis"):
            await pad.read(DEFAULT_TENANT, session)
