"""Properties of the in-memory ports only: wake-ups and live events within one loop, and dictionaries as indexes."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from orchestrator.turns.event import Event
from orchestrator.types import SessionId
from parley.testing.live import MemoryLiveEvents, MemoryWakeup
from tests.trained import simulate

ONE, TWO = SessionId("one"), SessionId("two")


async def test_doubled_hints_are_one() -> None:
    """RT-1"""
    wakeup = MemoryWakeup()
    await wakeup.offer(ONE, TWO)
    await wakeup.offer(ONE)
    assert await wakeup.take(limit=1, timeout_s=0) == [ONE]
    assert not await wakeup.retire()
    assert await wakeup.take(limit=5, timeout_s=0) == [TWO]
    assert await wakeup.take(limit=5, timeout_s=0) == []
    assert await wakeup.retire()


async def test_who_waits_is_woken() -> None:
    wakeup = MemoryWakeup()
    waiting = asyncio.create_task(wakeup.take(limit=5, timeout_s=30))
    await asyncio.sleep(0)
    await wakeup.offer(TWO)
    assert await waiting == [TWO]


async def test_listeners_hear_what_is_told_from_then_on() -> None:
    """RT-15"""
    live = MemoryLiveEvents()
    await live.publish(ONE, (Event(ONE, "started"),))
    async with live.listen(ONE) as heard, live.listen(TWO):
        await live.publish(TWO, (Event(TWO, "started"),))
        await live.publish(
            ONE, (Event(ONE, "token", payload={"text": "Hel", "offset": 0}), Event(ONE, "answer"))
        )
        assert [(await anext(heard)).type for _ in range(2)] == ["token", "answer"]


class OnlyLookedUp(dict[Any, Any]):
    """A dictionary that cannot be iterated."""

    def __iter__(self) -> NoReturn:
        raise AssertionError("all rows were looked at")

    keys = values = items = __iter__


async def test_a_turn_looks_at_no_other_session() -> None:
    """RT-19: idle sessions cost nothing, as in PostgreSQL."""
    simulator = simulate("desk")
    store = simulator.store
    talk = simulator.converse()
    await talk.say("check the ink")
    store.sessions, store.approvals = OnlyLookedUp(store.sessions), OnlyLookedUp(store.approvals)
    store.effects = OnlyLookedUp(store.effects)

    assert (await talk.say("no"))["status"] == "done"
    assert (await talk.say("order toner for printer two"))["status"] == "done"
    assert (await talk.say("yes"))["completed"] == ["order_toner"]
