"""Graphs, in process and on workers (IF-9, IF-10)."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from celery import Celery

from internal_flows.catalogue import sort_out
from internal_flows.stages import InternalFlow
from orchestrator.adapters.redis.address import for_celery
from orchestrator.ports.runs.status import RunStatus
from tests.contract.internal.conftest import OnWorkers, Runner
from tests.contract.internal.graphs import SHAPES, early_starts, make_nodes, random_shape
from tests.integration.chaos.fleet import Fleet, wait_until


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
async def test_every_node_runs_once_after_what_it_depends_on(runner: Runner, shape) -> None:
    """IF-9"""
    nodes = make_nodes(runner.catalogue, shape, n0={"takes_s": 0.05})
    ended = await runner.run_graph(nodes)

    assert {record.status for record in ended.values()} == {RunStatus.DONE}
    assert len(ended) == len(shape)
    assert early_starts(nodes, ended) == []


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 130))]
)
async def test_random_graphs(runner: Runner, seed: int) -> None:
    """IF-9"""
    shape, told = random_shape(seed, size=10 + seed % 31)
    nodes = make_nodes(runner.catalogue, shape, **told)
    ended = await runner.run_graph(nodes)

    assert {record.status for record in ended.values()} == {RunStatus.DONE}
    assert early_starts(nodes, ended) == []


async def test_what_depends_on_a_failed_node_is_blocked_and_the_others_go_on(runner: Runner) -> None:
    """IF-9: n0 → n1 → n2, n0 → n3 and n4 → n3; n1 fails."""
    shape = {0: (), 1: (0,), 2: (1,), 4: (), 3: (0, 4), 5: (2,)}
    ended = await runner.run_graph(make_nodes(runner.catalogue, shape, n1={"fail": True}))

    assert {name: record.status.value for name, record in ended.items()} == {
        "n0": "done",
        "n1": "failed",
        "n2": "blocked",
        "n3": "done",
        "n4": "done",
        "n5": "blocked",
    }
    assert (ended["n2"].reason, ended["n5"].reason) == ("n1 is failed", "n2 is blocked")


async def test_what_was_blocked_runs_once_its_causes_are_redone_by_hand(
    runner: Runner, tmp_path: Path
) -> None:
    """IF-5, IF-9: n0 → n1 → n3, n2 → n3, n2 → n4. n1 and n2 fail, and are rerun one after the other."""
    shape = {0: (), 1: (0,), 2: (), 3: (1, 2), 4: (2,)}
    needs = {f"n{number}": {"needs": str(tmp_path / f"{number}")} for number in (1, 2)}
    ended = await runner.run_graph(make_nodes(runner.catalogue, shape, **needs))
    assert {name: record.status.value for name, record in ended.items()} == {
        "n0": "done",
        "n1": "failed",
        "n2": "failed",
        "n3": "blocked",
        "n4": "blocked",
    }

    [again] = await runner.redo(ended["n2"].run_id)
    assert again.status is RunStatus.FAILED
    assert (await runner.last(ended["n4"].chain_id)).status is RunStatus.BLOCKED
    (tmp_path / "1").touch()
    [again] = await runner.redo(ended["n1"].run_id)
    assert again.status is RunStatus.DONE
    assert (await runner.last(ended["n3"].chain_id)).status is RunStatus.BLOCKED
    (tmp_path / "2").touch()
    await runner.redo(ended["n2"].run_id)
    latest = {name: await runner.last(record.chain_id) for name, record in ended.items()}

    assert {record.status for record in latest.values()} == {RunStatus.DONE}
    for name in ("n3", "n4"):
        assert latest[name].closing["began"] >= latest["n2"].closing["ended"]


async def test_a_policy_may_release_what_depends_on_a_failure(runner: Runner) -> None:
    """IF-9"""
    catalogue, told = runner.catalogue, {"forgiving": {"fail": True}}
    nodes = (
        catalogue.new_run("forgiving", parameters=told),
        catalogue.new_run("n0", depends_on=("forgiving",), parameters=told),
    )
    ended = await runner.run_graph(nodes)

    assert [ended[name].status.value for name in ("forgiving", "n0")] == ["failed", "done"]


async def test_a_skipped_node_releases_its_successors(runner: Runner) -> None:
    """IF-3, IF-9"""
    ended = await runner.run_graph(make_nodes(runner.catalogue, {0: (), 1: (0,)}, n0={"skip": True}))

    assert [ended[name].status.value for name in ("n0", "n1")] == ["skipped", "done"]


async def test_successors_wait_for_the_whole_chain(runner: Runner) -> None:
    """IF-5, IF-9"""
    nodes = make_nodes(runner.catalogue, {0: (), 1: (0,)}, n0={"redo": 2})
    ended = await runner.run_graph(nodes)

    assert ended["n0"].redo_count == 2
    assert early_starts(nodes, ended) == []


async def test_chains_and_chords_are_seen_as_such(on_workers: OnWorkers, crew: Fleet) -> None:
    """IF-9: n0 → n1, n2 → n3 → n4. Flower shows each task's parent and root, and each task runs once."""
    shape = {0: (), 1: (0,), 2: (0,), 3: (1, 2), 4: (3,)}
    nodes = make_nodes(on_workers.catalogue, shape, n0={"takes_s": 0.1}, n1={"takes_s": 0.1})
    with shown_tasks(crew.redis_url) as (received, succeeded):
        ended = await on_workers.run_graph(nodes)
        await asyncio.to_thread(
            wait_until, lambda: len(succeeded) >= len(nodes), within_s=40, what="each task is done"
        )

    assert early_starts(nodes, ended) == []
    assert sorted(task["name"] for task in received) == [f"n{number}.run" for number in shape]
    name_of = {task["uuid"]: task["name"].removesuffix(".run") for task in received}
    parents = {name_of[task["uuid"]]: name_of.get(task["parent_id"]) for task in received}
    assert parents.pop("n3") in {"n1", "n2"}
    assert parents == {"n0": None, "n1": "n0", "n2": "n0", "n4": "n3"}
    assert {name_of[task["root_id"]] for task in received} == {"n0"}


