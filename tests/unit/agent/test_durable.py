"""Steps that run once, despite crashes between attempts (RT-8, RT-9)."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.errors import Refused, StepFailed, StepMismatch, Unavailable
from orchestrator.runtime.journal import Journal
from orchestrator.turns.step import UnknownOutcome
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.store import ManualClock, MemoryStore

SESSION = SessionId("s")


class Tool:
    """A tool that counts its calls. `fails` is raised instead of returning."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails = fails
        self.keys: list[str] = []

    async def __call__(self, idempotency_key: str) -> Any:
        self.keys.append(idempotency_key)
        if self.fails:
            raise self.fails
        return {"calls": len(self.keys)}


class Attempts:
    """One turn, attempted repeatedly by workers that die."""

    def __init__(self) -> None:
        self.store = MemoryStore(ManualClock())

    async def begin(self) -> Journal:
        if SESSION not in self.store.sessions:
            await MemoryInbox(self.store).submit(
                Submission(SESSION, TurnInput("hello"), DEFAULT_TENANT, create_session=True, domain="d")
            )
        self.lane = MemoryLane(self.store, max_attempts=10)
        lease = await self.lane.claim(SESSION)
        assert lease is not None
        self.lease = lease
        return Journal(self.lane, lease, lease.work)

    async def fail(self) -> None:
        await self.lane.abandon(self.lease, error="crashed")


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_finished_step_is_answered_from_the_journal(idempotent: bool) -> None:
    attempts, tool = Attempts(), Tool()
    first = await (await attempts.begin()).call("k", "tool", {"a": 1}, tool, idempotent=idempotent)
    await attempts.fail()

    again = await (await attempts.begin()).call("k", "tool", {"a": 1}, tool, idempotent=idempotent)

    assert first == again == {"calls": 1}
    assert len(tool.keys) == 1


async def test_a_call_whose_end_nobody_saw_is_not_repeated() -> None:
    attempts, tool = Attempts(), Tool(RuntimeError("the connection broke"))
    steps = await attempts.begin()
    with pytest.raises(RuntimeError):
        await steps.call("k", "tool", {}, tool, idempotent=False)
    await attempts.fail()

    steps = await attempts.begin()
    outcome = await steps.call("k", "tool", {}, tool, idempotent=False)

    assert outcome == UnknownOutcome("k", f"{steps.turn_id}:k")
    assert len(tool.keys) == 1


async def test_an_unknown_outcome_can_be_settled() -> None:
    attempts, tool = Attempts(), Tool(Unavailable("no answer"))
    steps = await attempts.begin()
    with pytest.raises(Unavailable):
        await steps.call("k", "tool", {}, tool, idempotent=False)
    await steps.settle(UnknownOutcome("k", "key"), "tool", {}, "it happened")
    await attempts.fail()

    assert await (await attempts.begin()).call("k", "tool", {}, tool, idempotent=False) == "it happened"


async def test_an_idempotent_call_is_made_again_with_the_same_key() -> None:
    attempts, tool = Attempts(), Tool(Unavailable("no answer"))
    with pytest.raises(Unavailable):
        await (await attempts.begin()).call("k", "tool", {}, tool, idempotent=True)
    await attempts.fail()
    tool.fails = None

    await (await attempts.begin()).call("k", "tool", {}, tool, idempotent=True)

    assert len(tool.keys) == 2
    assert len(set(tool.keys)) == 1


async def test_a_named_failure_is_told_again_and_not_tried_again() -> None:
    attempts, tool = Attempts(), Tool(Refused("sold out"))
    with pytest.raises(Refused):
        await (await attempts.begin()).call("k", "tool", {}, tool, idempotent=False)
    await attempts.fail()

    with pytest.raises(StepFailed, match="sold out") as told:
        await (await attempts.begin()).call("k", "tool", {}, tool, idempotent=False)

    assert told.value.cause == "refused"
    assert len(tool.keys) == 1


async def test_a_key_that_changed_its_meaning_is_refused() -> None:
    attempts, tool = Attempts(), Tool()
    await (await attempts.begin()).call("k", "tool", {"a": 1, "b": 2}, tool, idempotent=True)
    await attempts.fail()
    steps = await attempts.begin()

    assert await steps.call("k", "tool", {"b": 2, "a": 1}, tool, idempotent=True) == {"calls": 1}
    with pytest.raises(StepMismatch):
        await steps.call("k", "tool", {"a": 2, "b": 2}, tool, idempotent=True)
