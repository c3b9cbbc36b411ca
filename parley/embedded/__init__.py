"""Real Redis and real PostgreSQL, started from wheels for one machine.

    with stores(Path(".parley")) as running:
        running.database_url, running.redis_url

`DATABASE_URL` and `REDIS_URL` are not looked at here; see `parley.stack`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from orchestrator.errors import ProcessFailed
from parley.embedded.lock import hold
from parley.embedded.postgres import PostgresPlan, ensure_database, plan_postgres
from parley.embedded.redis import RedisPlan, plan_redis
from parley.processes import Child, end_leftovers

__all__ = ["Stores", "open_database", "open_redis", "stores"]

_ATTEMPTS = 3
_Plan = TypeVar("_Plan", RedisPlan, PostgresPlan)


@dataclass(frozen=True, slots=True)
class Stores:
    """Where the two stores answer."""

    database_url: str
    redis_url: str


@contextmanager
def stores(data_dir: Path, *, durable: bool = True) -> Iterator[Stores]:
    """Run both stores with their data below `data_dir` until the block ends.

    Args:
        durable: False gives up safety against power loss, for data that nobody keeps.

    Raises:
        FolderInUse: another process runs on this folder.
        Unavailable: a program is missing or did not start.
    """
    data_dir = data_dir.resolve()
    with hold(data_dir), ExitStack() as stack:
        end_leftovers(data_dir / "run")
        redis_url = stack.enter_context(open_redis(data_dir, durable=durable))
        database_url = stack.enter_context(open_database(data_dir, durable=durable))
        yield Stores(database_url, redis_url)


@contextmanager
def open_redis(data_dir: Path, *, durable: bool) -> Iterator[str]:
    """Run Redis; gives its address. The caller holds the folder's lock."""
    child, plan = _start(lambda: plan_redis(data_dir, durable=durable), data_dir)
    try:
        yield plan.url
    finally:
        child.stop()


@contextmanager
def open_database(data_dir: Path, *, durable: bool) -> Iterator[str]:
    """Run PostgreSQL; gives its address. The caller holds the folder's lock."""
    child, plan = _start(lambda: plan_postgres(data_dir, durable=durable), data_dir)
    try:
        ensure_database(plan.url)
        yield plan.url
    finally:
        child.stop()


def _start(plan: Callable[[], _Plan], data_dir: Path) -> tuple[Child, _Plan]:
    """Start what was planned; a port that another process took in between is planned anew."""
    for attempt in range(1, _ATTEMPTS + 1):
        planned = plan()
        child = Child(planned.program, data_dir / "run")
        try:
            child.start()
            child.await_ready()
        except BaseException as error:
            child.stop()
            port_taken = isinstance(error, ProcessFailed) and "ddress already in use" in child.logged()
            if attempt == _ATTEMPTS or not port_taken:
                raise
        else:
            return child, planned
    raise AssertionError("the last attempt returns or raises")
