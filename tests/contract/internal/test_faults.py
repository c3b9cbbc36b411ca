"""Runs with killed workers, lost or repeated messages, and cancellations (IF-8, IF-9, IF-11)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psycopg
import pytest
import redis

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.ports.runs.records import Hint, NewRun, RunRecord, Started
from orchestrator.ports.runs.status import ENDED, RUN_TRANSITIONS, OnFailure, RunStatus, Urgency
from orchestrator.ports.tasks import START_RUN
from orchestrator.types import DEFAULT_TENANT, TenantId
from tests.celery_clients import celery_client
from tests.contract.internal.conftest import _SETTINGS, STAND_IN, OnWorkers
from tests.contract.internal.graphs import SHAPES, early_starts, make_nodes, random_shape
from tests.integration.chaos.fleet import Fleet, fleet

WITHIN_S = 40
CARRIED = ("chain", "fan_in", "diamond")
"""Shapes that are sent as one message."""
_AUDIT = """
CREATE TABLE IF NOT EXISTS audit (kind text, run_id text, position bigint, status text);
CREATE OR REPLACE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status NOT IN ('queued', 'running', 'ready', 'waiting') AND NEW.status <> OLD.status THEN
        INSERT INTO audit VALUES (TG_TABLE_NAME, NEW.run_id,
                                  coalesce((to_jsonb(NEW) ->> 'position')::bigint, -1), NEW.status);
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER note AFTER UPDATE ON internal_runs FOR EACH ROW EXECUTE FUNCTION note();
CREATE OR REPLACE TRIGGER note AFTER UPDATE ON internal_items FOR EACH ROW EXECUTE FUNCTION note();
"""


@pytest.fixture
def crew(database_url: str, broker: str, tmp_path: Path) -> Iterator[Fleet]:
    """Return a fleet without workers. A database trigger records every end."""
    migrate(database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute(_AUDIT)
    with fleet(database_url, broker, tmp_path, _SETTINGS) as crew:
        yield crew


def start(crew: Fleet, count: int) -> None:
    crew.start(count, application=STAND_IN, queues="internal,urgent", threads=16)


def recorded_twice(crew: Fleet) -> list[tuple]:
    with psycopg.connect(crew.database_url) as connection:
        query = "SELECT kind, run_id, position FROM audit GROUP BY 1, 2, 3 HAVING count(*) > 1"
        return connection.execute(query).fetchall()


def recorded(crew: Fleet, run_id: str) -> int:
    with psycopg.connect(crew.database_url) as connection:
        query = "SELECT count(*) FROM audit WHERE kind = 'internal_items' AND run_id = %s"
        row = connection.execute(query, [run_id]).fetchone()
        assert row is not None
        return row[0]


async def progress_of(on_workers: OnWorkers, run_id: str, wanted: int) -> None:
    """Wait until `wanted` items have ended."""
    async with asyncio.timeout(WITHIN_S):
        while (await on_workers.runs.get(DEFAULT_TENANT, run_id)).progress.ended < wanted:
            await asyncio.sleep(0.02)


async def all_end_in_order(on_workers: OnWorkers, nodes: tuple[NewRun, ...], started: Started) -> None:
    ended = {name: (await on_workers.chain_ended(run_id))[-1] for name, run_id in started.runs.items()}
    assert {record.status for record in ended.values()} == {RunStatus.DONE}
    assert early_starts(nodes, ended) == []


async def test_killed_workers_repeat_nothing_that_was_recorded(crew: Fleet, on_workers: OnWorkers) -> None:
    """IF-8: a run continues with its unfinished items."""
    start(crew, 2)
    inputs = tuple(range(300))
    run = on_workers.catalogue.new_run(
        "doubling", inputs=inputs, options={"concurrency": 8}, parameters={"takes_s": 0.01}
    )
    run_id = (await on_workers.start((run,))).runs["doubling"]
    for threshold in (40, 120):
        await progress_of(on_workers, run_id, threshold)
        crew.workers[-1].kill()
        await asyncio.to_thread(start, crew, 1)
    [record] = await on_workers.chain_ended(run_id)

    assert (record.status, record.closing) == (RunStatus.DONE, [2 * given for given in inputs])
    assert recorded(crew, run_id) == len(inputs)
    assert recorded_twice(crew) == []


async def test_a_graph_goes_on_when_workers_are_killed(crew: Fleet, on_workers: OnWorkers) -> None:
    """IF-9"""
    start(crew, 2)
    shape, told = random_shape(7, size=30)
    nodes = make_nodes(on_workers.catalogue, shape, **told)
    started = await on_workers.start(nodes)
    await on_workers.chain_ended(started.runs["n8"])
    crew.workers[0].kill()
    await all_end_in_order(on_workers, nodes, started)
    assert recorded_twice(crew) == []


async def test_a_chain_goes_on_when_the_worker_that_carries_its_links_is_killed(
    crew: Fleet, on_workers: OnWorkers
) -> None:
    """IF-9: the worker of a five-link message dies in the third link, and another worker runs the rest."""
    start(crew, 2)
    shape = {0: (), 1: (0,), 2: (1,), 3: (2,), 4: (3,)}
    nodes = make_nodes(on_workers.catalogue, shape, n2={"takes_s": 2.0})
    started = await on_workers.start(nodes)
    await on_workers.is_at_work(started.runs["n2"])
    holder = next(worker for worker in crew.workers if "n2.run" in worker.log.read_text())
    holder.kill()
    await all_end_in_order(on_workers, nodes, started)
    assert recorded_twice(crew) == []


async def test_lost_messages_are_replaced(crew: Fleet, on_workers: OnWorkers) -> None:
    """IF-8, IF-9: Redis is emptied while a graph and a run with many items are running."""
    start(crew, 2)
    shape, told = random_shape(11, size=20)
    graph = await on_workers.start(make_nodes(on_workers.catalogue, shape, **told))
    run = on_workers.catalogue.new_run("doubling", inputs=tuple(range(100)), parameters={"takes_s": 0.005})
    run_id = (await on_workers.start((run,))).runs["doubling"]
    await progress_of(on_workers, run_id, 10)
    with redis.Redis.from_url(crew.redis_url) as store:
        store.flushdb()

    ended = [(await on_workers.chain_ended(each))[-1] for each in (*graph.runs.values(), run_id)]
    assert {record.status for record in ended} == {RunStatus.DONE}
    assert recorded_twice(crew) == []


@pytest.mark.parametrize("fault", ["flushed", "killed"])
async def test_chains_and_chords_are_healed(
    fault: str, crew: Fleet, on_workers: OnWorkers, tmp_path: Path
) -> None:
    """IF-9: a link or a chord's body is lost because Redis is emptied or a worker dies."""
    start(crew, 2)
    may_end = tmp_path / "may-end"
    told = {f"n{number}": {"takes_s": 0.4} for number in range(4)} | {"n1": {"until": str(may_end)}}
    shapes = {name: make_nodes(on_workers.catalogue, SHAPES[name], **told) for name in CARRIED}
    started = {name: await on_workers.start(nodes) for name, nodes in shapes.items()}
    await on_workers.is_at_work(started["chain"].runs["n1"])
    if fault == "killed":
        crew.workers[0].kill()
    else:
        with redis.Redis.from_url(crew.redis_url) as store:
            store.flushdb()
    may_end.touch()

    for name, nodes in shapes.items():
        await all_end_in_order(on_workers, nodes, started[name])
    assert recorded_twice(crew) == []


