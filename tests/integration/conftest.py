"""The database of the counting agent."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.chaos.processes.counting import EFFECTS


@pytest.fixture(scope="module")
def database(database_url: str) -> str:
    """Create the test module's database, with the table for the counting agent's effects."""
    with psycopg.connect(database_url) as connection:
        connection.execute(EFFECTS)
    return database_url
