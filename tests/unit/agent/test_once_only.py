"""A turn that is taken up again after its worker died does nothing twice (RT-8, RT-9)."""

from __future__ import annotations

from functools import cache

import pytest

from orchestrator.adapters.domain_folder import LoadedDomain, load_domain
from orchestrator.agent.durable import DurableSteps
from orchestrator.errors import LaneLost
from orchestrator.nlu.system1 import System1
from orchestrator.rehearsal import Conversation, Rehearsal
from orchestrator.testing.inbox import MemoryInbox
from orchestrator.testing.lane import MemoryLane
from orchestrator.turns.lease import TurnCommit
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, JsonObject

DESK = "tests/transcripts/domains/desk"


@cache
def trained() -> tuple[LoadedDomain, System1]:
    loaded = load_domain(DESK)
    return loaded, System1.for_domain(loaded.domain)


class CountingDesk:
    """Counts its effects; can die between having one and saying so."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.searches = 0
        self.dies_after_effect = False

    async def find_toner(self, *, printer: str) -> JsonObject:
        self.searches += 1
        return {"offers": [{"offer": "T-3"}]}

    async def order_toner(self, *, offer: str) -> JsonObject:
        self.orders.append(offer)
        if self.dies_after_effect:
            raise LaneLost("This worker is dead.")
        return {"order_id": f"O-{offer}"}


async def about_to_order() -> tuple[Conversation, CountingDesk]:
    """Given a conversation in which only the yes is missing."""
    loaded, system1 = trained()
    desk = CountingDesk()
    talk = Rehearsal.of(loaded, system1=system1, services={"Desk": desk}).converse()
    turn = await talk.say("order toner for printer two")
    assert turn["ambiguity"]["level"] == "confirmation"
    return talk, desk


async def submit(talk: Conversation, text: str) -> None:
    await MemoryInbox(talk.rehearsal.store).submit(
        Submission(session_id=talk.session_id, input=TurnInput(text=text), tenant_id=DEFAULT_TENANT)
    )


async def attempt(talk: Conversation, lane: MemoryLane, *, commit: bool) -> TurnCommit:
    await lane.sweep(grace_s=0.0)  # frees what the dead held
    lease = await lane.claim(talk.session_id)
    assert lease is not None
    agent = talk.rehearsal.agent
    assert agent is not None
    decided = await agent.run_turn(lease, lease.work, DurableSteps(lane, lease, lease.work))
    if commit:
        await lane.commit(lease, decided)
    return decided


async def test_a_finished_call_is_answered_from_the_journal() -> None:
    """RT-8: the worker died after the call and before the commit."""
    talk, desk = await about_to_order()
    await submit(talk, "yes")
    first, second = MemoryLane(talk.rehearsal.store), MemoryLane(talk.rehearsal.store)
    before = await attempt(talk, first, commit=False)
    first.die()

    after = await attempt(talk, second, commit=True)

    assert desk.orders == ["T-3"]
    assert after.result["completed"] == ["order_toner"]
    assert after.result["reply"] == before.result["reply"]


async def test_a_call_whose_outcome_nobody_knows_is_put_to_the_user() -> None:
    """RT-9: the worker died in the middle of the call."""
    talk, desk = await about_to_order()
    await submit(talk, "yes")
    first, second = MemoryLane(talk.rehearsal.store), MemoryLane(talk.rehearsal.store)
    desk.dies_after_effect = True
    with pytest.raises(LaneLost):
        await attempt(talk, first, commit=False)
    first.die()
    desk.dies_after_effect = False

    after = await attempt(talk, second, commit=True)

    assert desk.orders == ["T-3"]
    assert "cannot tell whether it worked" in after.result["reply"]
    assert after.result["tools"][-1]["status"] == "unknown"
    assert after.result["ambiguity"]["level"] == "confirmation"


async def test_after_an_unknown_outcome_a_no_leaves_it_at_that() -> None:
    """RT-9, AM-3."""
    talk, desk = await about_to_order()
    await submit(talk, "yes")
    first, second = MemoryLane(talk.rehearsal.store), MemoryLane(talk.rehearsal.store)
    desk.dies_after_effect = True
    with pytest.raises(LaneLost):
        await attempt(talk, first, commit=False)
    first.die()
    await attempt(talk, second, commit=True)
    second.die()

    turn = await talk.say("no")

    assert desk.orders == ["T-3"]
    assert turn["flows"] == []
