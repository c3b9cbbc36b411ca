"""Turns over in-memory stores, run by workers, for tests that a conversation of the simulator does not serve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orchestrator.runtime.journal import Journal
from orchestrator.runtime.lane import LaneRunner, TurnAgent
from orchestrator.turns.lease import Lease
from orchestrator.turns.turn import IfBusy, TurnInput, TurnRecord
from orchestrator.types import DEFAULT_TENANT, SessionId, TurnId
from parley.simulator import Simulator
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.live import MemoryWakeup
from parley.testing.store import ManualClock, MemoryStore
from tests.contract.factories import claim, opening


def runner_of(
    simulator: Simulator,
    lane: MemoryLane | None = None,
    *,
    agent: TurnAgent | None = None,
    wakeup: MemoryWakeup | None = None,
) -> LaneRunner:
    """Return a worker over a simulator's stores. Default: with a new lane and the simulator's agent."""

    async def find_agent(_domain: str) -> TurnAgent:
        found = agent or simulator.agent
        assert found is not None
        return found

    lane = lane or MemoryLane(simulator.store)
    return LaneRunner(lane, simulator.live, wakeup or MemoryWakeup(), find_agent)


@dataclass
class Turns:
    """The turns of one session: submitted and read like a client does, and run by workers."""

    simulator: Simulator
    session: SessionId
    if_busy: IfBusy = field(default=IfBusy.UNDERSTAND, kw_only=True)

    @property
    def inbox(self) -> MemoryInbox:
        return MemoryInbox(self.simulator.store)

    async def submit(self, given: str | TurnInput, if_busy: IfBusy | None = None) -> TurnId:
        turn = opening(self.session, given, if_busy=if_busy or self.if_busy)
        return (await self.inbox.submit(turn)).turn_id

    async def read(self, turn_id: TurnId) -> TurnRecord:
        return await self.inbox.turn(DEFAULT_TENANT, turn_id)


class ScriptedTool:
    """A tool with one scripted answer or error per call, the last one repeated. It records its idempotency keys."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.keys: list[str] = []

    async def __call__(self, idempotency_key: str) -> Any:
        self.keys.append(idempotency_key)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Attempts:
    """The attempts at one session's turns, each with its journal, by workers that may crash."""

    session = SessionId("attempted")

    def __init__(self) -> None:
        self.store = MemoryStore(ManualClock())
        self.lane = MemoryLane(self.store, max_attempts=10)
        self.lease: Lease

    async def begin(self) -> Journal:
        """Submit a turn and claim it."""
        await MemoryInbox(self.store).submit(opening(self.session))
        return await self._claim()

    async def crash(self) -> Journal:
        """Let the worker crash, and another one claim the turn."""
        await self.lane.abandon(self.lease, error="crashed")
        return await self._claim()

    async def _claim(self) -> Journal:
        self.lease = await claim(self.lane, self.session)
        return Journal(self.lane, self.lease, self.lease.work)
