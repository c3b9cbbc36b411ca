"""Contract of the inbox: accepted, rejected, repeated and canceled turns (RT-1, RT-5, RT-6, RT-7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.errors import InboxFull, InvalidInput, NotFound, Refused, SessionBusy, SessionClosed
from orchestrator.turns.lease import Lease
from orchestrator.turns.turn import IfBusy, Submission, TurnInput, TurnKind, TurnStatus
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId
from tests.contract.conftest import Ports, hold, new_session
from tests.contract.factories import claim, commit_for, commit_of, new_session_id, submission

SIGNED: JsonObject = {"by": "ann", "why": "It was mended.", "epoch": 0}


async def _claimed(ports: Ports, session_id: SessionId, **options: object) -> Lease:
    return await claim(await ports.make_lane(**options), session_id)


async def test_accepted_turns_are_numbered_in_order(ports: Ports, tenant: TenantId) -> None:
    """RT-1: `seq` is the session's next number, and `position` counts earlier unfinished turns."""
    session = await new_session(ports, tenant)
    receipts = [await ports.inbox.submit(submission(tenant, session, f"turn {n}")) for n in range(3)]
    assert [receipt.seq for receipt in receipts] == [1, 2, 3]
    assert [receipt.position for receipt in receipts] == [0, 1, 2]
    stored = await ports.inbox.turns(tenant, session_id=session)
    assert [turn.input.text for turn in stored] == ["turn 2", "turn 1", "turn 0"]
    assert {turn.status for turn in stored} == {TurnStatus.QUEUED}


