"""Claims that are not flushed: a server crash may lose a claim, and more turns arrive during a turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from orchestrator.adapters.postgres.pool import Database
from orchestrator.errors import LaneLost
from orchestrator.turns.step import Step, StepStatus
from orchestrator.types import DEFAULT_TENANT
from tests.contract.factories import commit_for, submission
from tests.integration.workers.lanes import Stage


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        yield Stage(database_url, await stack.enter_async_context(Database(database_url)), stack)


async def test_a_claim_that_the_server_lost_lets_nothing_be_written(stage: Stage) -> None:
    """RT-3: claims are not flushed to disk, so a crash may take a claim from its worker."""
    session = await stage.session("one")
    first, second = await stage.lane(), await stage.lane()
    [before] = await stage.run("SELECT lease_token FROM lanes WHERE session_id = %s", session)
    lost = await first.claim(session)
    assert lost is not None
    await stage.run(
        "UPDATE lanes SET lease_token = %s, lease_owner = NULL, lease_until = NULL WHERE session_id = %s",
        *before,
        session,
    )
    await stage.run("UPDATE turns SET status = 'queued', attempts = 0 WHERE session_id = %s", session)
    held = await second.claim(session)
    assert held is not None
    step = Step("tool:flight_book:1", "tool", StepStatus.STARTED, "")
    with pytest.raises(LaneLost):
        await first.record(lost, lost.work.turn_id, step)
    with pytest.raises(LaneLost):
        await first.commit(lost, commit_for(lost))
    await second.commit(held, commit_for(held))


@pytest.mark.parametrize("sent", [1, 2])
async def test_what_was_sent_meanwhile_is_taken_up_by_the_holder(stage: Stage, sent: int) -> None:
    """RT-2: the commit finds turns that arrived while no other turn was waiting."""
    session = await stage.session("one")
    lane = await stage.lane()
    lease = await lane.claim(session)
    assert lease is not None
    later = [f"later {number}" for number in range(sent)]
    for text in later:
        await stage.inbox.submit(submission(DEFAULT_TENANT, session, text))
    committed = await lane.commit(lease, commit_for(lease))
    for text in later:
        assert committed.next is not None
        assert committed.next.input.text == text
        lease = replace(lease, epoch=committed.epoch, work=committed.next)
        committed = await lane.commit(lease, commit_for(lease))
    assert committed.next is None
    assert (await stage.sessions.get(DEFAULT_TENANT, session)).pending == 0
