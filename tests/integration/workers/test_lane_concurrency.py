"""Lanes on PostgreSQL with concurrent operations, stops and lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.adapters.postgres import statements as sql
from orchestrator.adapters.postgres.lanes.lane import PostgresLane
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.postgres.turns.inbox import PostgresInbox
from orchestrator.errors import LaneLost, Unavailable
from orchestrator.turns.lease import Lease
from orchestrator.turns.step import Step, StepStatus
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.contract.factories import commit_for, new_session_id, submission
from tests.integration.workers.lanes import Stage

FENCE = "AND lease_token = %(token)s AND lanes.epoch = %(epoch)s"


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(database_url))
        yield Stage(database_url, database, stack)


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Poll until a condition is true. The test's timeout is the limit."""
    while not await condition():  # the event happens in the database
        await asyncio.sleep(0.01)


async def _drain(lane: PostgresLane, session: SessionId) -> list[str]:
    """Run the session's turns like a worker after a hint. Return the texts in order."""
    seen: list[str] = []
    lease = await lane.claim(session)
    while lease is not None:
        seen.append(lease.work.input.text or "")
        committed = await lane.commit(lease, commit_for(lease))
        lease = None if committed.next is None else replace(lease, epoch=committed.epoch, work=committed.next)
    return seen


async def test_one_of_many_claims_wins(stage: Stage) -> None:
    """RT-2"""
    session = await stage.session("one")
    lanes = [await stage.lane() for _ in range(5)]
    leases = await asyncio.gather(*(lane.claim(session) for lane in lanes for _ in range(4)))
    held = [lease for lease in leases if lease is not None]
    assert len(held) == 1
    assert held[0].work.attempts == 1


async def test_one_key_at_once_is_one_turn(stage: Stage) -> None:
    """RT-5: twenty submissions with the same key."""
    session = await stage.session()
    same = submission(DEFAULT_TENANT, session, idempotency_key="k")
    receipts = await asyncio.gather(*(stage.inbox.submit(same) for _ in range(20)))
    assert len({receipt.turn_id for receipt in receipts}) == 1
    assert sum(not receipt.repeated for receipt in receipts) == 1
    record = await stage.sessions.get(DEFAULT_TENANT, session)
    assert record.pending == 1
    assert len(await stage.inbox.turns(DEFAULT_TENANT, session_id=session)) == 1


async def test_one_new_session_at_once_is_one_session(stage: Stage) -> None:
    name = new_session_id()
    wanted = submission(DEFAULT_TENANT, name, create_session=True, domain="travel")
    receipts = await asyncio.gather(*(stage.inbox.submit(wanted) for _ in range(10)))
    assert sorted(receipt.seq for receipt in receipts) == list(range(1, 11))


async def test_no_turn_is_overlooked_between_commit_and_release(stage: Stage) -> None:
    """RT-1, RT-2: hints alone are enough, although submissions and releases race; the order is kept."""
    lanes = [await stage.lane() for _ in range(3)]
    sessions = [await stage.session() for _ in range(4)]
    seen: dict[SessionId, list[str]] = {session: [] for session in sessions}

    async def submit(session: SessionId, number: int) -> None:
        await stage.inbox.submit(submission(DEFAULT_TENANT, session, str(number)))
        seen[session].extend(await _drain(lanes[number % len(lanes)], session))

    async def converse(session: SessionId) -> None:
        hints: list[asyncio.Task[None]] = []
        for number in range(40):
            hints.append(asyncio.create_task(submit(session, number)))
            if number % 3 == 0:
                await hints[-1]
        await asyncio.gather(*hints)

    await asyncio.gather(*(converse(session) for session in sessions))
    for session in sessions:
        record = await stage.sessions.get(DEFAULT_TENANT, session)
        assert (record.pending, record.epoch) == (0, 40)
        turns = await stage.inbox.turns(DEFAULT_TENANT, session_id=session)
        assert [turn.epoch for turn in turns] == [turn.seq for turn in turns]
        assert sorted(seen[session], key=int) == [str(number) for number in range(40)]


async def _overtaken(stage: Stage) -> tuple[SessionId, PostgresLane, Lease]:
    """Return a worker's lease after another worker took over and answered the turn."""
    session = await stage.session("one", "two")
    frozen, other = await stage.lane(), await stage.lane()
    lease = await frozen.claim(session)
    assert lease is not None
    await stage.expire(session)
    taken = await other.claim(session)
    assert taken is not None
    await other.commit(taken, commit_for(taken, after={"by": "the new holder"}))
    return session, frozen, lease


