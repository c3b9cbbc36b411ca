"""Contract of sessions: create, list, close, history, earlier states, rollback, forks (ST-2, ST-4, RT-22)."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from orchestrator.errors import LaneLost, NotFound, Refused, SessionBusy
from orchestrator.ports.lane import Lane
from orchestrator.turns.effect import LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Lease
from orchestrator.turns.step import StepStatus
from orchestrator.turns.turn import IfBusy, SessionRecord, TurnStatus
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, UserId, new_id
from tests.contract.conftest import Ports, hold, new_session
from tests.contract.factories import claim, commit_for, new_session_id, submission
from tests.contract.test_effects import effect_of, entry_of, write

STATES: list[JsonObject] = [
    {"messages": ["hi"], "slots": {"city": "Oslo", "day": None}},
    {"messages": ["hi", "more"], "slots": {"city": "Rome", "day": None}, "flag": True},
    {"messages": ["more"], "slots": {"day": None}, "flag": None},
    {"messages": ["more", {"role": "user"}], "slots": {}},
]


async def write_effect(lane: Lane, lease: Lease, status: LedgerStatus = LedgerStatus.DONE) -> LedgerEntry:
    """Write a ledger entry that differs from epoch to epoch."""
    number = str(lease.epoch)
    entry = entry_of(lease, fingerprint=number, arguments={"number": number}, status=status)
    await write(lane, lease, StepStatus.STARTED, entry)
    return entry


async def _lived(ports: Ports, tenant: TenantId) -> SessionId:
    """Create a session whose states were `STATES`, one per epoch."""
    session = await new_session(ports, tenant)
    lane = await ports.make_lane()
    before: JsonObject = {}
    for number, state in enumerate(STATES):
        await ports.inbox.submit(submission(tenant, session, f"turn {number + 1}"))
        lease = await claim(lane, session)
        await lane.commit(lease, commit_for(lease, before=before, after=state, snapshot=number == 2))
        before = state
    return session


async def test_a_state_that_changes_little_is_whole_for_whoever_takes_the_session_over(
    ports: Ports, tenant: TenantId
) -> None:
    """ST-2: even if most commits wrote only a diff."""
    session = await new_session(ports, tenant)
    lanes = [await ports.make_lane(), await ports.make_lane()]
    state: JsonObject = {}
    for number in range(25):
        await ports.inbox.submit(submission(tenant, session, f"turn {number}"))
        lane = lanes[number // 4 % 2 if number < 16 else number % 2]
        lease = await claim(lane, session)
        assert orjson.loads(lease.present_state or b"{}") == state
        before, state = state, {"told": "words " * 100, "turn": number, "list": [*range(number, number + 9)]}
        await lane.commit(lease, commit_for(lease, before=before, after=state))
        assert (await ports.sessions.get(tenant, session)).state == state
    await ports.sessions.rollback(tenant, session, Epoch(3))
    await ports.inbox.submit(submission(tenant, session, "go on"))
    lease = await claim(lanes[0], session)
    assert orjson.loads(lease.present_state or b"")["turn"] == 2


async def test_facts_are_kept(ports: Ports, tenant: TenantId) -> None:
    made = await ports.sessions.create(tenant, "travel", user_id=UserId("ada"), if_busy=IfBusy.UNDERSTAND)
    again = await ports.sessions.create(tenant, "travel", session_id=made.session_id)
    assert again == made
    assert (made.user_id, made.if_busy, made.epoch, made.pending, made.closed) == (
        *("ada", IfBusy.UNDERSTAND),
        *(0, 0, False),
    )
    assert await ports.sessions.get(tenant, made.session_id) == made


async def test_an_identifier_belongs_to_one_tenant_and_domain(ports: Ports, tenant: TenantId) -> None:
    """RT-22"""
    name = new_session_id()
    await ports.sessions.create(tenant, "travel", session_id=name)
    with pytest.raises(Refused):
        await ports.sessions.create(TenantId("other"), "travel", session_id=name)
    with pytest.raises(Refused):
        await ports.sessions.create(tenant, "analytics", session_id=name)
    for call in (ports.sessions.get, ports.sessions.close, ports.sessions.history):
        with pytest.raises(NotFound):
            await call(TenantId("other"), name)


async def test_the_latest_activity_comes_first(ports: Ports, tenant: TenantId) -> None:
    names = []
    for _ in range(3):
        names.append(await new_session(ports, tenant))
        await ports.elapse(1)
    await ports.inbox.submit(submission(tenant, names[0]))
    listed = [record.session_id for record in await ports.sessions.list(tenant)]
    assert listed == [names[0], names[2], names[1]]
    assert len(await ports.sessions.list(tenant, limit=2)) == 2


async def test_closing_is_kept_and_may_be_repeated(ports: Ports, tenant: TenantId) -> None:
    session = await new_session(ports, tenant)
    assert (await ports.sessions.close(tenant, session)).closed
    assert (await ports.sessions.close(tenant, session)).closed
    assert (await ports.sessions.get(tenant, session)).closed


async def test_history_is_in_order_and_bounded(ports: Ports, tenant: TenantId) -> None:
    session = await _lived(ports, tenant)
    history = await ports.sessions.history(tenant, session)
    (listed,) = await ports.sessions.list(tenant)
    assert listed.title == (await ports.sessions.get(tenant, session)).title == "turn 1"
    assert [line["content"] for line in history[:3]] == ["turn 1", "you said turn 1", "turn 2"]
    assert [line["seq"] for line in history] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert set(history[0]) == {"turn_id", "seq", "role", "form", "content", "at"}
    assert await ports.sessions.history(tenant, session, limit=3) == history[-3:]


async def test_every_earlier_state_can_be_rebuilt(ports: Ports, tenant: TenantId) -> None:
    """ST-2: from the nearest snapshot and later diffs."""
    session = await _lived(ports, tenant)
    for number, state in enumerate(STATES):
        assert await ports.sessions.state_at(tenant, session, Epoch(number + 1)) == state
    for epoch in (0, len(STATES) + 1):
        with pytest.raises(NotFound):
            await ports.sessions.state_at(tenant, session, Epoch(epoch))
    with pytest.raises(NotFound):
        await ports.sessions.state_at(TenantId("other"), session, Epoch(1))


async def test_stepping_back_is_a_new_epoch(ports: Ports, tenant: TenantId) -> None:
    """ST-2: history is kept, the rollback is a revision itself, and the next turn starts from it."""
    session = await _lived(ports, tenant)
    record = await ports.sessions.rollback(tenant, session, Epoch(2))
    assert (record.epoch, record.state) == (5, STATES[1])
    assert await ports.sessions.state_at(tenant, session, Epoch(5)) == STATES[1]
    assert await ports.sessions.state_at(tenant, session, Epoch(4)) == STATES[3]
    assert len(await ports.sessions.history(tenant, session)) == 8
    await ports.inbox.submit(submission(tenant, session, "on"))
    with pytest.raises(SessionBusy):
        await ports.sessions.rollback(tenant, session, Epoch(1))
    lease = await claim(await ports.make_lane(), session)
    assert lease.epoch == 5
    assert orjson.loads(lease.present_state or b"") == STATES[1]
    with pytest.raises(NotFound):
        await ports.sessions.rollback(TenantId("other"), session, Epoch(1))


async def test_a_lane_is_taken_from_its_holder(ports: Ports, tenant: TenantId) -> None:
    """RT-3, RT-35: at the epoch that the operator saw. Later writes of the worker are discarded."""
    session = await _lived(ports, tenant)
    signed: JsonObject = {"by": "ann", "why": "It hangs."}
    with pytest.raises(Refused, match="No worker holds"):
        await ports.sessions.release_lane(tenant, session, Epoch(4), signed)
    turn_id = (await ports.inbox.submit(submission(tenant, session, "on"))).turn_id
    held, other = await ports.make_lane(), await ports.make_lane()
    lease = await claim(held, session)
    with pytest.raises(Refused, match="has changed"):
        await ports.sessions.release_lane(tenant, session, Epoch(3), signed)
    with pytest.raises(NotFound):
        await ports.sessions.release_lane(TenantId("other"), session, Epoch(4), signed)

    await ports.sessions.release_lane(tenant, session, Epoch(4), signed)

    assert (await ports.inbox.turn(tenant, turn_id)).status is TurnStatus.QUEUED
    taken = await claim(other, session)
    assert (taken.work.turn_id, taken.work.attempts) == (turn_id, 1)
    with pytest.raises(LaneLost):
        await held.commit(lease, commit_for(lease))
    await other.commit(taken, commit_for(taken))
    (event,) = [one for one in await ports.log.read(tenant, session) if one.type == "repaired"]
    assert event.payload == signed


async def test_a_users_new_session_has_the_place_of_the_last_one(ports: Ports, tenant: TenantId) -> None:
    """RT-29: the time zone and locale come from the session or the user's last session, never from another user's."""
    user, other = UserId(new_id("user")), UserId(new_id("user"))
    await ports.sessions.create(tenant, "travel", user_id=user, timezone="Europe/Oslo", locale="nb-NO")
    await ports.sessions.create(tenant, "travel", user_id=user, timezone="Asia/Tokyo")

    third = await ports.sessions.create(tenant, "travel", user_id=user)
    named = await ports.sessions.create(
        tenant, "travel", user_id=user, timezone="America/Lima", locale="es-PE"
    )
    strangers = [
        await ports.sessions.create(tenant, "travel", user_id=other),
        await ports.sessions.create(tenant, "travel"),
        await ports.sessions.create(TenantId(new_id("tenant")), "travel", user_id=user),
    ]

    assert (third.timezone, third.locale) == ("Asia/Tokyo", "nb-NO")
    assert (named.timezone, named.locale) == ("America/Lima", "es-PE")
    assert {(one.timezone, one.locale) for one in strangers} == {(None, None)}


async def test_a_branch_goes_on_from_an_epoch(ports: Ports, tenant: TenantId) -> None:
    """ST-4: with the data of that epoch, as a new epoch. Neither session changes the other."""
    session = await _lived(ports, tenant)
    branch = await ports.sessions.branch(tenant, session, epoch=Epoch(2))

    assert (branch.parent, branch.parent_epoch, branch.epoch, branch.domain) == (session, 2, 3, "travel")
    assert branch.session_id != session
    first = (await ports.sessions.get(tenant, branch.session_id)).state
    assert first is not None
    assert first == {**STATES[1], "session": branch.session_id, "stack": [], "approvals": []}
    assert await ports.sessions.state_at(tenant, branch.session_id, Epoch(1)) == STATES[0]
    said = await ports.sessions.history(tenant, branch.session_id)
    assert said == (await ports.sessions.history(tenant, session))[:4]
    assert said[0]["seq"] == 1
    await ports.inbox.submit(submission(tenant, branch.session_id, "on"))
    lane, lease = await hold(ports, branch.session_id)
    assert (lease.epoch, lease.work.seq, orjson.loads(lease.present_state or b"")) == (3, 3, first)
    await lane.commit(lease, commit_for(lease, before=first, after={**first, "on": True}))
    assert len(await ports.sessions.history(tenant, branch.session_id)) == 6
    assert len(await ports.sessions.history(tenant, session)) == 8
    assert (await ports.sessions.get(tenant, session)).state == STATES[3]


async def test_a_branch_is_made_once(ports: Ports, tenant: TenantId) -> None:
    """ST-4: its ID makes a call repeatable after a lost response."""
    session, name = await _lived(ports, tenant), new_session_id()
    made = await ports.sessions.branch(tenant, session, branch_id=name)
    assert (made.epoch, made.parent_epoch) == (5, 4)
    again = await ports.sessions.branch(tenant, session, branch_id=name)
    assert (again.session_id, again.epoch, again.parent_epoch) == (name, 5, 4)
    for parent, epoch in ((session, Epoch(1)), (await _lived(ports, tenant), None)):
        with pytest.raises(Refused):
            await ports.sessions.branch(tenant, parent, epoch=epoch, branch_id=name)
    with pytest.raises(Refused):
        await ports.sessions.branch(tenant, session, branch_id=session)
    for wrong in (Epoch(0), Epoch(5)):
        with pytest.raises(NotFound):
            await ports.sessions.branch(tenant, session, epoch=wrong)
    other = TenantId(new_id("tenant"))
    with pytest.raises(NotFound):
        await ports.sessions.branch(other, session, epoch=Epoch(1))
    with pytest.raises(Refused):
        await ports.sessions.branch(other, await _lived(ports, other), branch_id=name)


async def test_what_waits_for_a_yes_is_open_again_in_a_branch(ports: Ports, tenant: TenantId) -> None:
    """PX-17: the fork inherits neither the parent's open questions nor its grants."""
    session = (await ports.sessions.create(tenant, "travel", user_id=UserId("ada"))).session_id
    parked = {"flow_id": "f2", "state": "Pending", "reason": "awaiting_approval", "interrupted_at": 5.0}
    step = {"flow_id": "f2", "state": "Pending", "reason": "awaiting_approval"}
    plan = {"flow_id": "f1", "state": "Pending", "reason": "interrupted", "steps": [step]}
    granted = {
        "flow_id": "f0",
        "state": "Pending",
        "reason": "interrupted",
        "consent": {"candidate": None, "grant": {"approval_id": "a", "call": "0"}},
        "notes": {"kept": 1},
    }
    state: JsonObject = {
        "session": session,
        "stack": [granted, plan, parked],
        "approvals": [{"approval_id": "a"}],
    }
    await ports.inbox.submit(submission(tenant, session))
    lane, lease = await hold(ports, session)
    await lane.commit(lease, commit_for(lease, after=state))

    branch = await ports.sessions.branch(tenant, session)

    assert branch.user_id == "ada"
    found = (await ports.sessions.get(tenant, branch.session_id)).state
    assert found is not None
    assert (found["session"], found["approvals"]) == (branch.session_id, [])
    assert [(flow["state"], flow["reason"]) for flow in found["stack"]] == [
        *(("Pending", "interrupted"), ("Pending", "interrupted"), ("Active", None))
    ]
    assert found["stack"][0]["consent"] == {"candidate": None, "grant": None}
    assert found["stack"][0]["notes"] == {"kept": 1}
    assert found["stack"][1]["steps"] == [{"flow_id": "f2", "state": "Active", "reason": None}]
    assert (await ports.sessions.get(tenant, session)).state == state


