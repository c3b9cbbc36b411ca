"""The ledger of effects: written with the journal under the fence, found by what an effect means (RT-10, RT-12)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.errors import LaneLost, NotFound
from orchestrator.ports.lane import Lane
from orchestrator.turns.effect import Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import AGENT, Lease, Utterance
from orchestrator.turns.step import Step, StepStatus, UnknownOutcome
from orchestrator.turns.turn import IfBusy, TurnStatus
from orchestrator.types import Epoch, FlowId, SessionId, TenantId, ToolId
from tests.contract.conftest import Ports
from tests.contract.factories import commit_for, commit_of, new_session_id, submission

KEY = "tool:flight_book:1"


async def begin(ports: Ports, tenant: TenantId) -> tuple[Lane, Lease]:
    session_id = new_session_id()
    await ports.inbox.submit(submission(tenant, session_id, create_session=True, domain="travel"))
    lane = await ports.make_lane()
    lease = await lane.claim(session_id)
    assert lease is not None
    return lane, lease


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
    """RT-5: the start is on record only by who knows of the last turn sent by `understand`; the end in any case."""
    lane, lease = await begin(ports, tenant)
    await ports.inbox.submit(submission(tenant, lease.session_id, "no", if_busy=IfBusy.UNDERSTAND))
    turn_id, entry = lease.work.turn_id, entry_of(lease)

    assert not await lane.record(lease, turn_id, step(), entry, heard=0)
    assert await lane.find_effect(lease, effect_of("f1")) is None
    assert await lane.record(lease, turn_id, step(), entry, heard=(await lane.said_meanwhile(lease)).upto)
    assert await lane.find_effect(lease, effect_of("f1")) is not None
    await ports.inbox.submit(submission(tenant, lease.session_id, "stop", if_busy=IfBusy.UNDERSTAND))
    assert await lane.record(lease, turn_id, step(StepStatus.FINISHED), entry)


async def test_a_waiting_turn_is_answered_beside_the_one_at_work(ports: Ports, tenant: TenantId) -> None:
    """RT-5: it ends for good, and the turn at work commits after it as if nothing had been."""
    lane, lease = await begin(ports, tenant)
    session = lease.session_id
    await ports.inbox.submit(submission(tenant, session, "why?", if_busy=IfBusy.UNDERSTAND))
    asked = (await lane.said_meanwhile(lease)).turns[0]
    said = (Utterance("user", "text", "why?"), Utterance(AGENT, "text", "because"))
    answer = commit_of(asked, session, utterances=said)

    assert await lane.answer_beside(lease, asked.turn_id, answer)
    assert not await lane.answer_beside(lease, asked.turn_id, answer), "it is answered once"

    ended = await ports.inbox.turn(tenant, asked.turn_id)
    assert (ended.status, ended.epoch) == (TurnStatus.DONE, lease.epoch)
    committed = await lane.commit(lease, commit_of(lease.work, session))
    assert (committed.epoch, committed.next) == (lease.epoch + 1, None)
    kept = await ports.sessions.get(tenant, session)
    assert (kept.pending, kept.epoch) == (0, 1)
    history = await ports.sessions.history(tenant, session)
    assert [line["content"] for line in history][:2] == ["why?", "because"]
    assert (await ports.inbox.submit(submission(tenant, session))).position == 0


async def test_who_has_lost_the_lane_answers_nothing(ports: Ports, tenant: TenantId) -> None:
    lane, lease = await begin(ports, tenant)
    await ports.inbox.submit(submission(tenant, lease.session_id, "why?", if_busy=IfBusy.UNDERSTAND))
    asked = (await lane.said_meanwhile(lease)).turns[0]
    await lane.abandon(lease)
    assert await (await ports.make_lane()).claim(lease.session_id) is not None

    assert not await lane.answer_beside(lease, asked.turn_id, commit_of(asked, lease.session_id))
    assert (await ports.inbox.turn(tenant, asked.turn_id)).status is TurnStatus.QUEUED


async def test_its_end_is_written_to_the_same_line(ports: Ports, tenant: TenantId) -> None:
    lane, lease = await begin(ports, tenant)
    await write(lane, lease, StepStatus.STARTED, entry_of(lease))
    done = entry_of(lease, status=LedgerStatus.DONE, result={"ok": True, "data": {"booking_ref": "AB12CD"}})
    await write(lane, lease, StepStatus.FINISHED, done)

    listed = await ports.effects.list(tenant, lease.session_id)

    assert [replace(entry, at=None) for entry in listed] == [done]


async def test_journal_and_ledger_are_written_together_or_not_at_all(ports: Ports, tenant: TenantId) -> None:
    """RT-3: an overtaken holder writes neither."""
    lane, lease = await begin(ports, tenant)
    await ports.elapse(60)
    other = await (await ports.make_lane()).claim(lease.session_id)
    assert other is not None

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
    """RT-29: only status and result change; who has lost the lane changes nothing."""
    lane, lease = await begin(ports, tenant)
    written = entry_of(lease)
    await write(lane, lease, StepStatus.STARTED, written)
    result = {"ok": True, "data": {"ref": "A1"}}

    await lane.settle_effect(lease, replace(written, status=LedgerStatus.DONE, result=result))

    found = await lane.find_effect(lease, effect_of("f1"))
    assert found is not None
    assert (found.status, found.result) == (LedgerStatus.DONE, result)
    assert (found.turn_id, found.idempotency_key) == (written.turn_id, written.idempotency_key)
    stale = replace(lease, token=lease.token - 1)
    with pytest.raises(LaneLost):
        await lane.settle_effect(stale, replace(written, status=LedgerStatus.FAILED))
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
    lane = await ports.make_lane()
    lease = await lane.claim(session_id)
    assert lease is not None
    return lane, lease


async def test_a_branch_has_the_ledger_of_its_parent(ports: Ports, tenant: TenantId) -> None:
    """ST-4: with the parent's idempotency key and as the parent's; what came later is not in it."""
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


async def test_what_one_branch_did_is_found_by_the_others_without_its_result(
    ports: Ports, tenant: TenantId
) -> None:
    """ST-4: until their ledgers have it; nothing is found of what was undone, or of other sessions."""
    lane, lease = await begin(ports, tenant)
    parent = await _ended(lane, lease)
    left, right = [(await ports.sessions.branch(tenant, parent)).session_id for _ in range(2)]
    lane, lease = await _claimed(ports, tenant, left)
    other_lane, other = await _claimed(ports, tenant, right)
    done = entry_of(lease, status=LedgerStatus.DONE, result={"ok": True, "data": {}})
    await write(lane, lease, StepStatus.FINISHED, done)

    found = await other_lane.find_effect(other, effect_of("f9"))

    assert found is not None
    assert (found.status, found.idempotency_key) == (LedgerStatus.DONE, done.idempotency_key)
    assert (found.of_session, found.result) == (left, None)
    assert await other_lane.find_effect(other, effect_of("f9", offer_id="another")) is None
    assert await other_lane.find_effect(other, effect_of("f9", tool="hotel_book")) is None
    failed = entry_of(other, fingerprint="f9", status=LedgerStatus.FAILED)
    await write(other_lane, other, StepStatus.FINISHED, failed)
    assert await other_lane.find_effect(other, effect_of("f9")) == found, "its own try came to nothing"
    assert await lane.find_effect(lease, effect_of("f9")) is None, "its own flows may do it once more"
    mine = entry_of(other, fingerprint="f9", status=LedgerStatus.DONE, idempotency_key=done.idempotency_key)
    await write(other_lane, other, StepStatus.FINISHED, mine)
    assert await other_lane.find_effect(other, effect_of("f10")) is None
    await other_lane.mark_compensated(other, "f9")
    (line,) = await ports.effects.list(tenant, left)
    assert line.status is LedgerStatus.COMPENSATED
    third_lane, third = await _claimed(ports, tenant, parent)
    assert await third_lane.find_effect(third, effect_of("f11")) is None


async def _family(ports: Ports, tenant: TenantId) -> list[tuple[Lane, Lease]]:
    """Two branches of one session, each claimed by a worker of its own."""
    lane, lease = await begin(ports, tenant)
    parent = await _ended(lane, lease)
    branches = [await ports.sessions.branch(tenant, parent) for _ in range(2)]
    return [await _claimed(ports, tenant, branch.session_id) for branch in branches]


@pytest.mark.parametrize("ends", [LedgerStatus.DONE, LedgerStatus.FAILED])
async def test_of_two_branches_that_begin_at_once_one_waits_for_the_other(
    ports: Ports, tenant: TenantId, ends: LedgerStatus
) -> None:
    """ST-4: what it did is found out about; what it failed to do is begun here."""
    family = await _family(ports, tenant)
    beginnings = {
        asyncio.create_task(lane.record(lease, lease.work.turn_id, step(), entry_of(lease), heard=0)): number
        for number, (lane, lease) in enumerate(family)
    }
    (first,), (second,) = await asyncio.wait(beginnings, return_when=asyncio.FIRST_COMPLETED)
    assert first.result() is True
    lane, lease = family[beginnings[first]]
    other_lane, other = family[beginnings[second]]
    looking = asyncio.create_task(other_lane.find_effect(other, effect_of("f9")))
    await asyncio.sleep(0.2)
    assert not second.done()
    assert not looking.done()

    had = entry_of(lease, status=ends)
    await write(lane, lease, StepStatus.FINISHED, had)

    found = await looking
    if ends is LedgerStatus.FAILED:
        assert await second is True
        assert found is None
    else:
        assert await second == UnknownOutcome(KEY, had.idempotency_key, elsewhere=True)
        assert found is not None
        assert found.idempotency_key == had.idempotency_key
        assert await ports.effects.list(tenant, other.session_id) == []


async def test_who_tries_again_does_not_begin_beside_another_who_does(ports: Ports, tenant: TenantId) -> None:
    """ST-4: both have the first call's key; the second learns what became of the first."""
    (lane, lease), (other_lane, other) = await _family(ports, tenant)
    for one_lane, one in ((lane, lease), (other_lane, other)):
        unknown = entry_of(one, status=LedgerStatus.UNKNOWN, idempotency_key="k")
        await write(one_lane, one, StepStatus.FINISHED, unknown)
    assert await lane.record(lease, lease.work.turn_id, step(), entry_of(lease, idempotency_key="k"), heard=0)
    again = other_lane.record(
        other, other.work.turn_id, step(), entry_of(other, idempotency_key="k"), heard=0
    )
    trying = asyncio.create_task(again)
    await asyncio.sleep(0.2)
    assert not trying.done()

    await write(
        lane, lease, StepStatus.FINISHED, entry_of(lease, status=LedgerStatus.DONE, idempotency_key="k")
    )

    assert await trying == UnknownOutcome(KEY, "k")


async def test_a_worker_that_died_in_a_call_is_not_waited_for(ports: Ports, tenant: TenantId) -> None:
    (lane, lease), (other_lane, other) = await _family(ports, tenant)
    assert await lane.record(lease, lease.work.turn_id, step(), entry_of(lease), heard=0)
    await lane.abandon(lease, error="its worker died")

    outcome = await other_lane.record(other, other.work.turn_id, step(), entry_of(other), heard=0)

    assert outcome == UnknownOutcome(KEY, entry_of(lease).idempotency_key)