async def test_without_the_fence_a_stale_commit_does_harm(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RT-3: the single SQL condition makes the difference."""
    written = sql.source("commit_turn")
    assert written.count(FENCE) == 1
    session, frozen, lease = await _overtaken(stage)
    unfenced = written.replace(FENCE, "")
    monkeypatch.setattr(
        "orchestrator.adapters.postgres.lanes.commit.statement",
        lambda _name, without: sql.parse(sql.leave_out(unfenced, without)),
    )
    await frozen.commit(lease, commit_for(lease, after={"by": "the stale one"}))
    record = await stage.sessions.get(DEFAULT_TENANT, session)
    assert record.state == {"by": "the stale one"}
    history = await stage.sessions.history(DEFAULT_TENANT, session)
    assert [line["seq"] for line in history] == [1, 1, 1, 1]


async def test_a_worker_whose_connection_breaks_is_taken_over_and_comes_back(stage: Stage) -> None:
    """RT-11: immediately, under a new number, and its old work is fenced off."""
    session = await stage.session("one")
    worker = await stage.worker()
    frozen, other = PostgresLane(stage.database, worker), await stage.lane()
    lease = await frozen.claim(session)
    assert lease is not None
    old = worker.worker_id
    await stage.run("SELECT pg_terminate_backend(backend_pid) FROM workers WHERE worker_id = %s", old)

    async def freed() -> bool:
        return session in await other.sweep(grace_s=60)

    await _until(freed)
    assert await other.claim(session) is not None

    async def registered() -> bool:
        try:
            return worker.worker_id != old
        except Unavailable:
            return False

    await _until(registered)
    with pytest.raises(LaneLost):
        await frozen.commit(lease, commit_for(lease))
    assert await stage.run("SELECT 1 FROM workers WHERE worker_id = %s", old) == []


async def test_a_lease_that_nobody_took_survives_the_broken_connection(stage: Stage) -> None:
    session = await stage.session("one")
    worker, other = await stage.worker(), await stage.lane()
    lane = PostgresLane(stage.database, worker)
    lease = await lane.claim(session)
    assert lease is not None
    old = worker.worker_id
    await stage.run("SELECT pg_terminate_backend(backend_pid) FROM workers WHERE worker_id = %s", old)

    async def renewed() -> bool:
        try:
            await lane.renew()
            number = worker.worker_id
        except Unavailable:
            return False
        return number != old

    await _until(renewed)
    await other.sweep(grace_s=60)
    assert await other.claim(session) is None
    assert (await lane.commit(lease, commit_for(lease))).epoch == 1


async def test_a_claim_that_the_server_lost_lets_nothing_be_written(stage: Stage) -> None:
    """RT-3: claims are not flushed to disk, so a crash may take a claim from its worker."""
    session = await stage.session("one")
    first, second = await stage.lane(), await stage.lane()
    [before] = await stage.run("SELECT lease_token FROM lanes WHERE session_id = %s", session)
    lost = await first.claim(session)
    assert lost is not None
    await stage.run(
        "UPDATE lanes SET lease_token = %s, lease_owner = NULL, lease_until = NULL WHERE session_id = %s",
        *before,
        session,
    )
    await stage.run("UPDATE turns SET status = 'queued', attempts = 0 WHERE session_id = %s", session)
    held = await second.claim(session)
    assert held is not None
    step = Step("tool:flight_book:1", "tool", StepStatus.STARTED, "")
    with pytest.raises(LaneLost):
        await first.record(lost, lost.work.turn_id, step)
    with pytest.raises(LaneLost):
        await first.commit(lost, commit_for(lost))
    await second.commit(held, commit_for(held))


@pytest.mark.parametrize("sent", [1, 2])
async def test_what_was_sent_meanwhile_is_taken_up_by_the_holder(stage: Stage, sent: int) -> None:
    """RT-2: the commit finds turns that arrived while no other turn was waiting."""
    session = await stage.session("one")
    lane = await stage.lane()
    lease = await lane.claim(session)
    assert lease is not None
    later = [f"later {number}" for number in range(sent)]
    for text in later:
        await stage.inbox.submit(submission(DEFAULT_TENANT, session, text))
    committed = await lane.commit(lease, commit_for(lease))
    for text in later:
        assert committed.next is not None
        assert committed.next.input.text == text
        lease = replace(lease, epoch=committed.epoch, work=committed.next)
        committed = await lane.commit(lease, commit_for(lease))
    assert committed.next is None
    assert (await stage.sessions.get(DEFAULT_TENANT, session)).pending == 0


class LosingDatabase(Database):
    """A database that loses the responses of some executed statements."""

    lose = 0

    async def fetch_one(self, query: Any, arguments: Any) -> Any:
        row = await super().fetch_one(query, arguments)
        if self.lose and "history AS" in query.text:
            self.lose -= 1
            raise Unavailable("the connection was lost")
        return row


async def test_a_commit_whose_answer_was_lost_is_found(stage: Stage) -> None:
    """RT-17: it is not written twice, and the next turn is handed over with one attempt."""
    session = await stage.session("one", "two")
    async with LosingDatabase(stage.url) as database:
        lane = PostgresLane(database, await stage.worker())
        lease = await lane.claim(session)
        assert lease is not None
        database.lose = 1
        committed = await lane.commit(lease, commit_for(lease))
        assert committed.epoch == 1
        assert [event.number for event in committed.events] == [3, 4]
        assert committed.next is not None
        assert (committed.next.input.text, committed.next.attempts) == ("two", 1)
        lease = replace(lease, epoch=committed.epoch, work=committed.next)
        database.lose = 1
        committed = await lane.commit(lease, commit_for(lease))
        assert (committed.epoch, committed.next) == (2, None)
    assert len(await stage.sessions.history(DEFAULT_TENANT, session)) == 4


async def test_the_search_for_the_next_turn_does_not_start_further_back_for_ever(stage: Stage) -> None:
    """RT-19: a canceled turn leaves no gap in a session that is never idle."""
    session = await stage.session(*"abcdef")
    third = (await stage.inbox.turns(DEFAULT_TENANT, session_id=session))[3]
    await stage.inbox.cancel(DEFAULT_TENANT, third.turn_id)
    lane = await stage.lane()
    lease = await lane.claim(session)
    for _ in range(4):
        assert lease is not None
        committed = await lane.commit(lease, commit_for(lease))
        assert committed.next is not None
        lease = replace(lease, epoch=committed.epoch, work=committed.next)
    assert lease is not None
    assert lease.work.input.text == "f"
    done = await stage.run("SELECT done_seq, pending FROM lanes WHERE session_id = %s", session)
    assert done == [(5, 1)]


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    """RT-18: one clear error."""
    async with Database("postgresql://nobody@127.0.0.1:1/none", timeout_s=0.2) as database:
        with pytest.raises(Unavailable):
            await PostgresInbox(database).submit(submission(DEFAULT_TENANT, "s"))
        with pytest.raises(Unavailable):
            await PostgresSessions(database).get(DEFAULT_TENANT, SessionId("s"))


async def test_the_sweep_names_a_backlog_bit_by_bit(stage: Stage) -> None:
    """RT-19: each sweep returns the oldest, and the next sweeps the rest."""
    sessions = [await stage.session("one") for _ in range(7)]
    await stage.run(
        "UPDATE lanes SET ready_at = ready_at - interval '1 minute', check_at = check_at - interval '1 minute'"
    )
    lane = await stage.lane()
    await lane.sweep(grace_s=3600)  # leases of other tests' dead workers
    named: list[SessionId] = []
    while part := await lane.sweep(grace_s=30, limit=3):
        assert len(part) <= 3
        named.extend(part)
    assert len(named) == len(set(named))
    assert set(sessions) <= set(named)


async def test_a_sweep_of_runs_leaves_the_lanes_of_the_dead_to_be_offered(stage: Stage) -> None:
    """RT-11: the sweep that frees a lane returns its session immediately, for any order of sweeps."""
    session = await stage.session("one")
    dying = await stage.worker()
    assert await PostgresLane(stage.database, dying).claim(session) is not None
    other = await stage.lane()
    number = dying.worker_id
    await dying.__aexit__(None, None, None)
    held = (
        "SELECT 1 FROM workers JOIN pg_stat_activity AS connection ON connection.pid = workers.backend_pid"
        " AND connection.backend_start = workers.backend_start WHERE worker_id = %s"
    )

    async def gone() -> bool:
        return await stage.run(held, number) == []

    await _until(gone)
    await PostgresRunWork(stage.database, other.worker).sweep()

    assert session in await other.sweep(grace_s=60)


async def test_a_canceled_turn_is_worded_for_its_domain(stage: Stage) -> None:
    """RT-6, RS-3"""
    inbox = PostgresInbox(stage.database, word=lambda domain, told: f"{domain}: {told.code}")
    session = await stage.session()
    waiting = await inbox.submit(submission(DEFAULT_TENANT, session))

    ended = await inbox.cancel(DEFAULT_TENANT, waiting.turn_id)

    assert ended.result is not None
    assert ended.result["reply"] == "travel: turn_canceled"
