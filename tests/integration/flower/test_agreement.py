"""Flower, Celery's results and PostgreSQL agree on every node of a graph, and no unexecuted task appears."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery import Celery
from psycopg.rows import dict_row

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.task_sender import TaskSender
from orchestrator.ports.tasks import START_RUN
from orchestrator.types import DEFAULT_TENANT
from parley.embedded import Stores
from tests.celery_clients import celery_client
from tests.integration.chaos.fleet import Fleet, fleet, wait_until
from tests.integration.flower.graphs import GRAPHS
from tests.integration.flower.server import flower, tasks
from tests.redis_numbers import numbered

STAND_IN = "tests.integration.flower.stand_in"
AUTH = ("flower", "open-sesame")
WITHIN_S = 60
SHORT = ("items_first", "nested_branch_fails", "redone_by_hand")
STATES = {"done": "SUCCESS", "skipped": "SUCCESS", "failed": "FAILURE", "blocked": "FAILURE"}
_RUNS = """
SELECT run_id, flow, task_id, status, graph_id, started_at IS NOT NULL AS began, coalesce(error, reason) AS why,
       extract(epoch FROM started_at)::float8 AS started, extract(epoch FROM finished_at)::float8 AS finished,
       (SELECT count(*) FROM internal_items WHERE internal_items.run_id = runs.run_id) AS items,
       finished_at IS NULL AS open
FROM internal_runs AS runs WHERE graph_id = (SELECT graph_id FROM internal_runs WHERE run_id = %s) ORDER BY number
"""


@dataclass
class Stack:
    """Workers for background flows, a Flower, and a plain Celery client."""

    crew: Fleet
    flower: str
    client: Celery

    def start(self, graph: str, **parameters: Any) -> dict[str, str]:
        """Start a graph like any Celery client, and return its runs by flow."""
        arguments = {"trigger": graph, "parameters": parameters}
        started = self.client.send_task(START_RUN, kwargs=arguments, queue="internal").get(timeout=WITHIN_S)
        return started["runs"]

    def runs(self, run_id: str) -> list[dict[str, Any]]:
        """Return the stored runs of a run's graph."""
        with psycopg.connect(self.crew.database_url) as connection:
            return connection.cursor(row_factory=dict_row).execute(_RUNS, [run_id]).fetchall()

    def ended(self, run_id: str) -> bool:
        """Return whether all runs of a graph have ended. A worker that a run ended is replaced meanwhile."""
        for _ in [one for one in self.crew.workers if one.process.poll() is not None]:
            self.crew.workers = [one for one in self.crew.workers if one.process.poll() is None]
            launch(self.crew)
        return not any(run["open"] for run in self.runs(run_id))

    def redo(self, run_id: str) -> None:
        """Rerun a failed run manually, like the gateway."""
        asyncio.run(self._redo(run_id))

    async def _redo(self, run_id: str) -> None:
        sender = TaskSender(self.crew.redis_url)
        async with Database(self.crew.database_url) as database:
            await sender.send_runs(await PostgresRuns(database).redo(DEFAULT_TENANT, run_id))
        sender.close()


def launch(crew: Fleet) -> None:
    crew.launch(application=STAND_IN, queues="internal,urgent", threads=16, options=("-E",))


@pytest.fixture(scope="module")
def stack(database_url: str, stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    redis_url = numbered(stores.redis_url, 9)
    folder = tmp_path_factory.mktemp("flower")
    environment = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "FLOWER_BASIC_AUTH": ":".join(AUTH)}
    settings = {"PARLEY_LEASE_TTL_S": "3", "PARLEY_SHUTDOWN_GRACE_S": "0.3"}
    with (
        flower(environment, folder / "flower.log") as url,
        fleet(database_url, redis_url, folder, settings) as crew,
        celery_client(redis_url) as client,
    ):
        crew.start(2, application=STAND_IN, queues="internal,urgent", threads=16, options=("-E",))
        yield Stack(crew, url, client)


