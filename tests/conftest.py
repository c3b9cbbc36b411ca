"""Real stores for the tests that need them, started once, with a fresh database per module; training done once."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from orchestrator.adapters.models.trained_files import TrainedFiles
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.nlu.classifier import LinearModel
from orchestrator.nlu.linear import TrainedModels
from orchestrator.nlu.readers import system1
from parley.embedded import Stores
from parley.embedded import stores as open_stores
from tests.processes.clusters import make_clusters_once
from tests.redis_numbers import numbered
from tests.reporting import Reporting
from tests.scheduling import UnitScheduling, count_processes, put_long_ones_first

_REDIS_NUMBER = 9  # away from 0, where a developer's own data would be
_TRAINED = "PARLEY_TRAINED_FOLDER"

# An example that waits for a processor is none the worse: how long one takes says nothing of what is examined.
settings.register_profile("counts alone", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("counts alone")


def pytest_configure(config: pytest.Config) -> None:
    """Give all processes of all runs one folder for what is trained: a key names all that it was learnt from."""
    # Else each process of a test compiles all code for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    config.pluginmanager.register(Reporting())
    config.add_cleanup(gc.unfreeze)
    if _TRAINED not in os.environ:
        folder = config.rootpath / ".tmp" / "trained"
        made = next(each for each in (folder, *folder.parents) if each.exists())
        if not os.access(made, os.W_OK):  # another account's clone, or one that it has run its tests in
            folder = Path(tempfile.mkdtemp(prefix="parley-trained-"))
            config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        patch = pytest.MonkeyPatch()
        config.add_cleanup(patch.undo)
        patch.setenv(_TRAINED, str(folder))
    Path(os.environ[_TRAINED]).mkdir(parents=True, exist_ok=True)
    make_clusters_once(Path(os.environ[_TRAINED]))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--note-times", action="store_true", help="Note how long files took, to begin with the longest."
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return count_processes()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> UnitScheduling:
    return UnitScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage while tests are collected, nor among them afterwards: they stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the order of the folders where one process runs all."""
    if hasattr(config, "workerinput"):
        put_long_ones_first(items)


@pytest.fixture(scope="session", autouse=True)
def _trained_once() -> Iterator[None]:
    """Let System 1 of a domain take what another test has trained from just the same."""
    with pytest.MonkeyPatch.context() as patch:
        once, folder = system1.train_once, Path(os.environ[_TRAINED])

        def train_alone(
            kept: TrainedModels | None, key: str, train: Callable[[], LinearModel]
        ) -> LinearModel:
            if kept is not None:
                return once(kept, key, train)
            with (folder / f"{key}.lock").open("w") as lock:  # who comes second takes over
                fcntl.flock(lock, fcntl.LOCK_EX)
                return once(TrainedFiles(folder), key, train)

        patch.setattr(system1, "train_once", train_alone)
        yield


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


@pytest.fixture
def redis_url(stores: Stores) -> Iterator[str]:
    """A Redis database of the tests' own, empty at the start of every test."""
    url = numbered(stores.redis_url, _REDIS_NUMBER)
    with redis.Redis.from_url(url, socket_timeout=5) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()