@contextmanager
def shown_tasks(broker: str) -> Iterator[tuple[list[dict], list[dict]]]:
    """Collect the received and the succeeded tasks from worker events, as Flower does."""
    received: list[dict] = []
    succeeded: list[dict] = []
    with Celery(set_as_current=False, broker=for_celery(broker)) as app, app.connection() as connection:
        stop, listens = threading.Event(), threading.Event()
        handlers = {
            "task-received": received.append,
            "task-succeeded": succeeded.append,
            "task-probe": lambda _event: listens.set(),
        }
        receiver = app.events.Receiver(connection, handlers=handlers)

        def listen() -> None:
            while not stop.is_set():
                with suppress(TimeoutError):
                    receiver.capture(limit=None, timeout=0.2, wakeup=False)

        listening = threading.Thread(target=listen)
        listening.start()
        try:
            with app.events.default_dispatcher() as dispatcher:
                wait_until(
                    lambda: dispatcher.send("task-probe") or listens.is_set(),
                    within_s=40,
                    what="the receiver listens",
                )
            yield received, succeeded
        finally:
            stop.set()
            listening.join()


def flow(name: str, trigger: str, *needs: str) -> type[InternalFlow]:
    return type(name, (InternalFlow,), {"name": name, "trigger": trigger, "depends_on": needs})


def test_a_circle_names_its_path_and_is_off() -> None:
    """IF-9"""
    usable, off = sort_out(
        [flow("a", "x", "c"), flow("b", "x", "a"), flow("c", "x", "b"), flow("d", "x")], None
    )

    assert [one.name for one in usable] == ["d"]
    for problems in off.values():
        assert re.search(r"(a → c → b → a|c → b → a → c|b → a → c → b)$", str(problems[0]))


def test_problems_of_all_triggers_are_told_at_once() -> None:
    """IF-9"""
    _, off = sort_out([flow("a", "x", "nowhere"), flow("b", "y"), flow("c", "y", "c"), flow("b", "y")], None)

    assert set(off) == {"a", "b", "c"}
    assert "a.depends_on: unknown flow" in str(off["a"][0])
