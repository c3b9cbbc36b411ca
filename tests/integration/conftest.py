"""The database of the counting agent."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.chaos.processes.counting import EFFECTS


@pytest.fixture(scope="module")
def database(database_url: str) -> str:
    """The test module's database, with the table of the effects that the counting agent has had."""
    with psycopg.connect(database_url) as connection:
        connection.execute(EFFECTS)
    return database_url
