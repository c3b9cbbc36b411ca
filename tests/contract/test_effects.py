"""The side-effect ledger: written with the journal under the fence, found by fingerprint (RT-10, RT-12)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.errors import LaneLost, NotFound
from orchestrator.ports.lane import Lane
from orchestrator.turns.effect import Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Lease
from orchestrator.turns.step import Step, StepStatus
from orchestrator.turns.turn import IfBusy
from orchestrator.types import Epoch, FlowId, SessionId, TenantId, ToolId
from tests.contract.conftest import Ports, begin, hold
from tests.contract.factories import claim, commit_for, submission

KEY = "tool:flight_book:1"


def entry_of(lease: Lease, **more: Any) -> LedgerEntry:
    values: dict[str, Any] = {
        "session_id": lease.session_id,
        "fingerprint": "f1",
        "turn_id": lease.work.turn_id,
        "step_key": KEY,
        "idempotency_key": f"{lease.work.turn_id}:{KEY}",
        "flow_id": FlowId("flow_1"),
        "tool_id": ToolId("flight_book"),
        "arguments": {"offer_id": "o"},
        "slots": {"date": "2026-12-01"},
        "status": LedgerStatus.STARTED,
    }
    return LedgerEntry(**{**values, **more})


def effect_of(fingerprint: str, tool: str = "flight_book", **arguments: Any) -> Effect:
    called = arguments or {"offer_id": "o"}
    return Effect(fingerprint, FlowId("flow_1"), ToolId(tool), called, {}, judge=lambda _: LedgerStatus.DONE)


def step(status: StepStatus = StepStatus.STARTED, result: Any = None) -> Step:
    return Step(KEY, "tool", status, "hash", result)


async def write(lane: Lane, lease: Lease, status: StepStatus, entry: LedgerEntry) -> None:
    await lane.record(lease, lease.work.turn_id, step(status, entry.result), entry)


async def test_an_effect_is_in_the_ledger_before_it_is_had(ports: Ports, tenant: TenantId) -> None:
    lane, lease = await begin(ports, tenant)
    entry = entry_of(lease)
    await write(lane, lease, StepStatus.STARTED, entry)

    found = await lane.find_effect(lease, effect_of("f1"))

    assert found is not None
    assert found.at is not None
    assert replace(found, at=None) == entry
    assert await lane.find_effect(lease, effect_of("f2")) is None


async def test_no_effect_begins_before_what_was_said_is_heard(ports: Ports, tenant: TenantId) -> None:
    """RT-5: recording a start requires knowledge of the last `understand` message; recording an end doesn't."""
    lane, lease = await begin(ports, tenant)
    await ports.inbox.submit(submission(tenant, lease.session_id, "no", if_busy=IfBusy.UNDERSTAND))
    turn_id, entry = lease.work.turn_id, entry_of(lease)

    assert not await lane.record(lease, turn_id, step(), entry, heard=0)
    assert await lane.find_effect(lease, effect_of("f1")) is None
    assert await lane.record(lease, turn_id, step(), entry, heard=(await lane.said_meanwhile(lease)).upto)
    assert await lane.find_effect(lease, effect_of("f1")) is not None
    await ports.inbox.submit(submission(tenant, lease.session_id, "stop", if_busy=IfBusy.UNDERSTAND))
    assert await lane.record(lease, turn_id, step(StepStatus.FINISHED), entry)


async def test_its_end_is_written_to_the_same_line(ports: Ports, tenant: TenantId) -> None:
    lane, lease = await begin(ports, tenant)
    await write(lane, lease, StepStatus.STARTED, entry_of(lease))
    done = entry_of(lease, status=LedgerStatus.DONE, result={"ok": True, "data": {"booking_ref": "AB12CD"}})
    await write(lane, lease, StepStatus.FINISHED, done)

    listed = await ports.effects.list(tenant, lease.session_id)

    assert [replace(entry, at=None) for entry in listed] == [done]


async def test_journal_and_ledger_are_written_together_or_not_at_all(ports: Ports, tenant: TenantId) -> None:
    """RT-3: a worker that lost its lease writes neither."""
    lane, lease = await begin(ports, tenant)
    await ports.elapse(60)
    await claim(await ports.make_lane(), lease.session_id)

    with pytest.raises(LaneLost):
        await write(lane, lease, StepStatus.STARTED, entry_of(lease))

    assert await ports.effects.list(tenant, lease.session_id) == []


async def test_a_line_follows_the_flow_of_the_next_attempt(ports: Ports, tenant: TenantId) -> None:
    lane, lease = await begin(ports, tenant)
    await write(lane, lease, StepStatus.STARTED, entry_of(lease))

    adopted = await lane.adopt_effect(
        lease, lease.work.turn_id, KEY, fingerprint="f2", flow_id=FlowId("flow_2")
    )

    assert adopted is not None
    assert (adopted.fingerprint, adopted.flow_id) == ("f2", "flow_2")
    assert await lane.find_effect(lease, effect_of("f1")) is None
    found = await lane.find_effect(lease, effect_of("f2"))
    assert found is not None
    assert found.idempotency_key == adopted.idempotency_key
    unknown = await lane.adopt_effect(
        lease, lease.work.turn_id, "tool:other:1", fingerprint="f3", flow_id=FlowId("flow_2")
    )
    assert unknown is None