@pytest.mark.parametrize("present", RunStatus)
async def test_the_store_refuses_every_other_transition(
    present: RunStatus, crew: Fleet, on_workers: OnWorkers
) -> None:
    """The database enforces the transition table for every writer."""
    started = await on_workers.runs.start((NewRun("scripted"),))
    run_id = started.runs["scripted"]
    allowed: set[RunStatus] = set()
    with psycopg.connect(crew.database_url, autocommit=True) as connection:
        for wanted in set(RunStatus) - {present}:
            connection.execute("ALTER TABLE internal_runs DISABLE TRIGGER USER")
            connection.execute("UPDATE internal_runs SET status = %s WHERE run_id = %s", (present, run_id))
            connection.execute("ALTER TABLE internal_runs ENABLE TRIGGER USER")
            with suppress(psycopg.errors.CheckViolation):
                connection.execute("UPDATE internal_runs SET status = %s WHERE run_id = %s", (wanted, run_id))
                allowed.add(wanted)
        connection.execute("DELETE FROM internal_runs WHERE run_id = %s", (run_id,))
        connection.execute("DELETE FROM audit WHERE run_id = %s", (run_id,))

    assert allowed == RUN_TRANSITIONS.get(present, frozenset())


async def test_a_run_starts_without_any_message(crew: Fleet, on_workers: OnWorkers) -> None:
    """IF-9: the reconciler finds it."""
    start(crew, 1)
    started = await on_workers.runs.start((on_workers.catalogue.new_run("scripted", inputs=("a",)),))

    [record] = await on_workers.chain_ended(started.runs["scripted"])
    assert record.status is RunStatus.DONE


