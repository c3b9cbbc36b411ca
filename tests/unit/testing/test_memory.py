"""What only the ports in memory have: wake-ups and live events within one loop."""

from __future__ import annotations

import asyncio

from orchestrator.testing.events import MemoryLiveEvents
from orchestrator.testing.wakeup import MemoryWakeup
from orchestrator.turns.event import Event
from orchestrator.types import SessionId

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
