"""Compare the run time of background flow graphs with their critical paths (IF-9): `make bench-graphs`.

The benchmark prints the ratio and the overhead per node for random graphs, a chain of empty nodes and a fan-out.
"""

import asyncio
import math
import statistics
import sys
from collections.abc import Callable

from celery import Celery

from benchmarks.environment import Report, open_stores, parse, run_workers
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.redis.address import for_celery
from orchestrator.ports.runs.records import NewRun, RunRecord
from parley.output import progress
from tests.contract.internal.conftest import STAND_IN, OnWorkers
from tests.contract.internal.graphs import make_nodes, random_shape
from workers.messages.results import use_result_backend

GRAPHS, NODES = 10, 40
SHORTEST_S, LONGEST_S = 0.05, 1.0
TARGET = 1.1
CHAIN: dict[int, tuple[int, ...]] = {number: (number - 1,) if number else () for number in range(10)}
FAN_OUT: dict[int, tuple[int, ...]] = {0: (), **dict.fromkeys(range(1, 11), (0,)), 11: tuple(range(1, 11))}
FAN_OUT_NODE_S = 0.2
REPETITIONS = 15
WORKERS, THREADS = 2, 16


def longest_path(nodes: tuple[NewRun, ...], takes_s: dict[str, float]) -> tuple[float, int]:
    """Return the critical path's duration in seconds and its number of nodes.

    `nodes`: in topological order. `takes_s`: duration of each node in seconds.
    """
    ends: dict[str, tuple[float, int]] = {}
    for node in nodes:
        began, depth = max((ends[needed] for needed in node.depends_on), default=(0.0, 0))
        ends[node.flow] = began + takes_s[node.flow], depth + 1
    return max(ends.values())


def measure(
    nodes: tuple[NewRun, ...], ended: dict[str, RunRecord], asked_s: dict[str, float]
) -> dict[str, float]:
    """Return metrics for one run of a graph. `asked_s`: planned duration of each node in seconds."""
    critical_s, depth = longest_path(nodes, asked_s)
    created = min(run.created_at for run in ended.values() if run.created_at)
    finished = max(run.finished_at for run in ended.values() if run.finished_at)
    took_s = (finished - created).total_seconds()
    return {
        "ratio": took_s / critical_s if critical_s else math.inf,
        "critical_s": critical_s,
        "depth": depth,
        "node_ms": (took_s - critical_s) / depth * 1000,
    }


async def run_graphs(
    on_workers: OnWorkers, graphs: int, counted: Callable[[int, int], None]
) -> list[dict[str, float]]:
    results: list[dict[str, float]] = []
    for seed in range(graphs):
        counted(seed, graphs)
        shape, bodies = random_shape(seed, size=NODES - seed % 20)
        spread = LONGEST_S - SHORTEST_S
        takes_s = {name: SHORTEST_S + spread * body["takes_s"] / 0.08 for name, body in bodies.items()}
        given = {name: {"takes_s": seconds} for name, seconds in takes_s.items()}
        nodes = make_nodes(on_workers.catalogue, shape, **given)
        result = measure(nodes, await on_workers.run_graph(nodes), takes_s)
        results.append({"nodes": len(nodes), **result})
    return results


async def run_shape(
    on_workers: OnWorkers, shape: dict[int, tuple[int, ...]], takes_s: float
) -> dict[str, float]:
    """Return a graph's median metrics over several runs after a warm-up. `takes_s`: seconds per node."""
    asked_s = {f"n{number}": takes_s for number in shape}
    nodes = make_nodes(on_workers.catalogue, shape, **{name: {"takes_s": takes_s} for name in asked_s})
    results = [measure(nodes, await on_workers.run_graph(nodes), asked_s) for _ in range(REPETITIONS + 1)]
    return {name: statistics.median(one[name] for one in results[1:]) for name in results[0]}


async def main() -> int:
    arguments = parse("benchmarks.graphs", __doc__, graphs=(GRAPHS, "number of random graphs"))
    with open_stores() as (running, folder):
        workers = run_workers(
            *(running, folder),
            name="internal",
            application=STAND_IN,
            queues="internal,urgent",
            threads=THREADS,
            count=WORKERS,
        )
        with workers, progress("graphs") as counted:
            address = for_celery(running.redis_url)
            app = Celery(set_as_current=False, broker=address, backend=address)
            use_result_backend(app)
            async with Database(running.database_url) as database:
                on_workers = OnWorkers(PostgresRuns(database), app)
                results = await run_graphs(on_workers, arguments.graphs, counted)
                chain = await run_shape(on_workers, CHAIN, 0.0)
                fan_out = await run_shape(on_workers, FAN_OUT, FAN_OUT_NODE_S)
            app.close()
    ratios = [result["ratio"] for result in results]
    report = Report("graphs", as_json=arguments.json)
    report.rows("graphs", results)
    report.rows("chain of 10 and fan-out of 1, 10 and 1 nodes", [chain, fan_out])
    kept = [report.verdict("median time / critical path", statistics.median(ratios), TARGET)]
    report.end()
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
