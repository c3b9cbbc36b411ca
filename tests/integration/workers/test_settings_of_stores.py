"""Settings of the environment, turned, as those notice it who go through the doors of a process (CO-5)."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from gateway.wiring import open_dependencies
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.bootstrap import open_ports
from orchestrator.errors import InboxFull
from orchestrator.settings import Settings
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, SessionId

SLEEP = "SELECT pg_sleep(0.3)::text"


@pytest.fixture
def addresses(database_url: str, redis_url: str) -> dict[str, str]:
    migrate(database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute("TRUNCATE sessions, turns CASCADE")
    return {"DATABASE_URL": database_url, "REDIS_URL": redis_url}


def _turn(session: str) -> Submission:
    given = TurnInput(text="say")
    return Submission(SessionId(session), given, DEFAULT_TENANT, create_session=True, domain="travel")


async def test_a_session_takes_so_many_unfinished_turns(addresses: dict[str, str]) -> None:
    async with open_ports(Settings(**addresses, PARLEY_SESSION_INBOX_LIMIT=2)) as ports:
        for _ in range(2):
            await ports.stores.inbox.submit(_turn("one"))
        with pytest.raises(InboxFull):
            await ports.stores.inbox.submit(_turn("one"))
        await ports.stores.inbox.submit(_turn("another"))


async def test_all_sessions_together_take_so_many(addresses: dict[str, str]) -> None:
    async with open_ports(Settings(**addresses, PARLEY_TOTAL_INBOX_LIMIT=1)) as ports:
        await ports.stores.inbox.submit(_turn("the-one"))
        with pytest.raises(InboxFull):
            await ports.stores.inbox.submit(_turn("one-more"))


@pytest.mark.parametrize(("connections", "rounds"), [(2, 2), (4, 1)])
async def test_so_many_statements_run_side_by_side(
    addresses: dict[str, str], connections: int, rounds: int
) -> None:
    async with open_ports(Settings(**addresses, PARLEY_DATABASE_POOL_SIZE=connections)) as ports:
        database, now = ports.stores.database, asyncio.get_running_loop().time
        await asyncio.gather(*(database.fetch_one("SELECT 1", {}) for _ in range(connections)))
        began = now()
        await asyncio.gather(*(database.fetch_one(SLEEP, {}) for _ in range(4)))
        took_s = now() - began
    assert took_s >= 0.3 * rounds
    assert rounds > 1 or took_s < 1.2, "one after the other"


async def test_the_gateway_counts_by_the_rates_that_are_set(addresses: dict[str, str]) -> None:
    rates = {"PARLEY_CALLER_RATE": 11, "PARLEY_TENANT_RATE": 22, "PARLEY_SESSION_RATE": 33}
    async with open_dependencies(Settings(**addresses, **rates)) as dependencies:
        found = dependencies.access.rates
    assert (found.caller, found.tenant, found.session) == (11, 22, 33)
