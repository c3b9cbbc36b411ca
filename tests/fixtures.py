"""Real stores for the tests that need them, started once, with a fresh database per module; training done once."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from hypothesis import HealthCheck, settings

from orchestrator.adapters.models.trained_files import TrainedFiles
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.nlu.system1 import reader
from orchestrator.nlu.system1.linear import LinearModel, TrainedModels
from parley.embedded import Stores
from parley.embedded import stores as open_stores
from tests.processes.clusters import make_clusters_once
from tests.redis_numbers import numbered

_REDIS_NUMBER = 9  # away from 0, where a developer's own data would be
_MODULE_REDIS_NUMBER = 7

# An example that waits for a processor is none the worse: how long one takes says nothing of what is examined.
settings.register_profile("counts alone", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("counts alone")
make_clusters_once(Path(os.environ["PARLEY_TRAINED_FOLDER"]))


def _train_once(folder: Path) -> None:
    """Store what System 1 learns in a folder, so that all test processes train each model once."""
    once = reader.train_once

    def train_alone(kept: TrainedModels | None, key: str, train: Callable[[], LinearModel]) -> LinearModel:
        if kept is not None:
            return once(kept, key, train)
        with (folder / f"{key}.lock").open("w") as lock:  # the second process loads what the first trained
            fcntl.flock(lock, fcntl.LOCK_EX)
            return once(TrainedFiles(folder), key, train)

    reader.train_once = train_alone


# At import, not in a fixture: some modules train a domain while tests are collected.
_train_once(Path(os.environ["PARLEY_TRAINED_FOLDER"]))


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """Real PostgreSQL and Redis; `DATABASE_URL` and `REDIS_URL` replace the embedded ones."""
    database_url, redis_url = os.environ.get("DATABASE_URL"), os.environ.get("REDIS_URL")
    with ExitStack() as stack:
        if not (database_url and redis_url):
            folder: Path = tmp_path_factory.mktemp("stores")
            embedded = stack.enter_context(open_stores(folder, durable=False))
            database_url, redis_url = database_url or embedded.database_url, redis_url or embedded.redis_url
        yield Stores(database_url, redis_url)


@pytest.fixture(scope="session")
def _template(stores: Stores) -> Iterator[str]:
    """The name of a database that is migrated once and copied for each module."""
    with _made(stores, f"template_{uuid.uuid4().hex[:12]}") as url:
        migrate(url)
        yield url.rpartition("/")[2]


@pytest.fixture(scope="module")
def database_url(stores: Stores, _template: str) -> Iterator[str]:
    """A new database for this test module, migrated and without a row."""
    with _made(stores, f"test_{uuid.uuid4().hex[:12]}", f"TEMPLATE {_template}") as url:
        yield url


@pytest.fixture(scope="module")
def empty_database_url(stores: Stores) -> Iterator[str]:
    """A new database for this test module, with nothing in it."""
    with _made(stores, f"test_{uuid.uuid4().hex[:12]}") as url:
        yield url


@contextmanager
def _made(stores: Stores, name: str, like: str = "") -> Iterator[str]:
    with psycopg.connect(stores.database_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {like}".encode())
        base, _, _ = stores.database_url.rpartition("/")
        yield f"{base}/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(scope="module")
def module_redis_url(stores: Stores) -> Iterator[str]:
    """Another Redis database, empty at the start of the test module, for workers that all of its tests share."""
    url = numbered(stores.redis_url, _MODULE_REDIS_NUMBER)
    with redis.Redis.from_url(url, socket_timeout=5) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()


@pytest.fixture
def redis_url(stores: Stores) -> Iterator[str]:
    """A Redis database of the tests' own, empty at the start of every test."""
    url = numbered(stores.redis_url, _REDIS_NUMBER)
    with redis.Redis.from_url(url, socket_timeout=5) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()
