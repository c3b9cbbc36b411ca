"""Real stores for tests, started once, with a new database for each module; models trained once."""

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

_REDIS_NUMBER = 9  # not 0, which may contain a developer's own data
_MODULE_REDIS_NUMBER = 7

# No deadline for examples: waiting for a CPU says nothing about the tested code.
settings.register_profile("counts alone", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("counts alone")
make_clusters_once(Path(os.environ["PARLEY_TRAINED_FOLDER"]))


def _train_once(folder: Path) -> None:
    """Store models of System 1 in a folder, so that all test processes train each model once."""
    once = reader.train_once

    def train_alone(kept: TrainedModels | None, key: str, train: Callable[[], LinearModel]) -> LinearModel:
        if kept is not None:
            return once(kept, key, train)
        with (folder / f"{key}.lock").open("w") as lock:  # the second process loads the first's models
            fcntl.flock(lock, fcntl.LOCK_EX)
            return once(TrainedFiles(folder), key, train)

    reader.train_once = train_alone


# At import, not in a fixture: some modules train a domain during collection.
_train_once(Path(os.environ["PARLEY_TRAINED_FOLDER"]))


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """Start PostgreSQL and Redis. `DATABASE_URL` and `REDIS_URL` replace the embedded servers."""
    database_url, redis_url = os.environ.get("DATABASE_URL"), os.environ.get("REDIS_URL")
    with ExitStack() as stack:
        if not (database_url and redis_url):
            folder: Path = tmp_path_factory.mktemp("stores")
            embedded = stack.enter_context(open_stores(folder, durable=False))
            database_url, redis_url = database_url or embedded.database_url, redis_url or embedded.redis_url
        yield Stores(database_url, redis_url)


@pytest.fixture(scope="session")
def _template(stores: Stores) -> Iterator[str]:
    """Return the name of a database that is migrated once and copied for each module."""
    with _made(stores, f"template_{uuid.uuid4().hex[:12]}") as url:
        migrate(url)
        yield url.rpartition("/")[2]


@pytest.fixture(scope="module")
def database_url(stores: Stores, _template: str) -> Iterator[str]:
    """Create a migrated database without rows for this test module."""
    with _made(stores, f"test_{uuid.uuid4().hex[:12]}", f"TEMPLATE {_template}") as url:
        yield url


@pytest.fixture(scope="module")
def empty_database_url(stores: Stores) -> Iterator[str]:
    """Create an empty database for this test module."""
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
    """Yield another Redis database, empty at the start of the module, for workers that all of its tests share."""
    url = numbered(stores.redis_url, _MODULE_REDIS_NUMBER)
    with redis.Redis.from_url(url, socket_timeout=5) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()


@pytest.fixture
def redis_url(stores: Stores) -> Iterator[str]:
    """Yield a Redis database, empty at the start of each test."""
    url = numbered(stores.redis_url, _REDIS_NUMBER)
    with redis.Redis.from_url(url, socket_timeout=5) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()
