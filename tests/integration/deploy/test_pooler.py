"""PostgreSQL behind a pooler that shares connections between transactions (RT-21).

`tests/contract` tests all ports of the stores with a pooler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from orchestrator.adapters.postgres.pool import LIMITS, Database
from orchestrator.adapters.postgres.roles import SESSION_FLOWS, make_login, make_roles
from orchestrator.ports.access import acting_tenant
from orchestrator.types import TenantId
from tests.integration.chaos.checker import check, read_history
from tests.integration.chaos.fleet import fleet, wait_until
from tests.integration.chaos.processes.counting import EFFECTS
from tests.integration.chaos.submitting import all_finished, submitter
from tests.integration.deploy.fixtures.pooler import CONNECTIONS, PROGRAM, pooler

SESSIONS = 30
LEASE_S = 600
"""Longer than the test: only the lock on the worker's own connection shows that it died."""
RUNNING = "SELECT count(*) FROM turns WHERE status = 'running'"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="Debian's package pgbouncer is not installed")


@pytest.fixture
def login(database_url: str) -> Iterator[str]:
    """Return the URL of a login with a worker's rights, as `parley migrate --login` creates it."""
    make_roles(database_url)
    user = f"worker_{uuid4().hex[:8]}"
    place = database_url.rpartition("@")[2]
    url = f"postgresql://{user}:of-the-worker@{place}"
    make_login(database_url, url, "parley_runtime")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(EFFECTS)
        connection.execute("GRANT ALL ON counted_effects, counted_effects_id_seq TO parley_runtime")
        yield url
        for statement in ("DROP OWNED BY {}", "DROP ROLE {}"):
            connection.execute(sql.SQL(statement).format(sql.Identifier(user)))


async def test_turns_of_a_killed_worker_are_taken_over_and_nothing_is_done_twice(
    database_url: str, login: str, redis_url: str, tmp_path: Path
) -> None:
    environment = {"PARLEY_DIRECT_DATABASE_URL": login, "PARLEY_LEASE_TTL_S": str(LEASE_S)}
    with (
        pooler([login]) as (pooled,),
        fleet(pooled, redis_url, tmp_path, environment) as crew,
        psycopg.connect(database_url, autocommit=True) as server,
    ):
        first, _ = await asyncio.to_thread(crew.start, 2)
        async with submitter(database_url, redis_url) as outside:
            await outside.submit_all(
                [f"pooled-{n}" for n in range(SESSIONS)], 3, lambda number: ("effect", "wait 0.2")[number % 2]
            )
            await asyncio.to_thread(
                wait_until, lambda: server.execute(RUNNING).fetchone() != (0,), within_s=30, what="turns run"
            )
            first.kill()
            await all_finished(database_url, within_s=60)
        shared = server.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'parley' AND usename = %s",
            (urlsplit(login).username,),
        ).fetchone()
    assert check(read_history(database_url, outside.accepted)) == []
    assert shared is not None
    assert shared[0] <= CONNECTIONS


async def test_limits_hold_and_tenants_and_roles_do_not_mix(database_url: str, login: str) -> None:
    """Session settings of the server are set per transaction, or belong to the login."""
    assert login
    with pooler([login]) as (pooled,):
        async with (
            Database(pooled, pooled=True, tenant_bound=True) as database,
            Database(pooled, pooled=True, role=SESSION_FLOWS) as of_flows,
        ):

            async def who(asked: Database) -> str:
                row = await asked.fetch_one("SELECT current_user", {})
                assert row is not None
                return row[0]

            async def ask(tenant: str) -> tuple[str, ...]:
                acting_tenant.set(TenantId(tenant))
                row = await database.fetch_one(
                    "SELECT current_setting('parley.tenant'), current_setting('statement_timeout'),"
                    " current_setting('lock_timeout')",
                    {},
                )
                assert row is not None
                return tuple(row)

            tenants = [f"tenant-{n}" for n in range(40)]
            told = await asyncio.gather(*(asyncio.create_task(ask(tenant)) for tenant in tenants))
            users = await asyncio.gather(*(who(asked) for asked in (database, of_flows) * 20))
    limits = (LIMITS["statement_timeout"], LIMITS["lock_timeout"])
    assert told == [(tenant, *limits) for tenant in tenants]
    assert users == [urlsplit(login).username, SESSION_FLOWS] * 20