@pytest.mark.parametrize(
    "graph", [name if name in SHORT else pytest.param(name, marks=pytest.mark.slow) for name in GRAPHS]
)
def test_flower_results_and_the_record_agree(stack: Stack, graph: str, tmp_path: Path) -> None:
    """IF-9: state, order and parents of every node."""
    file = tmp_path / "needed"
    started = stack.start(graph, file=str(file))
    first = next(iter(started.values()))
    wait_until(lambda: stack.ended(first), within_s=WITHIN_S, what=f"{graph} has ended")
    if graph == "redone_by_hand":
        wait_until(lambda: not disagreements(stack, graph, first), within_s=20, what="they agree before")
        file.touch()
        stack.redo(started["redone_by_hand_b"])
        wait_until(lambda: stack.ended(first), within_s=WITHIN_S, what="it was redone")

    found: list[str] = []

    def agree() -> bool:
        found[:] = disagreements(stack, graph, first)
        return not found

    with suppress(AssertionError):
        wait_until(agree, within_s=10, what="they agree")
    assert found == []


def disagreements(stack: Stack, graph: str, run_id: str) -> list[str]:
    """List the differences between Flower, Celery's results and PostgreSQL for a graph."""
    rows = stack.runs(run_id)
    shown = {
        uuid: task
        for uuid, task in tasks(stack.flower, AUTH).items()
        if task["name"].startswith(f"{graph}_")
        and uuid.partition(".items")[0] in {run["task_id"] for run in rows}
    }
    last = {run["task_id"]: run for run in rows}
    # Compare nothing else before the last events have arrived.
    return [*wrong_states(stack.client, graph, last, shown)] or [
        *tasks_that_did_not_run(rows, shown),
        *wrong_order(graph, last, shown),
        *wrong_parents(graph, last, shown),
    ]


def wrong_states(client: Celery, graph: str, last: dict[str, dict], shown: dict[str, dict]) -> Iterator[str]:
    # A killed worker loses the events of its last moments.
    fitting = {"SUCCESS", "STARTED"} if {"exit", "poison"} & {*GRAPHS[graph][1].values()} else {"SUCCESS"}
    for task_id, run in last.items():
        wanted, result = STATES[run["status"]], client.backend.get_task_meta(task_id)
        if result["status"] != wanted:
            yield f"{run['flow']} is {run['status']}, and its result {result['status']}"
        elif wanted == "FAILURE" and result["result"].args[0] != run["why"] and run["began"]:
            yield f"{run['flow']} failed with {run['why']!r}, and its result with {result['result'].args!r}"
        if run["began"] and shown.get(task_id, {}).get("state") != wanted:
            yield f"{run['flow']} is {run['status']}, and in Flower {shown.get(task_id)}"
    for uuid, task in shown.items():
        if ".items." in uuid and task["state"] not in fitting:
            yield f"{task['name']} {uuid} is {task['state']}"


def tasks_that_did_not_run(rows: list[dict], shown: dict[str, dict]) -> Iterator[str]:
    ran = {run["task_id"] for run in rows if run["began"]}
    shared = {run["task_id"] for run in rows if run["items"] > 1}
    for uuid, task in shown.items():
        if uuid not in ran and uuid.partition(".items.")[0] not in shared:
            yield f"{task['name']} is shown, and did not run"
        if "xylophone" in str(task):
            yield f"{task['name']} shows contents"


def wrong_order(graph: str, last: dict[str, dict], shown: dict[str, dict]) -> Iterator[str]:
    by_name = {run["flow"].removeprefix(f"{graph}_"): run for run in last.values()}
    for name, needs in GRAPHS[graph][0].items():
        after = by_name[name]
        for needed in needs if after["began"] else ():
            before = by_name[needed]
            if after["started"] < before["finished"]:
                yield f"{name} began before {needed} had ended"
            # Wait for the end event: Celery sends the next task before reporting success.
            if shown[after["task_id"]]["started"] < before["finished"]:
                yield f"{name} is shown before {needed}"


def wrong_parents(graph: str, last: dict[str, dict], shown: dict[str, dict]) -> Iterator[str]:
    names = {run["task_id"]: run["flow"].removeprefix(f"{graph}_") for run in last.values()}
    first = {run["flow"]: task_id for task_id, run in reversed(last.items())}
    for task_id, run in last.items():
        if not run["began"]:
            continue
        needs, parent = GRAPHS[graph][0][names[task_id]], shown[task_id].get("parent_id")
        if needs and names.get(parent) not in needs and task_id == first[run["flow"]]:
            yield f"the parent of {names[task_id]} is {names.get(parent)}"
        if not needs and parent is not None:
            yield f"{names[task_id]} has the parent {parent}"
