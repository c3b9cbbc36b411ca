"""Contract of the session lane: one worker, turns in order, fenced commits (RT-2 … RT-8, RT-11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.errors import LaneLost, NotFound
from orchestrator.turns.lease import ArchivedFlow, Committed, FrameRecord, Lease, OutboxEntry
from orchestrator.turns.plan import PlanRecord, PlanRevision
from orchestrator.turns.step import Step, StepStatus
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import SessionId, TenantId
from tests.contract.conftest import DURABLE, Ports, hold, new_session
from tests.contract.factories import claim, commit_for, submission

LEASE_S = 15.0


async def _session_with(ports: Ports, tenant: TenantId, *texts: str, **more: object) -> SessionId:
    session = await new_session(ports, tenant)
    for text in texts:
        await ports.inbox.submit(submission(tenant, session, text, **more))
    return session


def _following(lease: Lease, committed: Committed) -> Lease:
    assert committed.next is not None
    return replace(lease, epoch=committed.epoch, work=committed.next)


async def test_turns_run_one_at_a_time_in_order(ports: Ports, tenant: TenantId) -> None:
    """RT-2"""
    session = await _session_with(ports, tenant, "one", "two", "three")
    first, second = await ports.make_lane(), await ports.make_lane()
    lease = await claim(first, session)
    assert (lease.work.input.text, lease.work.attempts, lease.epoch, lease.state) == ("one", 1, 0, None)
    assert 0 < lease.work.deadline_s <= 120
    assert await second.claim(session) is None
    assert await first.claim(session) is None
    lease = _following(lease, await first.commit(lease, commit_for(lease)))
    assert lease.work.input.text == "two"
    lease = _following(lease, await first.commit(lease, commit_for(lease)))
    assert lease.work.input.text == "three"
    committed = await first.commit(lease, commit_for(lease))
    assert (committed.next, committed.epoch) == (None, 3)
    assert await second.claim(session) is None


async def test_a_released_lane_goes_to_whoever_claims_next(ports: Ports, tenant: TenantId) -> None:
    session = await _session_with(ports, tenant, "one")
    first, second = await ports.make_lane(), await ports.make_lane()
    lease = await claim(first, session)
    await first.commit(lease, commit_for(lease, after={"a": 1}))
    await ports.inbox.submit(submission(tenant, session, "two"))
    other = await claim(second, session)
    assert (other.epoch, other.state, other.work.input.text) == (1, b'{"a":1}', "two")
    assert other.token > lease.token


async def test_a_commit_writes_everything_at_once(ports: Ports, tenant: TenantId) -> None:
    """RT-4, RT-15"""
    session = await _session_with(ports, tenant, "one")
    lane, lease = await hold(ports, session)
    committed = await lane.commit(
        lease,
        commit_for(
            lease,
            after={"slots": {"city": "Oslo"}},
            archived=(ArchivedFlow("flow_1", "book_flight", "Completed", None, {"ref": "X"}),),
            frames=(FrameRecord("frame_1", "flow_1", {"v": 1}), FrameRecord("frame_2", "flow_1", {"v": 2})),
            outbox=(OutboxEntry("webhook", {"url": "here"}),),
        ),
    )
    assert [event.number for event in committed.events] == [2, 3]
    turn = await ports.inbox.turn(tenant, lease.work.turn_id)
    assert (turn.status, turn.epoch) == (TurnStatus.DONE, 1)
    assert turn.result == {"turn_id": turn.turn_id, "reply": "you said one"}
    record = await ports.sessions.get(tenant, session)
    assert (record.epoch, record.pending, record.state) == (1, 0, {"slots": {"city": "Oslo"}})
    history = await ports.sessions.history(tenant, session)
    assert [(line["role"], line["content"]) for line in history] == [
        ("user", "one"),
        ("agent", "you said one"),
    ]
    assert list(committed.events) == (await ports.log.read(tenant, session))[1:]


async def test_a_holder_that_was_overtaken_writes_nothing(ports: Ports, tenant: TenantId) -> None:
    """RT-3: a frozen worker resumes after its lease has expired."""
    session = await _session_with(ports, tenant, "one")
    frozen, other = await ports.make_lane(), await ports.make_lane()
    old = await claim(frozen, session)
    await ports.elapse(LEASE_S + 1)
    new = await claim(other, session)
    assert (new.work.turn_id, new.work.attempts) == (old.work.turn_id, 1)
    with pytest.raises(LaneLost):
        await frozen.commit(old, commit_for(old, after={"who": "frozen"}))
    with pytest.raises(LaneLost):
        await frozen.record(old, old.work.turn_id, Step("k", "tool", StepStatus.STARTED, "h"))
    assert (await ports.sessions.get(tenant, session)).state is None
    await other.commit(new, commit_for(new, after={"who": "other"}))
    with pytest.raises(LaneLost):
        await frozen.commit(old, commit_for(old, after={"who": "frozen"}))
    record = await ports.sessions.get(tenant, session)
    assert (record.state, record.epoch, record.pending) == ({"who": "other"}, 1, 0)
    assert len(await ports.sessions.history(tenant, session)) == 2
    assert [event.number for event in await ports.log.read(tenant, session)] == [1, 2, 3]


async def test_an_old_epoch_does_not_commit(ports: Ports, tenant: TenantId) -> None:
    """RT-3: a worker cannot commit a turn twice."""
    session = await _session_with(ports, tenant, "one", "two")
    lane, lease = await hold(ports, session)
    await lane.commit(lease, commit_for(lease))
    with pytest.raises(LaneLost):
        await lane.commit(lease, commit_for(lease))
    assert (await ports.sessions.get(tenant, session)).epoch == 1


async def test_renewal_keeps_a_lane(ports: Ports, tenant: TenantId) -> None:
    session = await _session_with(ports, tenant, "one")
    holder, other = await ports.make_lane(), await ports.make_lane()
    lease = await claim(holder, session)
    for _ in range(3):
        await ports.elapse(LEASE_S * 0.6)
        await holder.renew()
        assert await other.claim(session) is None
    await holder.commit(lease, commit_for(lease))


async def test_renewal_notices_a_takeover(ports: Ports, tenant: TenantId) -> None:
    session = await _session_with(ports, tenant, "one")
    holder, other = await ports.make_lane(), await ports.make_lane()
    lease = await claim(holder, session)
    await ports.elapse(LEASE_S + 1)
    taken = await claim(other, session)
    await ports.inbox.cancel(tenant, lease.work.turn_id)
    assert await holder.renew() == []
    assert await other.renew() == [(session, taken.work.turn_id)]


async def test_the_dead_workers_lanes_are_free_at_once(ports: Ports, tenant: TenantId) -> None:
    """RT-11: before the lease expires, and without the grace period."""
    session = await _session_with(ports, tenant, "one")
    dead, other = await ports.make_lane(), await ports.make_lane()
    lease = await claim(dead, session)
    assert session not in await other.sweep(grace_s=60)
    assert await other.claim(session) is None
    await ports.kill(dead)
    assert session in await other.sweep(grace_s=60)
    taken = await claim(other, session)
    assert (taken.work.turn_id, taken.work.attempts) == (lease.work.turn_id, 1)


@DURABLE
async def test_lost_hints_are_found(ports: Ports, tenant: TenantId) -> None:
    """RT-1: the reconciler returns unclaimed work once per grace period."""
    waiting = await _session_with(ports, tenant, "one")
    held = await _session_with(ports, tenant, "one")
    lane = await ports.make_lane()
    await claim(lane, held)
    assert waiting not in await lane.sweep(grace_s=1)
    await ports.elapse(2)
    named = await lane.sweep(grace_s=1)
    assert waiting in named
    assert held not in named
    assert waiting not in await lane.sweep(grace_s=1)
    await ports.elapse(2)
    assert waiting in await lane.sweep(grace_s=1)
    lease = await claim(lane, waiting)
    await lane.commit(lease, commit_for(lease))
    await ports.elapse(2)
    assert waiting not in await lane.sweep(grace_s=1)
    await ports.inbox.submit(submission(tenant, waiting, "again"))
    assert waiting not in await lane.sweep(grace_s=1)
    await ports.elapse(2)
    assert waiting in await lane.sweep(grace_s=1)


async def test_an_expired_lease_is_found(ports: Ports, tenant: TenantId) -> None:
    session = await _session_with(ports, tenant, "one")
    frozen, other = await ports.make_lane(), await ports.make_lane()
    await claim(frozen, session)
    await ports.elapse(LEASE_S + 1)
    assert session in await other.sweep(grace_s=1)


async def test_a_turn_is_handed_back(ports: Ports, tenant: TenantId) -> None:
    """RT-18: without an error, the attempt does not count."""
    session = await _session_with(ports, tenant, "one")
    lane, other = await ports.make_lane(), await ports.make_lane()
    await lane.abandon(await claim(lane, session))
    lease = await claim(other, session)
    assert lease.work.attempts == 1
    await other.abandon(lease, error="it broke")
    turn = await ports.inbox.turn(tenant, lease.work.turn_id)
    assert (turn.status, turn.error) == (TurnStatus.QUEUED, "it broke")
    assert (await claim(lane, session)).work.attempts == 2


async def test_a_lost_reply_to_a_commit_costs_the_next_turn_no_attempt(
    ports: Ports, tenant: TenantId
) -> None:
    session = await _session_with(ports, tenant, "one", "two")
    lane, first = await hold(ports, session)
    lost = await lane.commit(first, commit_for(first))
    assert lost.next is not None
    await lane.abandon(first, error="the store did not reply")
    second = await ports.inbox.turn(tenant, lost.next.turn_id)
    assert (second.status, second.error, second.attempts) == (TurnStatus.QUEUED, None, 0)
    assert (await ports.inbox.turn(tenant, first.work.turn_id)).status is TurnStatus.DONE
    again = await claim(await ports.make_lane(), session)
    assert (again.work.turn_id, again.work.attempts) == (second.turn_id, 1)


async def test_a_poisonous_turn_is_quarantined(ports: Ports, tenant: TenantId) -> None:
    """RT-6: after its last attempt, the lane continues with the next turn."""
    session = await _session_with(ports, tenant, "poison", "good")
    lane = await ports.make_lane(max_attempts=2)
    for _ in range(2):
        lease = await claim(lane, session)
        assert lease.work.input.text == "poison"
        await lane.abandon(lease, error="it broke")
    following = await claim(lane, session)
    assert (following.work.input.text, following.epoch) == ("good", 0)
    poison = await ports.inbox.turn(tenant, lease.work.turn_id)
    assert (poison.status, poison.error, poison.attempts) == (TurnStatus.QUARANTINED, "it broke", 2)
    assert poison.result is not None
    assert poison.result["reply"]
    assert "it broke" not in str(poison.result)
    await lane.commit(following, commit_for(following))
    assert (await ports.sessions.get(tenant, session)).pending == 0


async def test_the_journal_is_given_to_the_next_attempt(ports: Ports, tenant: TenantId) -> None:
    """RT-8: finished and started steps, in order."""
    session = await _session_with(ports, tenant, "one")
    lane, other = await ports.make_lane(), await ports.make_lane()
    lease = await claim(lane, session)
    assert lease.work.steps == ()
    turn_id = lease.work.turn_id
    model = Step("model:1", "model", StepStatus.FINISHED, "h1", {"text": "hi"})
    begun = Step("tool:1", "tool", StepStatus.STARTED, "h2")
    await lane.record(lease, turn_id, replace(model, status=StepStatus.STARTED, result=None))
    await lane.record(lease, turn_id, model)
    await lane.record(lease, turn_id, begun)
    await lane.abandon(lease, error="it broke")
    assert (await claim(other, session)).work.steps == (model, begun)


async def test_the_deadline_spans_the_attempts(ports: Ports, tenant: TenantId) -> None:
    """RT-7: it starts with the first attempt, not with each one."""
    session = await _session_with(ports, tenant, "one")
    lane = await ports.make_lane(turn_deadline_s=100.0)
    await lane.abandon(await claim(lane, session), error="it broke")
    await ports.elapse(30)
    assert 60 < (await claim(lane, session)).work.deadline_s <= 70


async def test_a_later_sequence_waits_for_the_earlier(ports: Ports, tenant: TenantId) -> None:
    """RT-5"""
    session = await _session_with(ports, tenant)
    lane = await ports.make_lane()
    await ports.inbox.submit(submission(tenant, session, "second", sequence=2))
    assert await lane.claim(session) is None
    await ports.inbox.submit(submission(tenant, session, "first", sequence=1))
    lease = await claim(lane, session)
    assert lease.work.input.text == "first"
    lease = _following(lease, await lane.commit(lease, commit_for(lease)))
    assert lease.work.input.text == "second"
    assert (await lane.commit(lease, commit_for(lease))).next is None


@DURABLE
async def test_a_closed_gap_is_looked_at_again_after_each_lost_hint(ports: Ports, tenant: TenantId) -> None:
    """RT-1, RT-5: not only when the wait for the predecessor would have ended."""
    session = await _session_with(ports, tenant)
    lane = await ports.make_lane(sequence_gap_timeout_s=120.0)
    await ports.inbox.submit(submission(tenant, session, "second", sequence=2))
    assert await lane.claim(session) is None
    await ports.inbox.submit(submission(tenant, session, "first", sequence=1))
    for _ in range(2):
        await ports.elapse(2)
        assert session in await lane.sweep(grace_s=1)
    assert (await claim(lane, session)).work.input.text == "first"


@DURABLE
async def test_a_gap_that_lasts_is_reported(ports: Ports, tenant: TenantId) -> None:
    """RT-5: the turn behind the gap fails and names the gap. Later turns run."""
    session = await _session_with(ports, tenant)
    lane = await ports.make_lane(sequence_gap_timeout_s=30.0)
    gapped = await ports.inbox.submit(submission(tenant, session, "third", sequence=3))
    await ports.inbox.submit(submission(tenant, session, "fourth", sequence=4))
    assert await lane.claim(session) is None
    await ports.elapse(20)
    await lane.sweep(grace_s=1)
    assert (await ports.inbox.turn(tenant, gapped.turn_id)).status is TurnStatus.QUEUED
    await ports.elapse(12)
    assert session in await lane.sweep(grace_s=1)
    failed = await ports.inbox.turn(tenant, gapped.turn_id)
    assert failed.status is TurnStatus.FAILED
    assert failed.error is not None
    assert "sequence 2" in failed.error
    lease = await claim(lane, session)
    assert lease.work.input.text == "fourth"
    assert (await lane.commit(lease, commit_for(lease))).next is None


async def test_a_failed_turn_is_committed_too(ports: Ports, tenant: TenantId) -> None:
    session = await _session_with(ports, tenant, "one")
    lane, lease = await hold(ports, session)
    await lane.commit(lease, commit_for(lease, status=TurnStatus.FAILED, error="past its deadline"))
    turn = await ports.inbox.turn(tenant, lease.work.turn_id)
    assert (turn.status, turn.error, turn.epoch) == (TurnStatus.FAILED, "past its deadline", 1)


async def test_nothing_to_do_is_no_lease(ports: Ports, tenant: TenantId) -> None:
    lane = await ports.make_lane()
    assert await lane.claim(await _session_with(ports, tenant)) is None
    assert await lane.claim(SessionId("nowhere")) is None


async def test_plans_and_their_revisions_are_kept(ports: Ports, tenant: TenantId) -> None:
    """PL-6, RT-4: the latest plan, and every revision in order."""
    session = await _session_with(ports, tenant, "one")
    with pytest.raises(NotFound):
        await ports.sessions.plan(tenant, session)
    lane = await ports.make_lane()
    plan = PlanRecord("flow_p", "plan_trip", "a trip", "Pending", "planned", 1, {"progress": "0 of 2"})
    made = PlanRevision("flow_p", 1, "decomposed", "", {"steps": ["a", "b"]})
    lease = await claim(lane, session)
    await lane.commit(lease, commit_for(lease, plans=(plan,), plan_revisions=(made,)))
    await ports.inbox.submit(submission(tenant, session, "two"))
    later = await claim(lane, session)
    changed = (
        PlanRevision("flow_p", 2, "prune", "not needed", {"steps": ["b"]}),
        PlanRevision("flow_p", 3, "finished", "", {"steps": ["b"]}),
    )
    ended = replace(plan, state="Completed", reason=None, revision=2, body={"progress": "1 of 1"})
    await lane.commit(later, commit_for(later, plans=(ended,), plan_revisions=changed))
    found = await ports.sessions.plan(tenant, session)
    assert (found["plan_id"], found["goal"]) == ("flow_p", "a trip")
    assert (found["state"], found["reason"]) == ("Completed", None)
    assert (found["revision"], found["progress"], found["turn_id"]) == (2, "1 of 1", later.work.turn_id)
    assert [(r["number"], r["outcome"], r["why"]) for r in found["revisions"]] == [
        (1, "decomposed", ""),
        (2, "prune", "not needed"),
        (3, "finished", ""),
    ]
    assert found["revisions"][0]["turn_id"] == lease.work.turn_id
    with pytest.raises(NotFound):
        await ports.sessions.plan(TenantId("other"), session)