async def test_what_was_undone_says_so(ports: Ports, tenant: TenantId) -> None:
    lane, lease = await begin(ports, tenant)
    await write(lane, lease, StepStatus.FINISHED, entry_of(lease, status=LedgerStatus.DONE))

    await lane.mark_compensated(lease, "f1")

    found = await lane.find_effect(lease, effect_of("f1"))
    assert found is not None
    assert found.status is LedgerStatus.COMPENSATED


async def test_an_operator_says_what_became_of_it(ports: Ports, tenant: TenantId) -> None:
    """RT-35: only the status and result change. A worker that lost the lane changes nothing."""
    lane, lease = await begin(ports, tenant)
    written = entry_of(lease)
    await write(lane, lease, StepStatus.STARTED, written)
    result = {"ok": True, "data": {"ref": "A1"}}

    await lane.resolve_effect(lease, replace(written, status=LedgerStatus.DONE, result=result))

    found = await lane.find_effect(lease, effect_of("f1"))
    assert found is not None
    assert (found.status, found.result) == (LedgerStatus.DONE, result)
    assert (found.turn_id, found.idempotency_key) == (written.turn_id, written.idempotency_key)
    stale = replace(lease, token=lease.token - 1)
    with pytest.raises(LaneLost):
        await lane.resolve_effect(stale, replace(written, status=LedgerStatus.FAILED))
    again = await lane.find_effect(lease, effect_of("f1"))
    assert again is not None
    assert again.status is LedgerStatus.DONE


async def test_sessions_do_not_see_each_other(ports: Ports, tenant: TenantId) -> None:
    lane, lease = await begin(ports, tenant)
    other_lane, other = await begin(ports, tenant)
    await write(lane, lease, StepStatus.STARTED, entry_of(lease))

    assert await other_lane.find_effect(other, effect_of("f1")) is None
    assert await ports.effects.list(tenant, other.session_id) == []
    with pytest.raises(NotFound):
        await ports.effects.list(TenantId("somebody"), lease.session_id)
    with pytest.raises(NotFound):
        await ports.effects.list(tenant, SessionId("nowhere"))


async def _ended(lane: Lane, lease: Lease) -> SessionId:
    await lane.commit(lease, commit_for(lease))
    return lease.session_id


async def _claimed(ports: Ports, tenant: TenantId, session_id: SessionId) -> tuple[Lane, Lease]:
    await ports.inbox.submit(submission(tenant, session_id))
    lane, lease = await hold(ports, session_id)
    return lane, lease


async def test_a_branch_has_the_ledger_of_its_parent(ports: Ports, tenant: TenantId) -> None:
    """ST-4: with the parent's idempotency keys, but without later entries."""
    lane, lease = await begin(ports, tenant)
    done = entry_of(lease, status=LedgerStatus.DONE, result={"ok": True, "data": {}})
    await write(lane, lease, StepStatus.FINISHED, done)
    parent = await _ended(lane, lease)
    lane, lease = await _claimed(ports, tenant, parent)
    await write(
        lane, lease, StepStatus.FINISHED, entry_of(lease, fingerprint="later", status=LedgerStatus.DONE)
    )
    await _ended(lane, lease)

    branch = await ports.sessions.branch(tenant, parent, epoch=Epoch(1))
    deeper = await ports.sessions.branch(tenant, branch.session_id)

    for made in (branch, deeper):
        (had,) = await ports.effects.list(tenant, made.session_id)
        assert replace(had, at=None) == replace(done, session_id=made.session_id, of_session=parent)
        assert made.root == parent
    _, own = await _claimed(ports, tenant, deeper.session_id)
    assert own.root == parent


async def test_a_branch_has_effects_of_its_own(ports: Ports, tenant: TenantId) -> None:
    """ST-4: later effects of the parent are not in the fork's ledger, and the fork does not undo them."""
    lane, lease = await begin(ports, tenant)
    done = entry_of(lease, status=LedgerStatus.DONE)
    await write(lane, lease, StepStatus.FINISHED, done)
    parent = await _ended(lane, lease)
    branch = await ports.sessions.branch(tenant, parent)
    lane, lease = await _claimed(ports, tenant, parent)
    later = entry_of(lease, fingerprint="f2", status=LedgerStatus.DONE)
    await write(lane, lease, StepStatus.FINISHED, later)
    await lane.mark_compensated(lease, done.fingerprint)

    branch_lane, branch_lease = await _claimed(ports, tenant, branch.session_id)

    assert await branch_lane.find_effect(branch_lease, effect_of("f2")) is None
    (line,) = await ports.effects.list(tenant, branch.session_id)
    assert (line.fingerprint, line.status) == (done.fingerprint, LedgerStatus.DONE)
