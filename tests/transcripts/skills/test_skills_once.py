"""A turn with a skill, continued after its worker died, repeats no model call and no action."""

from __future__ import annotations

import pytest

from orchestrator.errors import LaneLost
from orchestrator.runtime.journal import Journal
from orchestrator.turns.lease import TurnCommit
from orchestrator.types import JsonObject
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from tests.contract.factories import claim, opening
from tests.transcripts.skills.skilled import DRAFT, QUERY, REVISED, Talk, answer, call, judge, judged, talk


def two_workers(t: Talk) -> tuple[MemoryLane, MemoryLane]:
    store = t.simulator.store
    return MemoryLane(store), MemoryLane(store)


async def submit(t: Talk, text: str) -> None:
    await MemoryInbox(t.simulator.store).submit(opening(t.conversation.session_id, text))


async def attempt(t: Talk, lane: MemoryLane, *, commit: bool) -> TurnCommit:
    """Attempt the next turn like a worker. Without the commit, the worker dies just before."""
    await lane.sweep(grace_s=0.0)  # releases the dead worker's lane
    lease = await claim(lane, t.conversation.session_id)
    agent = t.simulator.agent
    assert agent is not None
    decided = await agent.run_turn(lease, lease.work, Journal(lane, lease, lease.work))
    if commit:
        await lane.commit(lease, decided)
    return decided


async def test_model_calls_of_a_finished_skill_are_answered_from_the_journal() -> None:
    """RT-8, PX-9: the worker died between the last answer and the commit; including reflection."""
    async with talk(call("part_list"), DRAFT, REVISED, rules=judge(judged("It names no part."))) as t:
        await t.say("thanks")
        first, second = two_workers(t)
        await submit(t, "write a report")
        before = await attempt(t, first, commit=False)
        first.die()
        asked = len(t.model.requests)

        after = await attempt(t, second, commit=True)

        assert asked == 4
        assert len(t.model.requests) == asked
        assert after.result["reply"] == before.result["reply"] == "There are a bolt and a lens."


async def test_a_skill_goes_on_where_its_worker_died() -> None:
    """RT-8: answers before the death are reused, later answers are requested."""
    async with talk(call("data_query", sql=QUERY), answer(answer="the lens")) as t:
        await t.say("thanks")
        first, second = two_workers(t)
        query, dying = t.lab.query, [True]

        async def query_or_die(*, sql: str) -> JsonObject:
            if dying:
                raise LaneLost("This worker is dead.")
            return await query(sql=sql)

        t.lab.query = query_or_die
        await submit(t, "ask the data")
        with pytest.raises(LaneLost):
            await attempt(t, first, commit=False)
        first.die()
        dying.clear()
        asked = len(t.asked)

        after = await attempt(t, second, commit=True)

        assert asked == 1
        assert len(t.asked) == 2
        assert after.result["reply"] == "Answer: the lens"
        assert t.lab.queries == [QUERY]


async def test_an_order_that_may_have_been_made_is_not_made_again() -> None:
    """RT-9: the worker died during a long call; the user is asked."""
    async with talk(call("part_order", name="lens"), answer(order_id="x")) as t:
        await t.say("order a part")
        first, second = two_workers(t)
        order = t.lab.order

        async def order_and_die(*, name: str) -> JsonObject:
            await order(name=name)
            raise LaneLost("This worker is dead.")

        t.lab.order = order_and_die
        await submit(t, "yes")
        with pytest.raises(LaneLost):
            await attempt(t, first, commit=False)
        first.die()
        t.lab.order = order

        after = await attempt(t, second, commit=True)

        assert t.lab.orders == ["lens"]
        assert after.result["ambiguity"]["level"] == "confirmation"
        assert "can't tell whether it worked" in after.result["reply"]
