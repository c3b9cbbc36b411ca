"""How many lanes a process runs side by side, over the stores in memory (RT-2)."""

from __future__ import annotations

import asyncio
from typing import Any

from orchestrator.runtime.journal import Journal
from orchestrator.runtime.lane import LaneRunner
from orchestrator.testing.inbox import MemoryInbox
from orchestrator.testing.lane import MemoryLane
from orchestrator.testing.live import MemoryLiveEvents, MemoryWakeup
from orchestrator.testing.store import ManualClock, MemoryStore
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.turn import Submission, TurnInput, TurnStatus
from orchestrator.types import DEFAULT_TENANT, SessionId
from workers.session_pool import SessionPool

CAPACITY = 3
WITHIN_S = 30.0
FIRST, SECOND, THIRD, *READY = map(SessionId, "abcde")


class FarWakeup(MemoryWakeup):
    """What is taken and what is offered is on its way until the test lets it arrive."""

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
    """Answers once it may; counts the turns that are at work."""

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
    """Some sessions are woken while others are taken, and while what has found no room is offered again."""
    store, wakeup, agent = MemoryStore(ManualClock()), FarWakeup(), PatientAgent()
    inbox = MemoryInbox(store)
    for session_id in (FIRST, SECOND, THIRD, *READY):
        turn = Submission(session_id, TurnInput("hello"), DEFAULT_TENANT, create_session=True, domain="d")
        await inbox.submit(turn)

    async def agents(_: str) -> PatientAgent:
        return agent

    runner = LaneRunner(MemoryLane(store), MemoryLiveEvents(), wakeup, agents)
    pool = SessionPool(runner, wakeup, capacity=CAPACITY, linger_s=0.0)
    async with asyncio.timeout(WITHIN_S):
        await MemoryWakeup.offer(wakeup, *READY)
        serving = asyncio.create_task(pool.wake(FIRST))
        await wakeup.is_taking.wait()
        await pool.wake(SECOND)  # of the two that were taken, one finds no room any more
        wakeup.taken.set()
        await wakeup.is_offering.wait()
        await MemoryWakeup.offer(wakeup, THIRD)
        await pool.wake(THIRD)
        wakeup.offered.set()
        while agent.at_work < CAPACITY:
            await asyncio.sleep(0)
        agent.may_answer.set()
        await serving  # until nothing is left

    assert agent.most_at_work == CAPACITY
    assert not any(session.unfinished() for session in store.sessions.values())
