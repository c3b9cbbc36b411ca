"""Data that turns leave for operators: frames, journal, feedback, and pages of turns."""

from __future__ import annotations

import pytest

from orchestrator.errors import NotFound
from orchestrator.turns.feedback import Feedback, Rating
from orchestrator.turns.lease import FrameRecord
from orchestrator.turns.step import Step, StepStatus
from orchestrator.types import SessionId, TenantId, TurnId
from tests.contract.conftest import DURABLE, Ports, hold, new_session
from tests.contract.factories import commit_for, submission

OTHER = TenantId("other")


def frame(flow_id: str, frame_id: str) -> FrameRecord:
    return FrameRecord(frame_id, flow_id, {"frame_id": frame_id, "flow_id": flow_id, "data": [{"a": 1}]})


async def run_turn(ports: Ports, tenant: TenantId, session: SessionId, *frames: FrameRecord) -> TurnId:
    await ports.inbox.submit(submission(tenant, session))
    lane, lease = await hold(ports, session)
    turn_id = lease.work.turn_id
    for place in (1, 2):
        step = Step(f"tool:flight_search:{place}", "tool", StepStatus.FINISHED, "hash", {"secret": "x"}, 12.5)
        await lane.record(lease, turn_id, step)
    await lane.commit(lease, commit_for(lease, frames=frames))
    return turn_id


@DURABLE
async def test_frames_are_the_newest_of_each_flow(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    await run_turn(ports, tenant, session, frame("flow_a", "frame_1"), frame("flow_b", "frame_2"))
    last = await run_turn(ports, tenant, session, frame("flow_a", "frame_3"))

    found = await ports.archive.frames(tenant, session)

    assert [entry["frame_id"] for entry in found] == ["frame_3", "frame_2"]
    assert found[0]["turn_id"] == last
    assert await ports.archive.frame(tenant, session, "frame_3") == found[0]
    with pytest.raises(NotFound):
        await ports.archive.frame(tenant, session, "frame_1")
    with pytest.raises(NotFound):
        await ports.archive.frames(OTHER, session)


@DURABLE
async def test_the_journal_tells_calls_and_no_secrets(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    first = await run_turn(ports, tenant, session)
    second = await run_turn(ports, tenant, session)

    steps = await ports.archive.journal(tenant, session)

    assert [step["turn_id"] for step in steps] == [second, second, first, first]
    assert [step["key"] for step in steps[:2]] == ["tool:flight_search:2", "tool:flight_search:1"]
    assert set(steps[0]) == {"turn_id", "key", "kind", "status", "request_hash", "duration_ms", "at"}
    assert {step["duration_ms"] for step in steps} == {12.5}
    assert await ports.archive.journal(tenant, session, turn_id=first) == steps[2:]
    assert await ports.archive.journal(tenant, session, limit=1) == steps[:1]
    with pytest.raises(NotFound):
        await ports.archive.journal(OTHER, session)


@DURABLE
async def test_feedback_is_kept_once_per_author(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    turn_id = await run_turn(ports, tenant, session)
    ada = Feedback(Rating.DOWN, "I meant Friday.", {"slots": {"date": "2026-12-04"}}, "ada")
    first = await ports.feedback.give(tenant, turn_id, ada)
    await ports.feedback.give(tenant, turn_id, Feedback(Rating.UP))
    again = await ports.feedback.give(tenant, turn_id, Feedback(Rating.UP, author="ada"))

    kept = await ports.feedback.list(tenant, session_id=session)

    assert [record.feedback for record in kept] == [Feedback(Rating.UP, author="ada"), Feedback(Rating.UP)]
    assert again.feedback_id == first.feedback_id
    assert first.feedback == ada
    assert await ports.feedback.list(OTHER) == []
    with pytest.raises(NotFound):
        await ports.feedback.give(OTHER, turn_id, ada)


async def test_turns_and_history_are_paged_back(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    turns = [await run_turn(ports, tenant, session) for _ in range(4)]

    newest = await ports.inbox.turns(tenant, session_id=session, limit=2)
    older = await ports.inbox.turns(tenant, session_id=session, before=newest[-1].seq, limit=2)
    said = await ports.sessions.history(tenant, session, before=3)

    assert [record.turn_id for record in (*newest, *older)] == turns[::-1]
    assert newest[0].accepted_at is not None
    assert newest[0].started_at is not None
    assert newest[0].accepted_at <= newest[0].started_at
    assert [line["seq"] for line in said] == [1, 1, 2, 2]


@DURABLE
async def test_what_a_turn_signalled_is_kept_with_its_commit(ports: Ports, tenant: TenantId) -> None:
    """CO-6"""
    session = await new_session(ports, tenant)
    receipt = await ports.inbox.submit(submission(tenant, session))
    before = await ports.archive.signals(tenant, receipt.turn_id)
    signals = ({"source": "nlu", "type": "prediction", "kind": "task"}, {"source": "pex", "type": "check"})
    lane, lease = await hold(ports, session)
    await lane.commit(lease, commit_for(lease, signals=signals))

    assert before == []
    assert await ports.archive.signals(tenant, receipt.turn_id) == list(signals)
    with pytest.raises(NotFound):
        await ports.archive.signals(OTHER, receipt.turn_id)
