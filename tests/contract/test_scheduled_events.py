"""Contract of scheduled events: due once, moved, canceled, repeated, refused (RT-31), and of later results
(RT-32).
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.errors import InboxFull, NotFound, Refused, SessionClosed
from orchestrator.turns.scheduled import EVENT, RESULT, EventStatus, NewEvent, ScheduledEvent, expect_result
from orchestrator.turns.turn import TurnKind, TurnRecord, TurnStatus
from orchestrator.types import JsonObject, SessionId, TenantId
from tests.contract.conftest import Ports, hold, new_session
from tests.contract.factories import commit_for, submission


async def _in(ports: Ports, tenant: TenantId, session: SessionId, seconds: float, **more: object) -> NewEvent:
    """Return an event that is due in this many seconds of the store's clock."""
    probe = NewEvent(session, tenant, "probe", {}, "clock")
    now = (await ports.scheduled.schedule(probe)).not_before
    event = NewEvent(session, tenant, "reminder", {"about": "tea"}, "key", now + timedelta(seconds=seconds))
    return replace(event, **more)  # pyright: ignore[reportArgumentType]


async def _caused(
    ports: Ports, tenant: TenantId, session: SessionId, name: str = "reminder"
) -> list[TurnRecord]:
    turns = await ports.inbox.turns(tenant, session_id=session)
    return [turn for turn in turns if turn.input.action and turn.input.action["payload"]["name"] == name]


async def test_an_event_without_a_time_is_a_turn_of_the_system_at_once(
    ports: Ports, tenant: TenantId
) -> None:
    session = await new_session(ports, tenant)
    event = await ports.scheduled.schedule(NewEvent(session, tenant, "reminder", {"about": "tea"}, "key"))
    [turn] = await _caused(ports, tenant, session)
    assert (event.status, event.turn_id) == (EventStatus.DELIVERED, turn.turn_id)
    assert (turn.input.kind, turn.status) == (TurnKind.SYSTEM, TurnStatus.QUEUED)
    assert turn.input.action == {
        "name": EVENT,
        "payload": {"event_id": event.event_id, "name": "reminder", "payload": {"about": "tea"}},
    }


