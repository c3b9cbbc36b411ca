"""Real Celery workers on real stores: order, exactly once, idempotency, lost hints (RT-1 … RT-7)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from orchestrator.bootstrap import open_lane
from orchestrator.turns.turn import TurnRecord, TurnStatus
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, TurnId
from tests.integration.chaos.checker import check, read_history
from tests.integration.chaos.fleet import Fleet, fleet, wait_until
from tests.integration.chaos.processes.counting import CountingAgent
from tests.integration.chaos.submitting import all_finished, submitter

LATE = "tests.integration.chaos.processes.late_imports"
SETTINGS = {"PARLEY_LEASE_TTL_S": "3", "PARLEY_RUNNER_LINGER_S": "1", "PARLEY_SHUTDOWN_GRACE_S": "0.3"}


@pytest.fixture
def crew(database: str, redis_url: str, tmp_path: Path) -> Iterator[Fleet]:
    """Yield a fleet for a test that starts, stops or loses its workers."""
    with fleet(database, redis_url, tmp_path, SETTINGS) as crew:
        yield crew


@pytest.fixture(scope="module")
def pair(database: str, module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield two workers for all tests that only talk to them."""
    with fleet(database, module_redis_url, tmp_path_factory.mktemp("pair"), SETTINGS) as crew:
        crew.start(2)
        yield crew


def result_of(turn: TurnRecord) -> JsonObject:
    assert turn.result is not None
    return turn.result


async def _running(client, receipt) -> None:
    turn_id = TurnId(receipt.turn_id)
    while (await client.ports.stores.inbox.turn(DEFAULT_TENANT, turn_id)).status != TurnStatus.RUNNING:
        await asyncio.sleep(0.05)


def test_what_a_worker_needs_is_imported_before_it_is_forked(crew: Fleet) -> None:
    """Otherwise each worker would need a second of CPU time for imports."""
    (worker,) = crew.start(application=LATE)
    wait_until(lambda: "imported late:" in worker.log.read_text(), within_s=10, what="it has said so")
    (said,) = (line for line in worker.log.read_text().splitlines() if line.startswith("imported late:"))
    late = said.removeprefix("imported late:").split()
    assert len(late) < 20, late


async def test_a_turn_past_its_deadline_ends(database: str, redis_url: str, tmp_path: Path) -> None:
    """RT-7"""
    with fleet(database, redis_url, tmp_path, {**SETTINGS, "PARLEY_TURN_DEADLINE_S": "0.5"}) as crew:
        crew.start(1)
        async with submitter(database, redis_url) as client:
            long = await client.submit("late", "wait 60")
            following = await client.submit("late", "say")
            stopped, answered = await client.finished(long), await client.finished(following)

    assert stopped.status == TurnStatus.FAILED
    assert stopped.error is not None
    assert stopped.error.startswith("deadline_exceeded")
    assert (answered.status, result_of(answered)["count"]) == (TurnStatus.DONE, 1)


async def test_a_warm_shutdown_hands_running_turns_back(crew: Fleet, database: str) -> None:
    """RT-18: the interrupted attempt does not count."""
    (first,) = crew.start(1)
    async with submitter(database, crew.redis_url) as client:
        long = await client.submit("handed-back", "wait 3")
        await _running(client, long)
        first.ask_to_stop()
        crew.start(1)
        done = await client.finished(long)

    assert first.process.wait(20) == 0
    assert (done.status, done.attempts) == (TurnStatus.DONE, 1)


async def test_a_turn_that_ends_its_workers_is_set_aside(crew: Fleet, database: str) -> None:
    """RT-6, RT-11, RT-26: it crashes two workers, and then its own process."""
    crew.start(3)
    async with submitter(database, crew.redis_url) as client:
        deadly = await client.submit("deadly", "exit")
        following = await client.submit("deadly", "say")
        set_aside, answered = await client.finished(deadly), await client.finished(following)

    assert (set_aside.status, set_aside.attempts) == (TurnStatus.QUARANTINED, 1)
    assert (answered.status, result_of(answered)["count"]) == (TurnStatus.DONE, 1)
    assert sum(worker.process.poll() is None for worker in crew.workers) == 1


