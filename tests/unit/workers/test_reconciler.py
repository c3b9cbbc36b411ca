"""Unclaimed sessions while Redis is unavailable: processes without turns leave them to others (RT-11)."""

from __future__ import annotations

from orchestrator.types import SessionId
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.live import MemoryWakeup
from parley.testing.store import MemoryStore
from tests.contract.factories import opening
from workers.session_pool import Reconciler

SESSION = SessionId("forgotten")


class CutOff(MemoryWakeup):
    """Wake-ups without Redis."""

    async def offer(self, *session_ids: SessionId, nobody_came: bool = False) -> bool:
        return False


async def test_who_runs_no_turns_leaves_them_to_others_while_nobody_can_be_woken() -> None:
    store = MemoryStore()
    await MemoryInbox(store).submit(opening(SESSION))
    lane = MemoryLane(store)
    without_turns = Reconciler(lane, CutOff(), None, grace_s=0.0)

    assert await without_turns.sweep() == 1
    assert await without_turns.sweep() == 0, "each find puts the session off for everybody"
    assert await lane.sweep(grace_s=0.0) == [SESSION]


async def test_who_can_wake_somebody_looks_each_time() -> None:
    store = MemoryStore()
    await MemoryInbox(store).submit(opening(SESSION))
    without_turns = Reconciler(MemoryLane(store), MemoryWakeup(), None, grace_s=0.0)

    assert [await without_turns.sweep() for _ in range(2)] == [1, 1]