async def test_an_action_is_kept_as_it_was(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    given = TurnInput(action={"name": "approve", "payload": {"id": 1, "why": None}}, form="action")
    receipt = await ports.inbox.submit(submission(tenant, session).__class__(session, given, tenant))
    assert (await ports.inbox.turn(tenant, receipt.turn_id)).input == given
    assert (await _claimed(ports, session)).work.input == given


async def test_a_turn_has_the_time_and_place_of_its_acceptance(ports: Ports, tenant: TenantId) -> None:
    """RT-29: in every attempt, even after the session's values change. Later turns without values keep them."""
    session = await new_session(ports, tenant, timezone="Europe/Oslo", locale="nb-NO")
    given = [TurnInput("one"), TurnInput("two", timezone="Pacific/Auckland"), TurnInput("three")]
    for one in given:
        await ports.inbox.submit(Submission(session, one, tenant))
    accepted = [turn.accepted_at for turn in await ports.inbox.turns(tenant, session_id=session)][::-1]

    abandoned = await _claimed(ports, session)
    await (await ports.make_lane()).abandon(abandoned)
    lane, lease = await hold(ports, session)
    works, after = [abandoned.work, lease.work], (await lane.commit(lease, commit_for(lease))).next
    while after is not None:
        works.append(after)
        lease = replace(lease, work=after, epoch=Epoch(lease.epoch + 1))
        after = (await lane.commit(lease, commit_for(lease))).next
    places = [(work.input.text, work.input.timezone, work.input.locale) for work in works]
    times = [work.accepted_at for work in works]

    assert places == [
        ("one", "Europe/Oslo", "nb-NO"),
        ("one", "Europe/Oslo", "nb-NO"),
        ("two", "Pacific/Auckland", "nb-NO"),
        ("three", "Pacific/Auckland", "nb-NO"),
    ]
    assert times == [accepted[0].timestamp(), *(at.timestamp() for at in accepted if at is not None)]
    found = await ports.sessions.get(tenant, session)
    assert (found.timezone, found.locale) == ("Pacific/Auckland", "nb-NO")


async def test_an_unfinished_turn_does_not_keep_a_later_one_from_naming_a_place(
    ports: Ports, tenant: TenantId
) -> None:
    """RT-29: under every rule, including those that depend on unfinished turns."""
    for rule in (IfBusy.ENQUEUE, IfBusy.UNDERSTAND, IfBusy.INTERRUPT):
        session = await new_session(ports, tenant)
        await ports.inbox.submit(submission(tenant, session, "one"))
        named = TurnInput("two", timezone="Asia/Tokyo", locale="ja-JP")
        receipt = await ports.inbox.submit(Submission(session, named, tenant, if_busy=rule))

        kept = (await ports.inbox.turn(tenant, receipt.turn_id)).input
        found = await ports.sessions.get(tenant, session)
        assert (kept.timezone, kept.locale) == (found.timezone, found.locale) == ("Asia/Tokyo", "ja-JP")


async def test_unknown_and_foreign_sessions_and_turns_are_not_found(ports: Ports, tenant: TenantId) -> None:
    """RT-22"""
    session = await new_session(ports, tenant)
    with pytest.raises(NotFound):
        await ports.inbox.submit(submission(tenant, "nowhere"))
    with pytest.raises(NotFound):
        await ports.inbox.submit(submission(TenantId("other"), session))
    with pytest.raises(NotFound):
        await ports.inbox.turn(tenant, TurnId("turn_none"))
    turn_id = (await ports.inbox.submit(submission(tenant, session))).turn_id
    with pytest.raises(NotFound):
        await ports.inbox.turn(TenantId("other"), turn_id)


async def test_a_session_that_is_made_on_request_keeps_its_rule(ports: Ports, tenant: TenantId) -> None:
    """RT-5: turns without a rule follow the session's."""
    name = new_session_id()
    made = submission(tenant, name, create_session=True, domain="travel", session_if_busy=IfBusy.REJECT)
    await ports.inbox.submit(made)
    with pytest.raises(SessionBusy):
        await ports.inbox.submit(submission(tenant, name))


async def test_a_session_is_made_on_request(ports: Ports, tenant: TenantId) -> None:
    name = new_session_id()
    receipt = await ports.inbox.submit(submission(tenant, name, create_session=True, domain="travel"))
    assert receipt.seq == 1
    assert (await ports.sessions.get(tenant, name)).domain == "travel"
    with pytest.raises(InvalidInput):
        await ports.inbox.submit(submission(tenant, new_session_id(), create_session=True))


async def test_the_same_key_gives_the_first_turn(ports: Ports, tenant: TenantId) -> None:
    """RT-5: a repetition stores nothing."""
    session = await new_session(ports, tenant)
    first = await ports.inbox.submit(submission(tenant, session, "one", idempotency_key="k"))
    again = await ports.inbox.submit(submission(tenant, session, "two", idempotency_key="k"))
    assert (again.turn_id, again.seq, again.repeated) == (first.turn_id, first.seq, True)
    assert not first.repeated
    assert [turn.input.text for turn in await ports.inbox.turns(tenant, session_id=session)] == ["one"]
    other = await new_session(ports, tenant)
    elsewhere = await ports.inbox.submit(submission(tenant, other, "one", idempotency_key="k"))
    assert elsewhere.turn_id != first.turn_id


async def test_a_repeat_is_recognised_even_when_nothing_is_accepted(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    first = await ports.inbox.submit(submission(tenant, session, idempotency_key="k"))
    await ports.sessions.close(tenant, session)
    assert (
        await ports.inbox.submit(submission(tenant, session, idempotency_key="k"))
    ).turn_id == first.turn_id


async def test_a_sequence_is_used_once(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    await ports.inbox.submit(submission(tenant, session, sequence=1))
    with pytest.raises(Refused, match="Sequence 1"):
        await ports.inbox.submit(submission(tenant, session, sequence=1))
    assert (await ports.inbox.submit(submission(tenant, session, sequence=2))).seq == 2


async def test_reject_refuses_while_busy(ports: Ports, tenant: TenantId) -> None:
    """RT-5: for the rule of the turn and of the session."""
    session = await new_session(ports, tenant, if_busy=IfBusy.REJECT)
    await ports.inbox.submit(submission(tenant, session))
    with pytest.raises(SessionBusy):
        await ports.inbox.submit(submission(tenant, session))
    assert (await ports.inbox.submit(submission(tenant, session, if_busy=IfBusy.ENQUEUE))).position == 1


@pytest.mark.parametrize("rule", [IfBusy.REJECT, IfBusy.INTERRUPT, IfBusy.ROLLBACK])
async def test_the_systems_own_turns_are_in_no_users_way(
    ports: Ports, tenant: TenantId, rule: IfBusy
) -> None:
    """RT-5, IF-12: users do not wait for a proposal's turn, and never interrupt it."""
    session = await new_session(ports, tenant, if_busy=rule)
    given = TurnInput(action={"name": "proposal", "payload": {}}, form="action", kind=TurnKind.SYSTEM)
    system = await ports.inbox.submit(Submission(session, given, tenant, if_busy=IfBusy.ENQUEUE))
    lane, lease = await hold(ports, session)
    assert lease.work.turn_id == system.turn_id

    assert (await ports.inbox.submit(submission(tenant, session))).position == 1
    assert system.turn_id not in {turn_id for _, turn_id in await lane.renew()}


async def test_a_closed_session_accepts_nothing(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    await ports.sessions.close(tenant, session)
    with pytest.raises(SessionClosed):
        await ports.inbox.submit(submission(tenant, session))


async def test_the_inbox_of_a_session_is_bounded(ports: Ports, tenant: TenantId) -> None:
    """RT-5: a submission above the limit is rejected and not stored."""
    session = await new_session(ports, tenant)
    inbox = ports.make_inbox(session_limit=2)
    for _ in range(2):
        await inbox.submit(submission(tenant, session))
    with pytest.raises(InboxFull):
        await inbox.submit(submission(tenant, session))
    assert len(await inbox.turns(tenant, session_id=session)) == 2
    assert [event.number for event in await ports.log.read(tenant, session)] == [1, 2]


async def test_characters_that_cannot_be_stored_are_refused(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    for text in ("nul \x00 inside", "half a pair \ud800"):
        with pytest.raises(InvalidInput):
            await ports.inbox.submit(submission(tenant, session, text))
    assert await ports.inbox.turns(tenant, session_id=session) == []


async def test_a_queued_turn_is_cancelled_at_once(ports: Ports, tenant: TenantId) -> None:
    """RT-7"""
    session = await new_session(ports, tenant)
    first = await ports.inbox.submit(submission(tenant, session, "first"))
    await ports.inbox.submit(submission(tenant, session, "second"))
    cancelled = await ports.inbox.cancel(tenant, first.turn_id)
    assert cancelled.status is TurnStatus.CANCELLED
    assert cancelled.result is not None
    assert cancelled.result["status"] == "cancelled"
    assert (await ports.sessions.get(tenant, session)).pending == 1
    assert (await _claimed(ports, session)).work.input.text == "second"
    assert (await ports.inbox.cancel(tenant, first.turn_id)) == cancelled


async def test_a_running_turn_is_asked_to_stop(ports: Ports, tenant: TenantId) -> None:
    """RT-7: its worker learns this at the next renewal."""
    session = await new_session(ports, tenant)
    receipt = await ports.inbox.submit(submission(tenant, session))
    lane, lease = await hold(ports, session)
    assert await lane.renew() == []
    assert (await ports.inbox.cancel(tenant, receipt.turn_id)).status is TurnStatus.RUNNING
    assert await lane.renew() == [(session, receipt.turn_id)]
    await lane.commit(lease, commit_for(lease, status=TurnStatus.CANCELLED))
    assert (await ports.inbox.turn(tenant, receipt.turn_id)).status is TurnStatus.CANCELLED
    assert await lane.renew() == []


@pytest.mark.parametrize(("rule", "heard"), [(IfBusy.INTERRUPT, 2), (IfBusy.ROLLBACK, 0)])
async def test_a_new_turn_may_stop_the_present_one(
    ports: Ports, tenant: TenantId, rule: IfBusy, heard: int
) -> None:
    """RT-5: `interrupt` keeps the canceled turn in the history, and `rollback` removes it."""
    session = await new_session(ports, tenant)
    stopped = await ports.inbox.submit(submission(tenant, session, "wrong"))
    lane, lease = await hold(ports, session)
    await ports.inbox.submit(submission(tenant, session, "right", if_busy=rule))
    assert await lane.renew() == [(session, stopped.turn_id)]
    committed = await lane.commit(lease, commit_for(lease, status=TurnStatus.CANCELLED))
    assert committed.next is not None
    assert committed.next.input.text == "right"
    assert not committed.next.cancelled
    assert len(await ports.sessions.history(tenant, session)) == heard


async def test_an_interrupted_turn_that_had_not_begun_is_handed_over_as_cancelled(
    ports: Ports, tenant: TenantId
) -> None:
    session = await new_session(ports, tenant)
    await ports.inbox.submit(submission(tenant, session, "wrong"))
    await ports.inbox.submit(submission(tenant, session, "right", if_busy=IfBusy.INTERRUPT))
    assert (await _claimed(ports, session)).work.cancelled


async def test_what_is_sent_to_be_understood_is_heard_by_the_turn_at_work(
    ports: Ports, tenant: TenantId
) -> None:
    """RT-5: in order, up to the first message sent under another rule. A session's only turn waits for no other."""
    session = await new_session(ports, tenant, if_busy=IfBusy.UNDERSTAND)
    first = await ports.inbox.submit(submission(tenant, session, "first"))
    lane, lease = await hold(ports, session)
    assert await lane.renew() == []
    assert (await lane.said_meanwhile(lease)).turns == ()

    for text, rule in (("second", None), ("third", None), ("fourth", IfBusy.ENQUEUE), ("fifth", None)):
        await ports.inbox.submit(submission(tenant, session, text, if_busy=rule))

    said = await lane.said_meanwhile(lease)
    assert [(turn.seq, turn.input.text) for turn in said.turns] == [(2, "second"), (3, "third")]
    assert (said.upto, said.cancelled) == (5, False)
    assert await lane.renew() == [(session, first.turn_id)]
    following = (await lane.commit(lease, commit_for(lease))).next
    assert following is not None
    assert following.input.text == "second"


async def test_what_waits_for_a_missing_predecessor_is_not_heard(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant, if_busy=IfBusy.UNDERSTAND)
    await ports.inbox.submit(submission(tenant, session, "first", sequence=1))
    lane, lease = await hold(ports, session)
    await ports.inbox.submit(submission(tenant, session, "third", sequence=3))
    assert (await lane.said_meanwhile(lease)).turns == ()
    await ports.inbox.submit(submission(tenant, session, "second", sequence=2))
    assert [turn.input.text for turn in (await lane.said_meanwhile(lease)).turns] == ["third", "second"]


async def _quarantined(ports: Ports, tenant: TenantId, session: SessionId) -> TurnId:
    receipt = await ports.inbox.submit(submission(tenant, session, "poison"))
    lane, lease = await hold(ports, session, max_attempts=1)
    await lane.abandon(lease, error="it broke")
    assert await lane.claim(session) is None
    return receipt.turn_id


async def test_a_quarantined_turn_can_be_retried(ports: Ports, tenant: TenantId) -> None:
    """RT-6: the turn goes to the end of the queue, with all attempts available."""
    session = await new_session(ports, tenant)
    turn_id = await _quarantined(ports, tenant, session)
    assert [t.turn_id for t in await ports.inbox.turns(tenant, status=TurnStatus.QUARANTINED)] == [turn_id]
    await ports.inbox.submit(submission(tenant, session, "later"))
    again = await ports.inbox.retry(tenant, turn_id, SIGNED)
    assert (again.status, again.seq, again.attempts, again.result) == (TurnStatus.QUEUED, 3, 0, None)
    lane, lease = await hold(ports, session)
    assert lease.work.input.text == "later"
    following = (await lane.commit(lease, commit_for(lease))).next
    assert following is not None
    assert (following.turn_id, following.attempts) == (turn_id, 1)
    with pytest.raises(Refused):
        await ports.inbox.retry(tenant, turn_id, SIGNED)


async def test_a_quarantined_turn_can_be_dropped(ports: Ports, tenant: TenantId) -> None:
    """RT-6"""
    session = await new_session(ports, tenant)
    turn_id = await _quarantined(ports, tenant, session)
    dropped = await ports.inbox.drop(tenant, turn_id, SIGNED)
    assert (dropped.status, dropped.error) == (TurnStatus.CANCELLED, "it broke")
    assert await ports.inbox.turns(tenant, status=TurnStatus.QUARANTINED) == []
    assert (await ports.sessions.get(tenant, session)).pending == 0
    with pytest.raises(Refused):
        await ports.inbox.drop(tenant, turn_id, SIGNED)


async def test_every_change_leaves_an_event(ports: Ports, tenant: TenantId) -> None:
    """RT-15: the numbers have no gaps, for every kind of writer."""
    session = await new_session(ports, tenant)
    await _quarantined(ports, tenant, session)
    cancelled = await ports.inbox.submit(submission(tenant, session))
    await ports.inbox.cancel(tenant, cancelled.turn_id)
    await ports.inbox.submit(submission(tenant, session))
    lane, lease = await hold(ports, session)
    await lane.commit(lease, commit_of(lease.work, session))
    events = await ports.log.read(tenant, session)
    assert [event.number for event in events] == [1, 2, 3, 4, 5, 6, 7]
    assert [event.type for event in events] == [
        *("accepted", "failed", "accepted", "failed", "accepted", "started", "answer")
    ]
