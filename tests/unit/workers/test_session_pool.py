"""Limits on concurrent lanes of a process, over the in-memory stores (RT-2)."""

from __future__ import annotations

import asyncio
from typing import Any

from orchestrator.runtime.journal import Journal
from orchestrator.runtime.lane import LaneRunner
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import SessionId
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.live import MemoryLiveEvents, MemoryWakeup
from parley.testing.store import ManualClock, MemoryStore
from tests.contract.factories import opening
from workers.session_pool import SessionPool

CAPACITY = 3
WITHIN_S = 30.0
FIRST, SECOND, THIRD, *READY = map(SessionId, "abcde")


class FarWakeup(MemoryWakeup):
    """Wake-ups that stay in transit until the test delivers them."""

    def __init__(self) -> None:
        super().__init__()
        self.is_taking, self.taken = asyncio.Event(), asyncio.Event()
        self.is_offering, self.offered = asyncio.Event(), asyncio.Event()

    async def take(self, *, limit: int, timeout_s: float) -> list[SessionId]:
        found = await super().take(limit=limit, timeout_s=timeout_s)
        self.is_taking.set()
        await self.taken.wait()
        return found

    async def offer(self, *session_ids: SessionId, **options: Any) -> bool:
        self.is_offering.set()
        await self.offered.wait()
        return await super().offer(*session_ids, **options)


class PatientAgent:
    """An agent that answers on command and counts its running turns."""

    deadline_s = 600.0

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.at_work = self.most_at_work = 0

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        await self.may_answer.wait()
        self.at_work -= 1
        return TurnCommit(status=TurnStatus.DONE, state=b"{}", diff=b"{}", snapshot=False, result={})


async def test_no_more_lanes_run_than_there_is_room_for() -> None:
    """Sessions are woken while others are claimed, and while rejected ones are offered again."""
    store, wakeup, agent = MemoryStore(ManualClock()), FarWakeup(), PatientAgent()
    inbox = MemoryInbox(store)
    for session_id in (FIRST, SECOND, THIRD, *READY):
        await inbox.submit(opening(session_id))

    async def agents(_: str) -> PatientAgent:
        return agent

    runner = LaneRunner(MemoryLane(store), MemoryLiveEvents(), wakeup, agents)
    pool = SessionPool(runner, wakeup, capacity=CAPACITY, linger_s=0.0)
    async with asyncio.timeout(WITHIN_S):
        await MemoryWakeup.offer(wakeup, *READY)
        serving = asyncio.create_task(pool.wake(FIRST))
        await wakeup.is_taking.wait()
        await pool.wake(SECOND)  # there is room for only one of the two
        wakeup.taken.set()
        await wakeup.is_offering.wait()
        await MemoryWakeup.offer(wakeup, THIRD)
        await pool.wake(THIRD)
        wakeup.offered.set()
        while agent.at_work < CAPACITY:
            await asyncio.sleep(0)
        agent.may_answer.set()
        await serving  # until all are done

    assert agent.most_at_work == CAPACITY
    assert not any(session.unfinished() for session in store.sessions.values())
