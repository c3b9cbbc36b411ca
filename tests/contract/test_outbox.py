"""RT-4: messages of a commit are sent until they are acknowledged."""

from __future__ import annotations

import pytest

from orchestrator.errors import LaneLost
from orchestrator.turns.lease import OutboxEntry
from orchestrator.types import TenantId, new_id
from tests.contract.conftest import Ports, hold
from tests.contract.factories import claim, commit_for, new_session_id, submission

AGAIN_AFTER_S = 10.0


async def _leave(ports: Ports, tenant: TenantId, *entries: OutboxEntry) -> str:
    """Commit a turn with these outbox entries and return its ID."""
    session = new_session_id()
    await ports.inbox.submit(submission(tenant, session, "one", create_session=True, domain="d"))
    lane, lease = await hold(ports, session)
    await lane.commit(lease, commit_for(lease, outbox=entries))
    return lease.work.turn_id


async def test_a_message_is_given_out_again_until_it_is_acknowledged(ports: Ports, tenant: TenantId) -> None:
    kind = new_id("kind")
    turn_id = await _leave(ports, tenant, OutboxEntry(kind, {"n": 1}))

    [first] = await ports.outbox.take_due((kind,), again_after_s=AGAIN_AFTER_S)
    assert (first.tenant_id, first.turn_id, first.kind, first.payload) == (tenant, turn_id, kind, {"n": 1})
    assert await ports.outbox.take_due((kind,), again_after_s=AGAIN_AFTER_S) == []

    await ports.elapse(AGAIN_AFTER_S + 1)
    assert await ports.outbox.take_due((kind,), again_after_s=AGAIN_AFTER_S) == [first]

    await ports.outbox.acknowledge([first.id])
    await ports.elapse(AGAIN_AFTER_S + 1)
    assert await ports.outbox.take_due((kind,), again_after_s=AGAIN_AFTER_S) == []


async def test_only_the_kinds_that_are_asked_for_are_given_the_oldest_first(
    ports: Ports, tenant: TenantId
) -> None:
    kind, other = new_id("kind"), new_id("kind")
    for number in range(3):
        await _leave(ports, tenant, OutboxEntry(kind, {"n": number}), OutboxEntry(other, {}))

    two = await ports.outbox.take_due((kind,), again_after_s=AGAIN_AFTER_S, limit=2)
    rest = await ports.outbox.take_due((kind,), again_after_s=AGAIN_AFTER_S, limit=2)

    assert [message.payload for message in (*two, *rest)] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert len(await ports.outbox.take_due((other, kind), again_after_s=AGAIN_AFTER_S)) == 3


async def test_what_was_fenced_out_leaves_nothing(ports: Ports, tenant: TenantId) -> None:
    kind, session = new_id("kind"), new_session_id()
    await ports.inbox.submit(submission(tenant, session, "one", create_session=True, domain="d"))
    first, second = await ports.make_lane(), await ports.make_lane()
    lease = await claim(first, session)
    await ports.elapse(3_600)
    assert await second.claim(session) is not None

    with pytest.raises(LaneLost):
        await first.commit(lease, commit_for(lease, outbox=(OutboxEntry(kind, {}),)))

    assert await ports.outbox.take_due((kind,), again_after_s=AGAIN_AFTER_S) == []
