"""Temporary stores, worker processes, command-line options and reports for benchmarks."""

import argparse
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql
from redis import Redis

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.bootstrap import AgentCatalogue, Ports, build_agent, open_lane, open_ports
from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import Settings, read_settings
from parley.embedded import Stores, stores
from parley.output import print_json, print_table
from parley.processes import Child, Program, log_says
from parley.roles import ONE_THREAD_EACH

ROOT = Path(__file__).resolve().parents[1]
READY_WITHIN_S = 300.0  # a worker may have to train a domain first


@contextmanager
def open_stores() -> Iterator[tuple[Stores, Path]]:
    """Run temporary, migrated stores. Yield the stores and the temporary folder that contains them."""
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as folder, stores(Path(folder)) as running:
        migrate(running.database_url)
        yield running, Path(folder)


def own_stores(running: Stores, number: int, redis: int | None = None) -> Stores:
    """Return separate databases on the running stores: a new PostgreSQL database and a Redis database.

    `number`: number of both databases. `redis`: a different number for the Redis database, which is then emptied.
    """
    name = f"bench_{number}"
    with psycopg.connect(running.database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    base, _, _ = running.database_url.rpartition("/")
    own = Stores(f"{base}/{name}", running.redis_url.replace("?db=0", f"?db={redis or number}"))
    if redis is not None:
        with Redis.from_url(own.redis_url) as store:
            store.flushdb()
    migrate(own.database_url)
    return own


def settings_of(running: Stores) -> Settings:
    return read_settings(DATABASE_URL=running.database_url, REDIS_URL=running.redis_url)


@asynccontextmanager
async def open_lanes(running: Stores) -> AsyncGenerator[tuple[Ports, LaneRunner]]:
    async with open_ports(settings_of(running)) as ports, open_lane(ports) as lane:
        agents = AgentCatalogue(build_agent, ports)
        yield ports, LaneRunner(lane, ports.shared.live, ports.shared.wakeup, agents.get)


@contextmanager
def run_process(
    name: str,
    arguments: tuple[str, ...],
    running: Stores,
    folder: Path,
    ready: Callable[[str], bool],
    environment: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> Iterator[psutil.Process]:
    """Run a Python program on the stores until the block ends. Yield its process once `ready` returns True.

    `arguments`: arguments of the Python interpreter.
    """
    addresses = {"DATABASE_URL": running.database_url, "REDIS_URL": running.redis_url}
    program = Program(
        name=name,
        command=(python, *arguments),
        log=folder / f"{name}.log",
        ready=ready,
        environment={"PYTHONPATH": str(ROOT), **ONE_THREAD_EACH, **addresses, **(environment or {})},
        grace_s=30.0,
    )
    child = Child(program, folder / "bench-run")
    child.start()
    try:
        child.await_ready(READY_WITHIN_S)
        yield psutil.Process(child.pid)
    finally:
        child.stop()


@contextmanager
def run_workers(
    running: Stores,
    folder: Path,
    *,
    name: str,
    application: str,
    queues: str = "turns",
    pool: str = "threads",
    threads: int = 16,
    count: int = 1,
    environment: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> Iterator[list[psutil.Process]]:
    """Run `count` Celery worker processes until the block ends. Yield the processes when all are ready.

    `application`: the module of the Celery application. `threads`: concurrent tasks per process.
    """
    name = name.replace(" ", "")
    worker = ("-m", "celery", "-A", application, "worker", "-P", pool, "-c", str(threads), "-Q", queues)
    quiet = ("--without-gossip", "--without-mingle", "-l", "INFO")
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                run_process(
                    f"{name}-{number}",
                    (*worker, "-n", f"{name}-{number}@bench", *quiet),
                    running,
                    folder,
                    log_says(" ready."),
                    environment,
                    python,
                )
            )
            for number in range(count)
        ]


class Report:
    """The results of a benchmark, printed as tables as they are added, or as one JSON object at the end."""

    def __init__(self, name: str, *, as_json: bool) -> None:
        self._as_json = as_json
        self._told: dict[str, Any] = {"benchmark": name}

    def rows(self, what: str, rows: list[dict[str, Any]]) -> None:
        """Add a table under the name `what`. All rows must have the same columns."""
        self._told[what] = rows
        if not self._as_json and rows:
            print_table(list(rows[0]), [[_show(value) for value in row.values()] for row in rows])

    def verdict(self, name: str, ratio: float, bar: float) -> bool:
        """Add a ratio and its upper limit `bar`. Return True if the ratio is within the limit."""
        judged = {"name": name, "ratio": round(ratio, 4), "bar": bar, "kept": ratio <= bar}
        self._told.setdefault("verdicts", []).append(judged)
        return ratio <= bar if self._as_json else verdict(name, ratio, bar)

    def end(self) -> None:
        if self._as_json:
            print_json(self._told)


def _show(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def parse(module: str, description: str | None, **options: tuple[Any, str]) -> argparse.Namespace:
    """Parse command-line options. `options`: ``name=(default, help)``.

    A default that is a tuple lists the choices, which are all chosen by default.
    """
    parser = argparse.ArgumentParser(description=description, prog=f"python -m {module}")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object")
    for name, (default, text) in options.items():
        if isinstance(default, tuple):
            parser.add_argument(f"--{name}", nargs="*", choices=default, default=default, help=text)
        else:
            parser.add_argument(f"--{name}", type=type(default), default=default, help=text)
    return parser.parse_args()


def verdict(name: str, ratio: float, bar: float) -> bool:
    """Print a ratio and its upper limit `bar`. Return True if the ratio is within the limit."""
    print(f"{name}: {ratio:.2f} ({'within' if ratio <= bar else 'outside'} the bar of {bar})")
    return ratio <= bar
