"""Real stores for the tests that need them: started once, a fresh database per module."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
import redis

from parley.embedded import Stores
from parley.embedded import stores as open_stores

_REDIS_NUMBER = 9  # away from 0, where a developer's own data would be


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


@pytest.fixture(scope="module")
def database_url(stores: Stores) -> Iterator[str]:
    """A new, empty database for this test module."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(stores.database_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        base, _, _ = stores.database_url.rpartition("/")
        yield f"{base}/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def redis_url(stores: Stores) -> Iterator[str]:
    """A Redis database of the tests' own, empty at the start of every test."""
    base, _, _ = stores.redis_url.rpartition("/")
    url = f"{base}/{_REDIS_NUMBER}"
    with redis.Redis.from_url(url, socket_timeout=5) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()
