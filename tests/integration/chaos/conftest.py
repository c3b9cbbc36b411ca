"""Stores for tests whose turns have effects that are counted."""

import psycopg
import pytest

from tests.integration.chaos.processes.counting import EFFECTS


@pytest.fixture
def database(database_url: str) -> str:
    with psycopg.connect(database_url) as connection:
        connection.execute(EFFECTS)
        connection.execute("TRUNCATE counted_effects")
        connection.execute("TRUNCATE sessions, turns, journal, events, utterances, state_history CASCADE")
    return database_url
