"""Crashes do not count as failures of concurrent turns. Only a turn that crashed alone is quarantined (RT-26)."""

from __future__ import annotations

from contextlib import AsyncExitStack

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.turns.lease import Lease
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import SessionId, TenantId
from tests.contract.conftest import DURABLE, Ports, hold, new_session, postgres_ports
from tests.contract.factories import claim, commit_for, submission


async def _submit(ports: Ports, tenant: TenantId, *texts: str) -> SessionId:
    session = await new_session(ports, tenant)
    for text in texts:
        await ports.inbox.submit(submission(tenant, session, text))
    return session


async def _crash(ports: Ports, session: SessionId, *, crashes_below: int | None = 2) -> Lease:
    """Claim the session's turn in a process that ends immediately."""
    lane, lease = await hold(ports, session, crashes_below=crashes_below)
    await ports.kill(lane)
    await (await ports.make_lane()).sweep(grace_s=60)
    return lease


@DURABLE
async def test_a_crash_costs_no_attempt(ports: Ports, tenant: TenantId) -> None:
    session = await _submit(ports, tenant, "beside the poison")
    crashed = await _crash(ports, session)

    lease = await claim(await ports.make_lane(max_attempts=1), session)

    assert (lease.work.turn_id, lease.work.attempts) == (crashed.work.turn_id, 1)


@DURABLE
async def test_after_a_second_crash_a_turn_is_run_alone(ports: Ports, tenant: TenantId) -> None:
    session = await _submit(ports, tenant, "beside the poison", "next")
    for _ in range(2):
        await _crash(ports, session)
    crowded, alone = await ports.make_lane(), await ports.make_lane(crashes_below=None)
    assert await crowded.claim(session) is None

    lease = await claim(alone, session)
    assert lease.work.input.text == "beside the poison"
    committed = await alone.commit(lease, commit_for(lease))

    assert committed.next is not None
    assert committed.next.input.text == "next"


@DURABLE
async def test_suspects_run_beside_their_like_before_they_run_alone(ports: Ports, tenant: TenantId) -> None:
    session = await _submit(ports, tenant, "beside the poison, three times")
    for _ in range(2):
        await _crash(ports, session)
    await _crash(ports, session, crashes_below=3)
    beside_others, alone = await ports.make_lane(crashes_below=3), await ports.make_lane(crashes_below=None)

    assert await beside_others.claim(session) is None
    lease = await claim(alone, session)

    assert (lease.work.input.text, lease.work.attempts) == ("beside the poison, three times", 1)


@DURABLE
async def test_a_suspect_whose_worker_ends_before_it_is_run_is_found_at_once(
    ports: Ports, tenant: TenantId
) -> None:
    session = await _submit(ports, tenant, "beside the poison")
    for _ in range(2):
        await _crash(ports, session)
    left = await ports.make_lane()
    assert await left.claim(session) is None  # the lane is reserved for a process for suspected turns

    await ports.kill(left)

    assert await (await ports.make_lane()).sweep(grace_s=60) == [session]


async def test_many_crashes_wait_for_no_connection_that_others_use_for_long(
    database_url: str, tenant: TenantId
) -> None:
    """One kill interrupts many turns. Suspected turns, and the journals of others, use the short path."""
    migrate(database_url)
    suspected: list[tuple[SessionId, int]] = []
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(database_url, reading_size=1, timeout_s=20))
        ports = postgres_ports(database_url, database, stack)
        once, twice = await _submit(ports, tenant, "a crash"), await _submit(ports, tenant, "two crashes")
        await _crash(ports, once)
        for _ in range(2):
            await _crash(ports, twice)
        lane = await ports.make_lane(suspected=lambda *found: suspected.append(found))

        async with database.transaction():
            lease, left = await claim(lane, once), await lane.claim(twice)

    assert (lease.work.input.text, left) == ("a crash", None)
    assert suspected == [(twice, 2)]


@DURABLE
async def test_what_crashed_alone_is_set_aside(ports: Ports, tenant: TenantId) -> None:
    session = await _submit(ports, tenant, "poison", "next")
    for _ in range(2):
        await _crash(ports, session)
    crashed = await _crash(ports, session, crashes_below=None)

    lease = await claim(await ports.make_lane(), session)

    assert lease.work.input.text == "next"
    poison = await ports.inbox.turn(tenant, crashed.work.turn_id)
    assert poison.status is TurnStatus.QUARANTINED
    assert poison.error == "the worker crashed 3 times while running this turn"
