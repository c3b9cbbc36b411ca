"""Contract of the durable event log: ordered, without gaps, resumable (RT-15)."""

from __future__ import annotations

from orchestrator.types import SessionId, TenantId
from tests.contract.conftest import Ports, new_session
from tests.contract.factories import submission


async def test_a_client_goes_on_after_the_last_number_it_saw(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    receipts = [await ports.inbox.submit(submission(tenant, session)) for _ in range(5)]
    events = await ports.log.read(tenant, session)
    assert [event.number for event in events] == [1, 2, 3, 4, 5]
    assert [event.turn_id for event in events] == [receipt.turn_id for receipt in receipts]
    told = [{"seq": receipt.seq, "position": receipt.position} for receipt in receipts]
    assert [event.payload for event in events] == told
    assert await ports.log.read(tenant, session, after=3) == events[3:]
    assert await ports.log.read(tenant, session, after=1, limit=2) == events[1:3]
    assert await ports.log.read(tenant, session, after=5) == []


async def test_another_tenants_log_is_empty(ports: Ports, tenant: TenantId) -> None:
    """RT-22"""
    session = await new_session(ports, tenant)
    await ports.inbox.submit(submission(tenant, session))
    assert await ports.log.read(TenantId("other"), session) == []
    assert await ports.log.read(tenant, SessionId("nowhere")) == []
