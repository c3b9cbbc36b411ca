"""Embedded Redis and PostgreSQL servers, installed from wheels.

    with stores(Path(".parley")) as running:
        running.database_url, running.redis_url

This package ignores `DATABASE_URL` and `REDIS_URL`.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from parley.data_folder import hold, open_sockets
from parley.embedded.postgres import ensure_database, plan_postgres
from parley.embedded.redis import plan_redis
from parley.processes import Child, Program, end_leftovers

__all__ = ["Store", "Stores", "open_database", "open_redis", "stores"]


@dataclass(frozen=True, slots=True)
class Stores:
    database_url: str
    redis_url: str


@dataclass(frozen=True, slots=True)
class Store:
    """A running store. `url`: its URL, including the password."""

    child: Child
    url: str


@contextmanager
def stores(data_dir: Path, *, durable: bool = True) -> Iterator[Stores]:
    """Run both stores in `data_dir` until the block ends.

    `durable`: False for temporary data, which a power failure may destroy.

    Raises:
        FolderInUse: another process uses the folder.
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
    """Run Redis until the block ends. The caller must hold the folder's lock."""
    with (
        open_sockets(data_dir, "redis") as sockets,
        _run(plan_redis(data_dir, sockets, durable=durable), data_dir) as store,
    ):
        yield store


@contextmanager
def open_database(data_dir: Path, *, durable: bool) -> Iterator[Store]:
    """Run PostgreSQL until the block ends, and create Parley's database. The caller must hold the folder's lock."""
    with (
        open_sockets(data_dir, "postgres") as sockets,
        _run(plan_postgres(data_dir, sockets, durable=durable), data_dir) as store,
    ):
        ensure_database(store.url)
        yield store


@contextmanager
def _run(planned: tuple[Program, str], data_dir: Path) -> Iterator[Store]:
    program, url = planned
    child = Child(program, data_dir / "run")
    try:
        child.start()
        child.await_ready()
        yield Store(child, url)
    finally:
        child.stop()