async def test_a_reminder_is_delivered_once_when_it_is_due(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    await ports.scheduled.schedule(await _in(ports, tenant, session, 60))
    await ports.scheduled.deliver_due()
    assert await _caused(ports, tenant, session) == []
    await ports.elapse(61)
    delivered = await asyncio.gather(*(ports.scheduled.deliver_due() for _ in range(4)))
    assert sum(sessions.count(session) for sessions in delivered) == 1
    assert len(await _caused(ports, tenant, session)) == 1


async def test_a_repeated_key_returns_the_first_event(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    event = await _in(ports, tenant, session, 60)
    first = await ports.scheduled.schedule(event)
    assert await ports.scheduled.schedule(replace(event, name="other", not_before=None)) == first
    await ports.elapse(61)
    await ports.scheduled.deliver_due()
    again = await ports.scheduled.schedule(event)
    assert (again.event_id, again.status) == (first.event_id, EventStatus.DELIVERED)
    assert len(await _caused(ports, tenant, session)) == 1


async def test_another_call_of_a_tool_moves_the_event_and_the_same_call_does_not(
    ports: Ports, tenant: TenantId
) -> None:
    session = await new_session(ports, tenant)
    event = await _in(ports, tenant, session, 60, set_by="call 1")
    first = await ports.scheduled.schedule(event)
    later = replace(event, not_before=first.not_before + timedelta(seconds=60), set_by="call 2")
    moved = await ports.scheduled.schedule(later)
    assert (moved.event_id, moved.revision) == (first.event_id, 1)
    assert await ports.scheduled.schedule(later) == moved, "an attempt of the same call"
    await ports.elapse(61)
    await ports.scheduled.deliver_due()
    assert await _caused(ports, tenant, session) == []
    await ports.elapse(60)
    await ports.scheduled.deliver_due()
    assert len(await _caused(ports, tenant, session)) == 1


async def test_an_event_is_moved_until_it_is_delivered(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    event = await ports.scheduled.schedule(await _in(ports, tenant, session, 3600))
    moved = await ports.scheduled.move(tenant, session, event.event_id, datetime(2020, 1, 1, tzinfo=UTC))
    assert moved.status is EventStatus.DELIVERED
    with pytest.raises(Refused, match="delivered"):
        await ports.scheduled.move(tenant, session, event.event_id, event.not_before)


async def test_a_canceled_event_is_never_delivered(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    await ports.scheduled.schedule(await _in(ports, tenant, session, 60))
    assert (await ports.scheduled.cancel(tenant, session, "key")).status is EventStatus.CANCELLED
    await ports.elapse(61)
    await ports.scheduled.deliver_due()
    assert await _caused(ports, tenant, session) == []


async def test_canceling_takes_the_turn_back_unless_it_has_started(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    queued = await ports.scheduled.schedule(NewEvent(session, tenant, "reminder", {}, "queued"))
    assert (await ports.scheduled.cancel(tenant, session, queued.event_id)).status is EventStatus.CANCELLED
    [turn] = await _caused(ports, tenant, session)
    assert turn.status is TurnStatus.CANCELLED

    started = await ports.scheduled.schedule(NewEvent(session, tenant, "started", {}, "started"))
    lane, lease = await hold(ports, session)
    assert (await ports.scheduled.cancel(tenant, session, started.event_id)).status is EventStatus.DELIVERED
    await lane.commit(lease, commit_for(lease))
    [turn] = await _caused(ports, tenant, session, "started")
    assert turn.status is TurnStatus.DONE


async def test_an_event_waits_for_room_in_the_inbox(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    event = await _in(ports, tenant, session, 60)
    await ports.scheduled.schedule(event)
    for number in range(99):
        await ports.inbox.submit(submission(tenant, session, f"turn {number}"))
    await ports.elapse(61)
    assert session not in await ports.scheduled.deliver_due()
    with pytest.raises(InboxFull):
        await ports.scheduled.schedule(NewEvent(session, tenant, "now", {}, "now"))
    [waiting] = [one for one in await _listed(ports, tenant, session) if one.key == "key"]
    assert waiting.status is EventStatus.SCHEDULED
    first = (await ports.inbox.turns(tenant, session_id=session))[0]
    await ports.inbox.cancel(tenant, first.turn_id)
    await ports.elapse(6)
    assert session in await ports.scheduled.deliver_due()


async def test_a_closed_session_takes_no_event(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    await ports.scheduled.schedule(await _in(ports, tenant, session, 60))
    await _finish(ports, session)
    await ports.sessions.close(tenant, session)
    await ports.elapse(61)
    await ports.scheduled.deliver_due()
    assert await _caused(ports, tenant, session) == []
    assert EventStatus.REFUSED in {event.status for event in await _listed(ports, tenant, session)}
    with pytest.raises(SessionClosed):
        await ports.scheduled.schedule(NewEvent(session, tenant, "now", {}, "now"))


async def test_a_session_has_a_bounded_number_of_events(
    ports: Ports, tenant: TenantId, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await new_session(ports, tenant)
    event = await _in(ports, tenant, session, 3600)
    monkeypatch.setattr(sys.modules[type(ports.scheduled).__module__], "MOST_SCHEDULED", 3)
    for number in range(3):
        await ports.scheduled.schedule(replace(event, key=f"key {number}"))
    with pytest.raises(InboxFull, match="cancel some first"):
        await ports.scheduled.schedule(replace(event, key="one more"))


async def test_events_of_another_tenant_are_not_found(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    event = await ports.scheduled.schedule(await _in(ports, tenant, session, 60))
    other = TenantId(f"{tenant}-other")
    with pytest.raises(NotFound):
        await ports.scheduled.cancel(other, session, event.event_id)
    with pytest.raises(NotFound):
        await ports.scheduled.schedule(NewEvent(session, other, "reminder", {}, "key"))
    assert await _listed(ports, other, session) == []


async def _expect(ports: Ports, tenant: TenantId, session: SessionId, **more: object) -> ScheduledEvent:
    """Schedule the check of a call's result in a minute."""
    due = (await _in(ports, tenant, session, 60)).not_before
    assert due is not None
    event = expect_result(
        session, tenant, call="turn:pay:1", tool_id="card_charge", fingerprint="f", due=due, set_by="step"
    )
    return await ports.scheduled.schedule(replace(event, **more))  # pyright: ignore[reportArgumentType]


async def _brought(ports: Ports, tenant: TenantId, session: SessionId) -> list[JsonObject]:
    """Return the data of turns that check calls, oldest first."""
    turns = await ports.inbox.turns(tenant, session_id=session)
    actions = [turn.input.action for turn in reversed(turns) if turn.input.action]
    return [action["payload"] for action in actions if action["name"] == RESULT]


PAID: JsonObject = {"status": "done", "data": {"receipt": "R-17"}}


async def test_the_result_of_a_call_is_a_turn_once(ports: Ports, tenant: TenantId) -> None:
    """RT-32: many concurrent deliveries cause one turn, which does not contain the signing key."""
    session = await new_session(ports, tenant)
    call = await _expect(ports, tenant, session)
    answers = await asyncio.gather(
        *(ports.scheduled.answer(tenant, call.event_id, call.signature, PAID) for _ in range(4))
    )
    assert len({one.turn_id for one in answers}) == 1
    [brought] = await _brought(ports, tenant, session)
    assert brought == {
        "reference": call.event_id,
        "call": "turn:pay:1",
        "tool_id": "card_charge",
        "fingerprint": "f",
        "outcome": PAID,
    }
    await ports.elapse(61)
    await ports.scheduled.deliver_due()
    assert len(await _brought(ports, tenant, session)) == 1
    with pytest.raises(Refused, match="already has a different result"):
        await ports.scheduled.answer(tenant, call.event_id, call.signature, {"status": "failed"})


async def test_a_call_without_a_result_is_looked_after_when_it_is_due(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    call = await _expect(ports, tenant, session)
    await ports.elapse(61)
    await ports.scheduled.deliver_due()
    assert [one.get("outcome") for one in await _brought(ports, tenant, session)] == [None]
    later = call.not_before + timedelta(hours=1)
    again = await _expect(ports, tenant, session, set_by="turn 2", not_before=later)
    assert (again.event_id, again.signature) == (call.event_id, call.signature)
    late = await ports.scheduled.answer(tenant, call.event_id, call.signature, PAID)
    assert late.status is EventStatus.DELIVERED
    assert [one.get("outcome") for one in await _brought(ports, tenant, session)] == [None, PAID]
    assert await _expect(ports, tenant, session, set_by="turn 3") == late, "what is answered stays so"


async def test_only_the_signature_of_a_call_answers_it(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    call = await _expect(ports, tenant, session)
    reminder = await ports.scheduled.schedule(await _in(ports, tenant, session, 60))
    for reference, signature in (
        (call.event_id, "wrong"),
        ("call_unknown", call.signature),
        (reminder.event_id, call.signature),
    ):
        with pytest.raises(NotFound):
            await ports.scheduled.answer(tenant, reference, signature, PAID)
    with pytest.raises(NotFound):
        await ports.scheduled.answer(TenantId(f"{tenant}-other"), call.event_id, call.signature, PAID)
    assert await _brought(ports, tenant, session) == []
    assert call.event_id not in {event.event_id for event in await _listed(ports, tenant, session)}


async def _listed(ports: Ports, tenant: TenantId, session: SessionId) -> list[ScheduledEvent]:
    return await ports.scheduled.of_session(tenant, session, limit=200)


async def _finish(ports: Ports, session: SessionId) -> None:
    lane = await ports.make_lane()
    while (lease := await lane.claim(session)) is not None:
        await lane.commit(lease, commit_for(lease))