async def test_doubled_messages_do_nothing_twice(crew: Fleet, on_workers: OnWorkers) -> None:
    """IF-8, IF-9"""
    start(crew, 2)
    run = on_workers.catalogue.new_run("doubling", inputs=tuple(range(20)), parameters={"takes_s": 0.01})
    started = await on_workers.start((run,))
    run_id = started.runs["doubling"]
    for _ in range(15):
        await on_workers.canvas.send((Hint(run_id, "doubling", Urgency.BACKGROUND),))
    [record] = await on_workers.chain_ended(run_id)

    assert record.status is RunStatus.DONE
    assert recorded(crew, run_id) == 20
    assert recorded_twice(crew) == []


async def test_the_same_start_is_one_run(on_workers: OnWorkers, crew: Fleet) -> None:
    """RT-4: an outbox message can be repeated."""
    run = on_workers.catalogue.new_run("scripted")
    first = await on_workers.runs.start((run,), key="outbox:1")
    second = await on_workers.runs.start((run,), key="outbox:1")

    assert (first.joined, second.joined) == (False, True)
    assert first.runs == second.runs


async def test_a_message_starts_a_flow_once(crew: Fleet, on_workers: OnWorkers) -> None:
    """IF-8: `internal_flows.start_run` is delivered twice. An invalid message affects no other run."""
    start(crew, 1)
    wanted = {"flow": "doubling", "inputs": [4, 5], "tenant_id": "sender"}
    with celery_client(crew.redis_url) as sender:
        send = partial(sender.send_task, START_RUN, queue="internal", ignore_result=True)
        send(kwargs={"flow": "nonsense"}, task_id="message-0")
        for _ in range(2):
            send(kwargs=wanted, task_id="message-1")
        send(kwargs={**wanted, "inputs": [6]}, task_id="message-2")
    found: list[RunRecord] = []
    async with asyncio.timeout(WITHIN_S):
        while len(found) < 2 or not all(run.status in ENDED for run in found):
            found = await on_workers.runs.list(TenantId("sender"))
            await asyncio.sleep(0.02)

    assert sorted(run.closing for run in found) == [[8, 10], [12]]


async def test_one_run_of_a_flow_per_session_at_a_time(on_workers: OnWorkers, crew: Fleet) -> None:
    """IF-11: a second trigger joins the active run. After its end, a new one can start."""
    run = on_workers.catalogue.new_run("scripted", flight="session-1")
    first = await on_workers.runs.start((run,))
    second = await on_workers.runs.start((run,))
    assert (second.joined, second.runs, second.hints) == (True, first.runs, ())

    await on_workers.runs.cancel(DEFAULT_TENANT, first.runs["scripted"])
    third = await on_workers.runs.start((run,))

    assert not third.joined
    assert third.runs != first.runs
    await on_workers.runs.cancel(DEFAULT_TENANT, third.runs["scripted"])