async def test_a_late_renewal_does_not_lease_a_released_lane(database: str, redis_url: str) -> None:
    """RT-2: a renewal that began before a commit and runs after it must not lease the lane."""
    async with submitter(database, redis_url) as client, open_lane(client.ports) as lane:
        await client.submit("released", "one", hint=False)
        lease = await lane.claim(SessionId("released"))
        assert lease is not None
        held_before = dict(lane._held._held)
        await lane.commit(lease, await CountingAgent(client.ports).run_turn(lease, lease.work, None))  # type: ignore[arg-type]  # it keeps none
        lane._held._held.update(held_before)  # the outdated data of a pending renewal
        await lane.renew()
        await client.submit("released", "two", hint=False)

        async with open_lane(client.ports) as other:
            taken = await other.claim(SessionId("released"))
            assert taken is not None, "the lane is leased and nobody runs it"
            await other.abandon(taken)


# Two workers for all of these. They come last, because they would help the workers above.


@pytest.mark.parametrize("sessions", [20, pytest.param(200, marks=pytest.mark.slow)])
async def test_two_workers_answer_every_turn_once_and_in_order(
    pair: Fleet, database: str, sessions: int
) -> None:
    """RT-1, RT-2: sessions of 10 turns, submitted at once."""
    async with submitter(database, pair.redis_url) as client:
        await client.submit_all([f"many-{sessions}-{n}" for n in range(sessions)], 10, lambda _: "say")
        await all_finished(database, within_s=60)

        history = read_history(database, client.accepted)

    assert len(history.accepted) == sessions * 10
    statuses = Counter(turn.status for turn in history.turns if turn.turn_id in client.accepted)
    assert statuses == {"done": sessions * 10}
    assert check(history) == []


async def test_work_whose_hints_were_lost_is_found(pair: Fleet, database: str) -> None:
    """RT-1, RT-17: missing hints, and a Redis that was emptied in between."""
    async with submitter(database, pair.redis_url) as client:
        await client.submit_all([f"quiet-{n}" for n in range(8)], 3, lambda _: "say", hint=False)
        await client.submit_all([f"flushed-{n}" for n in range(8)], 5, lambda _: "wait 0.05")
        with redis.Redis.from_url(pair.redis_url) as store:
            store.flushdb()
        await all_finished(database, within_s=30)

        assert check(read_history(database, client.accepted)) == []


async def test_a_poisonous_turn_is_set_aside_and_the_lane_goes_on(pair: Fleet, database: str) -> None:
    """RT-6"""
    async with submitter(database, pair.redis_url) as client:
        await client.submit("poisoned", "one")
        poison = await client.submit("poisoned", "fail")
        last = await client.submit("poisoned", "two")
        answered = await client.finished(last)
        set_aside = await client.finished(poison)

    assert (answered.status, result_of(answered)["count"]) == (TurnStatus.DONE, 2)
    assert (set_aside.status, set_aside.attempts) == (TurnStatus.QUARANTINED, 3)
    assert set_aside.error is not None
    assert "told to fail" in set_aside.error
    assert result_of(set_aside)["reply"]


async def test_a_running_turn_can_be_cancelled(pair: Fleet, database: str) -> None:
    """RT-7"""
    async with submitter(database, pair.redis_url) as client:
        long = await client.submit("cancelled", "wait 60")
        following = await client.submit("cancelled", "say")
        await _running(client, long)
        await client.ports.stores.inbox.cancel(DEFAULT_TENANT, long.turn_id)
        stopped, answered = await client.finished(long), await client.finished(following)

    assert stopped.status == TurnStatus.CANCELLED
    assert result_of(stopped)["reply"]
    assert (answered.status, result_of(answered)["count"]) == (TurnStatus.DONE, 1)


async def test_an_effect_is_had_once(pair: Fleet, database: str) -> None:
    """RT-8"""
    async with submitter(database, pair.redis_url) as client:
        done = await client.finished(await client.submit("effective", "effect"))
        failed = await client.finished(await client.submit("effective", "effect fail"))
        history = read_history(database, client.accepted)

    assert result_of(done)["reply"] == "1 had effect"
    assert (failed.status, failed.attempts) == (TurnStatus.QUARANTINED, 3)
    assert history.effects == {done.turn_id: 1, failed.turn_id: 1}
