"""The worker's side of a session lane, over the in-memory stores (RT-2 … RT-7, RT-18)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import orjson

from orchestrator.errors import InvalidInput
from orchestrator.runtime.journal import Journal
from orchestrator.runtime.lane import LaneRunner
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Committed, Lease, TurnCommit, Work
from orchestrator.turns.turn import Receipt, TurnRecord, TurnStatus
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.live import MemoryLiveEvents, MemoryWakeup
from parley.testing.store import ManualClock, MemoryStore
from tests.contract.factories import opening

SESSION = SessionId("s")
Behaviour = Callable[[Work], Awaitable[None]]


class CountingAgent:
    def __init__(self, behave: Behaviour | None = None, deadline_s: float = 600.0) -> None:
        self._behave = behave
        self.deadline_s = deadline_s

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        if self._behave:
            await self._behave(work)
        state = orjson.loads(lease.state) if lease.state else {}
        state["count"] = state.get("count", 0) + 1
        return TurnCommit(
            status=TurnStatus.DONE,
            state=orjson.dumps(state),
            diff=orjson.dumps(state),
            snapshot=False,
            result={"count": state["count"]},
            events=(Event(lease.session_id, "answer", work.turn_id),),
        )


class House:
    """An inbox, a lane and a runner over one store."""

    def __init__(
        self, behave: Behaviour | None = None, *, deadline_s: float = 120.0, session_deadline_s: float = 600.0
    ) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.inbox = MemoryInbox(self.store)
        self.wakeup = MemoryWakeup()
        self.lane = MemoryLane(self.store, turn_deadline_s=deadline_s)
        agent = CountingAgent(behave, session_deadline_s)

        async def agents(domain: str) -> CountingAgent:
            return agent

        self._agents = agents
        self.runner = self.make_runner(self.lane)

    def make_runner(self, lane: MemoryLane) -> LaneRunner:
        return LaneRunner(lane, MemoryLiveEvents(), self.wakeup, self._agents)

    async def submit(self, text: str = "hello") -> Receipt:
        return await self.inbox.submit(opening(SESSION, text))

    async def read(self, receipt: Receipt) -> TurnRecord:
        return await self.inbox.turn(DEFAULT_TENANT, receipt.turn_id)


class RefusingLane(MemoryLane):
    """A lane that rejects all commits of the first turn, as a database rejects a NUL character."""

    async def commit(self, lease: Lease, commit: TurnCommit) -> Committed:
        if lease.work.input.text == "poison":
            raise InvalidInput(
                "The input contains a character or number that can't be stored; remove it.", field="text"
            )
        return await super().commit(lease, commit)


async def test_a_turn_whose_commit_is_refused_is_offered_again_then_set_aside() -> None:
    """RT-6"""
    house = House()
    house.runner = house.make_runner(RefusingLane(house.store))
    poison, following = await house.submit("poison"), await house.submit()
    await house.runner.run(SESSION)
    while (await house.read(following)).status != TurnStatus.DONE:
        for session_id in await house.wakeup.take(limit=1, timeout_s=5):
            await house.runner.run(session_id)

    refused = await house.read(poison)
    assert refused.status == TurnStatus.QUARANTINED
    assert "can't be stored" in (refused.error or "")
    assert (await house.read(following)).result == {"count": 1}


async def test_a_turn_may_take_no_longer_than_its_domain_says() -> None:
    """RT-7: `session.deadline_s`, if shorter than the process's limit."""
    allowed: list[float] = []

    async def wait(work: Work) -> None:
        allowed.append(work.deadline_s)
        await asyncio.Event().wait()

    house = House(wait, session_deadline_s=0.01)
    long = await house.submit("long")
    await house.runner.run(SESSION)

    told = await house.read(long)
    assert (told.status, told.error) == (TurnStatus.FAILED, "deadline_exceeded: The turn ran out of time.")
    assert told.result is not None
    assert told.result["reply"]
    assert allowed == [0.01]


async def test_work_of_a_lane_that_was_taken_over_is_discarded() -> None:
    async def be_overtaken(work: Work) -> None:
        house.clock.advance(3600)
        assert await other.claim(SESSION) is not None

    house = House(be_overtaken, deadline_s=7200)
    other = MemoryLane(house.store, turn_deadline_s=7200)
    receipt = await house.submit()

    await house.runner.run(SESSION)

    told = await house.read(receipt)
    assert (told.status, told.result) == (TurnStatus.RUNNING, None)
    assert not house.store.sessions[SESSION].state


async def test_a_draining_runner_ends_its_turn_and_hands_the_next_back() -> None:
    async def begin_to_drain(work: Work) -> None:
        house.runner.drain()

    house = House(begin_to_drain)
    first, second = await house.submit(), await house.submit()

    await house.runner.run(SESSION)

    assert (await house.read(first)).status == TurnStatus.DONE
    handed_back = await house.read(second)
    assert (handed_back.status, handed_back.attempts) == (TurnStatus.QUEUED, 0)
    assert await house.wakeup.take(limit=1, timeout_s=0) == [SESSION]