async def test_a_branch_is_whole_while_its_parent_goes_on(ports: Ports, tenant: TenantId) -> None:
    """ST-4: state, history and ledger are of one epoch despite concurrent commits."""
    session = await new_session(ports, tenant)
    made = list[SessionRecord]()

    async def talk() -> None:
        lane = await ports.make_lane()
        before: JsonObject = {}
        for number in range(12):
            await ports.inbox.submit(submission(tenant, session, f"turn {number}"))
            lease = await claim(lane, session)
            await write_effect(lane, lease)
            after = {"turn": number + 1}
            await lane.commit(lease, commit_for(lease, before=before, after=after))
            before = after

    async def branch_off() -> None:
        while len(made) < 12:
            if (await ports.sessions.get(tenant, session)).epoch:
                made.append(await ports.sessions.branch(tenant, session))
            await asyncio.sleep(0)

    await asyncio.gather(talk(), branch_off())

    for branch in made:
        state = (await ports.sessions.get(tenant, branch.session_id)).state
        assert state is not None
        assert branch.parent_epoch == state["turn"]
        said = await ports.sessions.history(tenant, branch.session_id)
        assert len(said) == 2 * state["turn"]
        assert len(await ports.effects.list(tenant, branch.session_id)) == state["turn"]


async def test_a_turn_that_is_at_work_or_whose_worker_died_is_no_part_of_a_branch(
    ports: Ports, tenant: TenantId
) -> None:
    """ST-4: the fork has nothing that the unfinished turn has started."""
    session = await _lived(ports, tenant)
    lane = await ports.make_lane()
    await ports.inbox.submit(submission(tenant, session))
    lease = await claim(lane, session)
    await write_effect(lane, lease, LedgerStatus.STARTED)
    await ports.kill(lane)
    await ports.elapse(60)

    branch = (await ports.sessions.branch(tenant, session)).session_id

    assert await ports.effects.list(tenant, branch) == []
    assert len(await ports.sessions.history(tenant, branch)) == 8
    await ports.inbox.submit(submission(tenant, branch))
    other, own = await hold(ports, branch)
    found = await other.find_effect(own, effect_of("anything", number=str(lease.epoch)))
    assert found is None
    await other.commit(own, commit_for(own))
    assert (await ports.sessions.get(tenant, session)).pending == 1
