"""Events for listeners during a turn (RT-15)."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.runtime import journal
from orchestrator.runtime.journal import Journal, TurnHints
from orchestrator.turns.lease import Lease
from orchestrator.types import Json, SessionId
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.live import MemoryLiveEvents
from parley.testing.store import MemoryStore
from tests.contract.factories import claim, opening

SESSION = SessionId("s")


async def first_turn(store: MemoryStore) -> tuple[MemoryLane, Lease]:
    await MemoryInbox(store).submit(opening(SESSION))
    lane = MemoryLane(store)
    return lane, await claim(lane, SESSION)


async def test_a_turn_that_takes_a_moment_is_seen_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "QUIET_FOR_S", 0.0)
    live = MemoryLiveEvents()
    lane, lease = await first_turn(MemoryStore())
    release = asyncio.Event()

    async def search(_: str) -> Json:
        await release.wait()
        return {"flights": []}

    async with live.listen(SESSION) as heard:
        telling = TurnHints(live, lease)
        steps = Journal(lane, lease, lease.work, telling.tell)
        request = {"tool_id": "flight_search", "arguments": {}}
        calling = asyncio.create_task(
            steps.call("tool:flight_search:1", "tool", request, search, idempotent=True)
        )
        told = [await anext(heard), await anext(heard)]
        release.set()
        await calling
        told.append(await anext(heard))
        telling.close()

    assert [(event.type, event.payload) for event in told] == [
        ("started", {"seq": 1}),
        ("tool_started", {"tool_id": "flight_search"}),
        ("tool_finished", {"tool_id": "flight_search"}),
    ]
    assert {event.number for event in told} == {None}
    assert {event.turn_id for event in told} == {lease.work.turn_id}


async def test_a_quick_turn_tells_nothing() -> None:
    live = MemoryLiveEvents()
    _, lease = await first_turn(MemoryStore())
    async with live.listen(SESSION) as heard:
        TurnHints(live, lease).close()
        await live.publish(SESSION, ())
        assert (await anext(heard)).type == "look"
