"""Real Redis and real PostgreSQL, started from wheels for one machine.

    with stores(Path(".parley")) as running:
        running.database_url, running.redis_url

`DATABASE_URL` and `REDIS_URL` are not read here; see `parley.stack`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from orchestrator.errors import ProcessFailed
from parley.data_folder import hold
from parley.embedded.postgres import ensure_database, plan_postgres
from parley.embedded.redis import plan_redis
from parley.processes import Child, Program, end_leftovers

__all__ = ["Store", "Stores", "open_database", "open_redis", "stores"]

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Stores:
    """Where the two stores answer."""

    database_url: str
    redis_url: str


@dataclass(frozen=True, slots=True)
class Store:
    """A running store: its process, and the address with its password."""

    child: Child
    url: str


@contextmanager
def stores(data_dir: Path, *, durable: bool = True) -> Iterator[Stores]:
    """Run both stores with their data below `data_dir` until the block ends.

    `durable=False` gives up safety against power loss, for data that nobody keeps.

    Raises:
        FolderInUse: another process runs on this folder.
        Unavailable: a program is missing or did not start.
    """
    data_dir = data_dir.resolve()
    with hold(data_dir), ExitStack() as stack:
        end_leftovers(data_dir / "run")
        redis = stack.enter_context(open_redis(data_dir, durable=durable))
        database = stack.enter_context(open_database(data_dir, durable=durable))
        yield Stores(database_url=database.url, redis_url=redis.url)


@contextmanager
def open_redis(data_dir: Path, *, durable: bool) -> Iterator[Store]:
    """Run Redis. The caller holds the folder's lock."""
    with _run(partial(plan_redis, data_dir, durable=durable), data_dir) as store:
        yield store


@contextmanager
def open_database(data_dir: Path, *, durable: bool) -> Iterator[Store]:
    """Run PostgreSQL. The caller holds the folder's lock."""
    with _run(partial(plan_postgres, data_dir, durable=durable), data_dir) as store:
        ensure_database(store.url)
        yield store


@contextmanager
def _run(plan: Callable[[], tuple[Program, str]], data_dir: Path) -> Iterator[Store]:
    """Run what is planned until the block ends."""
    store = _start(plan, data_dir / "run")
    try:
        yield store
    finally:
        store.child.stop()


def _start(plan: Callable[[], tuple[Program, str]], notes: Path, attempts: int = _ATTEMPTS) -> Store:
    """Start what is planned; a port that another process took in between is planned anew."""
    program, url = plan()
    child = Child(program, notes)
    try:
        child.start()
        child.await_ready()
    except BaseException as error:
        child.stop()
        port_taken = isinstance(error, ProcessFailed) and "ddress already in use" in child.logged()
        if attempts == 1 or not port_taken:
            raise
        return _start(plan, notes, attempts - 1)
    return Store(child, url)
