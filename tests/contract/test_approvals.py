"""Approvals: requested in a turn's commit, decided once, and closed (PX-17)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from orchestrator.errors import LaneLost, NotFound, Refused
from orchestrator.ports.lane import Lane
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, ClosedApproval, Decision
from orchestrator.turns.lease import Lease
from orchestrator.types import FlowId, TenantId, ToolId, new_id
from tests.contract.conftest import Ports, begin
from tests.contract.factories import claim, commit_for, new_session_id, submission

YES = Decision(granted=True, decided_by="ann", reason="fine")
NO = Decision(granted=False, decided_by="bob")
FAR = datetime(2040, 1, 1, tzinfo=UTC)
PAST = datetime(2020, 1, 1, tzinfo=UTC)


def asked_in(lease: Lease, *, expires_at: datetime = FAR) -> ApprovalRecord:
    return ApprovalRecord(
        approval_id=new_id("approval"),
        session_id=lease.session_id,
        turn_id=lease.work.turn_id,
        flow_id=FlowId(""),  # operators' approvals don't belong to a flow
        tool_id=ToolId("disk_wipe"),
        fingerprint="f",
        arguments={"printer": "P1"},
        expires_at=expires_at,
        question="Wipe a disk",
        cause="it cannot be undone",
        plan_revision=2,
        policy_version="v",
    )


async def next_lease(ports: Ports, tenant: TenantId, lane: Lane, before: Lease) -> Lease:
    await ports.inbox.submit(submission(tenant, before.session_id))
    return await claim(lane, before.session_id)


async def ask(ports: Ports, tenant: TenantId, *, expires_at: datetime = FAR) -> tuple[Lane, Lease, str]:
    """Return a session whose first turn has requested an approval, with a free lane."""
    lane, lease = await begin(ports, tenant)
    record = asked_in(lease, expires_at=expires_at)
    await lane.commit(lease, commit_for(lease, approvals=(record,)))
    return lane, lease, record.approval_id


async def status_of(ports: Ports, tenant: TenantId, approval_id: str) -> ApprovalStatus:
    listed = await ports.approvals.list(tenant)
    return next(record.status for record in listed if record.approval_id == approval_id)


async def test_what_a_turn_asks_for_is_there_when_it_is_committed(ports: Ports, tenant: TenantId) -> None:
    lane, lease = await begin(ports, tenant)
    record = asked_in(lease)
    assert await ports.approvals.list(tenant) == []

    await lane.commit(lease, commit_for(lease, approvals=(record,)))

    (listed,) = await ports.approvals.list(tenant, status=ApprovalStatus.PENDING)
    assert listed.created_at is not None
    assert listed.arguments == {"printer": "P1"}
    assert (listed.question, listed.cause) == ("Wipe a disk", "it cannot be undone")
    assert (listed.fingerprint, listed.plan_revision, listed.policy_version) == ("f", 2, "v")
    assert listed.expires_at == FAR


async def test_a_commit_that_is_fenced_off_asks_for_nothing(ports: Ports, tenant: TenantId) -> None:
    """RT-3, RT-4"""
    lane, lease = await begin(ports, tenant)
    await ports.elapse(60)
    assert await (await ports.make_lane()).claim(lease.session_id) is not None

    with pytest.raises(LaneLost):
        await lane.commit(lease, commit_for(lease, approvals=(asked_in(lease),)))

    assert await ports.approvals.list(tenant) == []


@pytest.mark.parametrize("decision", [YES, NO])
async def test_a_decision_names_who_made_it(ports: Ports, tenant: TenantId, decision: Decision) -> None:
    _, _, approval_id = await ask(ports, tenant)

    record = await ports.approvals.decide(tenant, approval_id, decision)

    assert record.status is decision.status
    assert (record.decided_by, record.reason) == (decision.decided_by, decision.reason)
    assert record.decided_at is not None
    assert await ports.approvals.list(tenant, status=ApprovalStatus.PENDING) == []


async def test_it_is_decided_once(ports: Ports, tenant: TenantId) -> None:
    _, _, approval_id = await ask(ports, tenant)
    await ports.approvals.decide(tenant, approval_id, NO)

    with pytest.raises(Refused, match="already denied by bob"):
        await ports.approvals.decide(tenant, approval_id, YES)

    again = await ports.approvals.decide(tenant, approval_id, NO)
    assert again.status is ApprovalStatus.DENIED


async def test_of_two_decisions_at_once_one_holds(ports: Ports, tenant: TenantId) -> None:
    """Repeating the accepted decision returns it, and the audit has one decider."""
    for _ in range(5):
        _, _, approval_id = await ask(ports, tenant)

        told = await asyncio.gather(
            *(ports.approvals.decide(tenant, approval_id, decision) for decision in (YES, NO, YES, NO)),
            return_exceptions=True,
        )

        [status] = {one.status for one in told if isinstance(one, ApprovalRecord)}
        assert sum(isinstance(one, Refused) for one in told) == 2
        assert await status_of(ports, tenant, approval_id) is status


async def test_at_the_very_moment_of_its_expiry_it_cannot_be_granted(ports: Ports, tenant: TenantId) -> None:
    _, _, approval_id = await ask(ports, tenant)
    moment = Decision(granted=True, decided_by="ann", now=FAR.timestamp())

    with pytest.raises(Refused, match="expired"):
        await ports.approvals.decide(tenant, approval_id, moment)

    just_before = Decision(granted=True, decided_by="ann", now=FAR.timestamp() - 0.001)
    assert (await ports.approvals.decide(tenant, approval_id, just_before)).status is ApprovalStatus.GRANTED


async def test_the_holder_of_the_lane_learns_what_was_decided_before(ports: Ports, tenant: TenantId) -> None:
    """The user and an operator decide concurrently: the first decision holds."""
    lane, lease, approval_id = await ask(ports, tenant)
    await ports.approvals.decide(tenant, approval_id, NO)
    lease = await next_lease(ports, tenant, lane, lease)

    record = await lane.decide_approval(lease, approval_id, YES)

    assert record is not None
    assert (record.status, record.decided_by) == (ApprovalStatus.DENIED, "bob")
    assert await lane.decide_approval(lease, "approval_nowhere", YES) is None


async def test_after_its_time_the_answer_is_no(ports: Ports, tenant: TenantId) -> None:
    lane, lease, approval_id = await ask(ports, tenant, expires_at=PAST)

    with pytest.raises(Refused, match="expired"):
        await ports.approvals.decide(tenant, approval_id, YES)

    assert await ports.approvals.list(tenant, status=ApprovalStatus.PENDING) == []
    (late,) = await ports.approvals.list(tenant, status=ApprovalStatus.EXPIRED)
    assert late.approval_id == approval_id
    lease = await next_lease(ports, tenant, lane, lease)
    record = await lane.decide_approval(lease, approval_id, YES)
    assert record is not None
    assert record.status is ApprovalStatus.PENDING


@pytest.mark.parametrize(
    ("decision", "closed", "afterwards"),
    [
        (YES, ApprovalStatus.USED, ApprovalStatus.USED),
        (YES, ApprovalStatus.VOID, ApprovalStatus.VOID),
        (None, ApprovalStatus.VOID, ApprovalStatus.VOID),
        (None, ApprovalStatus.EXPIRED, ApprovalStatus.EXPIRED),
        (YES, ApprovalStatus.EXPIRED, ApprovalStatus.EXPIRED),
        (None, ApprovalStatus.USED, ApprovalStatus.PENDING),
        (NO, ApprovalStatus.USED, ApprovalStatus.DENIED),
        (NO, ApprovalStatus.VOID, ApprovalStatus.DENIED),
    ],
)
async def test_what_became_of_it(
    ports: Ports,
    tenant: TenantId,
    decision: Decision | None,
    closed: ApprovalStatus,
    afterwards: ApprovalStatus,
) -> None:
    """Only a granted approval can be used, and a denied one stays denied."""
    lane, lease, approval_id = await ask(ports, tenant)
    if decision is not None:
        await ports.approvals.decide(tenant, approval_id, decision)
    lease = await next_lease(ports, tenant, lane, lease)

    await lane.commit(lease, commit_for(lease, closed_approvals=(ClosedApproval(approval_id, closed),)))

    assert await status_of(ports, tenant, approval_id) is afterwards


async def test_a_void_one_cannot_be_granted(ports: Ports, tenant: TenantId) -> None:
    lane, lease, approval_id = await ask(ports, tenant)
    lease = await next_lease(ports, tenant, lane, lease)
    void = ClosedApproval(approval_id, ApprovalStatus.VOID)
    await lane.commit(lease, commit_for(lease, closed_approvals=(void,)))

    with pytest.raises(Refused, match="void"):
        await ports.approvals.decide(tenant, approval_id, YES)


async def test_other_tenants_see_and_decide_nothing(ports: Ports, tenant: TenantId) -> None:
    _, lease, approval_id = await ask(ports, tenant)

    assert await ports.approvals.list(TenantId("somebody")) == []
    with pytest.raises(NotFound):
        await ports.approvals.decide(TenantId("somebody"), approval_id, YES)
    assert len(await ports.approvals.list(tenant, session_id=lease.session_id)) == 1
    assert await ports.approvals.list(tenant, session_id=new_session_id()) == []
