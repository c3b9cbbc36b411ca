"""The database of the counting agent, and a gateway over real stores."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from parley_client import AsyncClient
from tests.integration.chaos.processes.counting import EFFECTS
from tests.integration.gateway import House, open_house


@pytest.fixture(scope="module")
def database(database_url: str) -> str:
    """Create the test module's database, with the table for the counting agent's effects."""
    with psycopg.connect(database_url) as connection:
        connection.execute(EFFECTS)
    return database_url


@pytest.fixture
async def house(database_url: str, redis_url: str) -> AsyncIterator[House]:
    async with open_house(database_url, redis_url) as house:
        yield house


@pytest.fixture
async def client(house: House) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(house.url) as client:
        yield client
