"""PL-6, RT-8, RT-9: a plan whose process crashes after every step. The chaos suite kills real workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from orchestrator.runtime.journal import Journal
from orchestrator.runtime.lane import TurnAgent
from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.effect import Effect
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import DEFAULT_TENANT, Json, JsonObject, SessionId, UserId
from parley.simulator import Simulator
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from tests.contract.factories import opening
from tests.contract.in_memory.sessions import MemorySessions
from tests.trained import simulate
from tests.unit.running import runner_of

TEXTS = ["plan a trip from Oslo to Lisbon for two", "Friday 27 November", "Sunday 29 November", "yes", "yes"]
SESSION = SessionId("crashed")


class Crash(BaseException):
    """A process crash, which the product never catches."""


@dataclass
class Crasher:
    """An agent that crashes once after each recorded call, and once after each effect before it is recorded."""

    agent: TurnAgent
    crashes: list[str] = field(default_factory=list)
    ran: Counter[str] = field(default_factory=Counter)

    @property
    def deadline_s(self) -> float:
        return self.agent.deadline_s

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        return await self.agent.run_turn(lease, work, CrashingSteps(journal, self))  # type: ignore[arg-type]

    def crash_once(self, name: str) -> None:
        if name not in self.crashes:
            self.crashes.append(name)
            raise Crash


@dataclass
class CrashingSteps:
    steps: Journal
    crasher: Crasher
    stopped: bool = False

    def idempotency_key(self, key: str) -> str:
        return self.steps.idempotency_key(key)

    async def call(
        self,
        key: str,
        kind: str,
        request: Json,
        run: Callable[[str], Awaitable[Json]],
        *,
        idempotent: bool,
        effect: Effect | None = None,
    ) -> Json | UnknownOutcome:
        name = f"{self.steps.turn_id} {key}"

        async def run_and_crash(idempotency_key: str) -> Json:
            self.crasher.ran[name] += 1
            result = await run(idempotency_key)
            if not idempotent:
                self.crasher.crash_once(f"{name} unrecorded")
            return result

        result = await self.steps.call(
            key, kind, request, run_and_crash, idempotent=idempotent, effect=effect
        )
        self.crasher.crash_once(f"{name} recorded")
        return result

    async def settle(
        self, unknown: UnknownOutcome, kind: str, request: Json, result: Json, effect: Effect | None = None
    ) -> None:
        await self.steps.settle(unknown, kind, request, result, effect)

    async def decide_approval(self, approval_id: str, decision: Decision) -> ApprovalRecord | None:
        return await self.steps.decide_approval(approval_id, decision)


async def converse(simulator: Simulator, agent: TurnAgent) -> JsonObject:
    """Run the conversation. After each crash, another worker continues."""
    inbox, completed = MemoryInbox(simulator.store), list[list[str]]()

    for text in TEXTS:
        simulator.now += 20
        receipt = await inbox.submit(opening(SESSION, text, user_id=UserId("ada")))
        while (turn := await inbox.turn(DEFAULT_TENANT, receipt.turn_id)).finished_at is None:
            held = MemoryLane(simulator.store, max_attempts=50)
            try:
                await runner_of(simulator, held, agent=agent).run(SESSION)
            except Crash:
                held.die()
                await MemoryLane(simulator.store).sweep(grace_s=0)
        assert turn.result is not None, turn
        assert turn.status.value == "done", turn
        completed.append(turn.result["completed"])
    bookings = await simulator.records[DEFAULT_TENANT].find("bookings", {"owner": "ada"}, limit=10)
    plan = await MemorySessions(simulator.store).plan(DEFAULT_TENANT, SESSION)
    return {
        "completed": completed,
        "booked": sorted(booking["flight_id"] for booking in bookings),
        "steps": [(step["name"], step["state"]) for step in plan["steps"]],
        "outcomes": [revision["outcome"] for revision in plan["revisions"]],
        "progress": plan["progress"],
    }


async def test_a_plan_ends_the_same_however_often_its_process_ends() -> None:
    calm, stormy = (simulate("travel") for _ in range(2))
    assert calm.agent is not None
    assert stormy.agent is not None
    crasher = Crasher(stormy.agent)
    expected: dict[str, Any] = await converse(calm, calm.agent)
    assert await converse(stormy, crasher) == expected
    assert expected["progress"] == "6 of 6"
    assert len(expected["booked"]) == 2
    assert sum(name.endswith("unrecorded") for name in crasher.crashes) == 2
    assert len(crasher.crashes) >= 10
    assert set(crasher.ran.values()) == {1}