async def test_a_cancelled_run_stops_and_blocks_its_successors(crew: Fleet, on_workers: OnWorkers) -> None:
    """IF-16: later writes of its worker are fenced off."""
    start(crew, 1)
    run = on_workers.catalogue.new_run("doubling", inputs=tuple(range(5)), parameters={"takes_s": 0.4})
    after = on_workers.catalogue.new_run("n0", depends_on=("doubling",))
    started = await on_workers.start((run, after))
    run_id = started.runs["doubling"]
    await progress_of(on_workers, run_id, 1)
    cancelled = await on_workers.runs.cancel(DEFAULT_TENANT, run_id)
    follower = await on_workers.runs.get(DEFAULT_TENANT, started.runs["n0"])

    assert cancelled.status is RunStatus.CANCELLED
    assert (follower.status, follower.reason) == (RunStatus.BLOCKED, "doubling is cancelled")
    probe = on_workers.catalogue.new_run("scripted", inputs=("a",))
    await on_workers.run(probe)
    items = await on_workers.items(run_id)
    assert any(item.status != "done" for item in items)
    assert (await on_workers.runs.get(DEFAULT_TENANT, run_id)).status is RunStatus.CANCELLED


async def test_a_cancelled_run_releases_its_successors_if_it_says_so(
    crew: Fleet, on_workers: OnWorkers
) -> None:
    """IF-9, IF-11: the successors run, and the flight keys are free afterwards."""
    started = await on_workers.runs.start(
        (
            NewRun("doubling", inputs=(1,), on_failure=OnFailure.RELEASE, flight_key="released:doubling"),
            NewRun("scripted", depends_on=("doubling",), flight_key="released:scripted"),
        )
    )
    cancelled = await on_workers.runs.cancel(DEFAULT_TENANT, started.runs["doubling"])
    follower = await on_workers.runs.get(DEFAULT_TENANT, started.runs["scripted"])

    assert cancelled.status is RunStatus.CANCELLED
    assert follower.status in {RunStatus.READY, RunStatus.RUNNING, RunStatus.DONE}
    start(crew, 1)
    [ended] = await on_workers.chain_ended(started.runs["scripted"])
    assert ended.status is RunStatus.DONE
    again = await on_workers.runs.start((NewRun("scripted", flight_key="released:scripted"),))
    assert not again.joined
    await on_workers.runs.cancel(DEFAULT_TENANT, again.runs["scripted"])


async def test_a_frozen_worker_is_fenced(crew: Fleet, on_workers: OnWorkers) -> None:
    """IF-8: another worker takes over its items. After waking up, it writes nothing."""
    start(crew, 1)
    run = on_workers.catalogue.new_run("doubling", inputs=tuple(range(8)), parameters={"takes_s": 0.3})
    run_id = (await on_workers.start((run,))).runs["doubling"]
    await progress_of(on_workers, run_id, 1)
    crew.workers[0].freeze()
    await asyncio.to_thread(start, crew, 1)
    [record] = await on_workers.chain_ended(run_id)
    crew.workers[0].thaw()
    await on_workers.run(on_workers.catalogue.new_run("scripted", inputs=("a",)))

    assert record.closing == [2 * given for given in range(8)]
    assert recorded(crew, run_id) == 8
    assert recorded_twice(crew) == []


@pytest.mark.slow
async def test_ten_thousand_items_are_continued_after_kills(crew: Fleet, on_workers: OnWorkers) -> None:
    """IF-8: progress never decreases, and nothing is recorded twice."""
    start(crew, 2)
    inputs = tuple(range(10_000))
    run = on_workers.catalogue.new_run("doubling", inputs=inputs, options={"concurrency": 8})
    run_id = (await on_workers.start((run,))).runs["doubling"]
    seen = [0]
    for threshold in (2_000, 5_000):
        while seen[-1] < threshold:
            seen.append((await on_workers.runs.get(DEFAULT_TENANT, run_id)).progress.ended)
        crew.workers[-1].kill()
        await asyncio.to_thread(start, crew, 1)
    [record] = await on_workers.chain_ended(run_id, within_s=300)

    assert seen == sorted(seen)
    assert record.progress.done == len(inputs)
    assert record.closing == [2 * given for given in inputs]
    assert recorded(crew, run_id) == len(inputs)
    assert recorded_twice(crew) == []
