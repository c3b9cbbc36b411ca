"""Row-level security: a connection of one tenant has no part of another's rows, whatever its SQL (RT-22)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from gateway.app import create_app, open_doors
from orchestrator.adapters.postgres.inbox import PostgresInbox
from orchestrator.adapters.postgres.keys import PostgresKeys
from orchestrator.adapters.postgres.lane import PostgresLane
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.roles import GATEWAY, RUNTIME, make_roles, tie_reader
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.postgres.workers import WorkerLiveness
from orchestrator.errors import InvalidInput, NotFound
from orchestrator.ports.access import acting_tenant
from orchestrator.settings import Settings
from orchestrator.turns.access import Scope
from orchestrator.types import SessionId, TenantId
from tests.contract.factories import commit_for, submission
from tests.integration.gateway import serve

NOT_OF_TENANTS = {"alembic_version", "guarded_tables", "workers"}
A, B, C, D = TenantId("acme"), TenantId("bolt"), TenantId("crane"), TenantId("dart")

_SAMPLES = {
    "text": "'t'",
    "bigint": "7",
    "integer": "7",
    "boolean": "false",
    "json": "'{}'",
    "jsonb": "'{}'",
    "timestamp with time zone": "now()",
    "double precision": "1",
    "real": "1",
    "numeric": "1",
    "date": "now()",
    "tsvector": "''",
    "USER-DEFINED": "'[1]'",  # a vector
}


@dataclass(frozen=True)
class Place:
    """A migrated database with the roles, and login users in each."""

    url: str
    urls: dict[str, str]

    @contextmanager
    def as_role(self, role: str) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.urls[role], autocommit=True) as connection:
            yield connection


@pytest.fixture(scope="module")
def place(database_url: str) -> Iterator[Place]:
    migrate(database_url)
    make_roles(database_url)
    urls: dict[str, str] = {}
    with psycopg.connect(database_url, autocommit=True) as connection:
        for name, role in (("gateway", GATEWAY), ("runtime", RUNTIME), ("reader", None)):
            login = f"{name}_{uuid4().hex[:8]}"
            connection.execute(f"CREATE ROLE {login} LOGIN PASSWORD 'secret'")
            if role is not None:
                connection.execute(f"GRANT {role} TO {login}")
            given = conninfo_to_dict(database_url)
            urls[name] = url_of(given, login)
            if role is None:
                tie_reader(database_url, login, A)
        yield Place(database_url, urls)
        for url in urls.values():
            login = str(conninfo_to_dict(url)["user"])
            connection.execute(f"DROP OWNED BY {login}")
            connection.execute(f"DROP ROLE {login}")


def url_of(given: dict[str, Any], login: str) -> str:
    return f"postgresql://{login}:secret@{given['host']}:{given['port']}/{given['dbname']}"


def tables_of(connection: psycopg.Connection[Any]) -> list[str]:
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    )
    return sorted(row[0] for row in found)


def sample(kind: str) -> str:
    """Some value of a type; vectors have the length that the column asks for."""
    name, _, size = kind.partition("(")
    if name in {"vector", "halfvec"}:
        return f"'[{', '.join(['1'] * int(size.rstrip(')') or 3))}]'"
    return "'{}'" if kind.endswith("[]") else _SAMPLES[kind]


def insert_row(connection: psycopg.Connection[Any], table: str, tenant: str) -> None:
    """A row of a tenant with a value for all that must have one."""
    columns = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        " AND attnotnull AND NOT atthasdef AND attidentity = ''",
        (table,),
    ).fetchall()
    unique = uuid4().hex
    values = {name: f"'{unique}'" if kind == "text" else sample(kind) for name, kind in columns}
    values["tenant_id"] = f"'{tenant}'"
    connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(values.values())})")


@pytest.fixture(scope="module")
def filled(place: Place) -> Place:
    """A row of both tenants in every table; foreign keys and triggers are of no matter here."""
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for table in set(tables_of(connection)) - NOT_OF_TENANTS:
            for tenant in (A, B):
                if table != "tenant_readers":
                    insert_row(connection, table, tenant)
    return place


def count(connection: psycopg.Connection[Any], table: str, tenant: str) -> int:
    """How many rows can be read; none where the table cannot be read at all."""
    try:
        row = connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = '{tenant}'").fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return 0
    assert row is not None
    return row[0]


def test_every_table_is_under_the_policies(filled: Place) -> None:
    """A table that a later migration adds is guarded, or this fails."""
    with psycopg.connect(filled.url) as connection:
        unguarded = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT (relrowsecurity AND EXISTS"
            " (SELECT FROM pg_policy WHERE polrelid = pg_class.oid AND polname = 'parley_tenant'))"
        )
        assert {row[0] for row in unguarded} == NOT_OF_TENANTS


def test_only_what_is_meant_for_nobody_cannot_be_read_by_the_gateway(filled: Place) -> None:
    """The test of reading below would pass for a table that nobody can read: these are all of them."""
    with filled.as_role("gateway") as connection:
        connection.execute(f"SET parley.tenant = '{A}'")
        unseen = {
            table for table in set(tables_of(connection)) - NOT_OF_TENANTS if count(connection, table, A) == 0
        }
    assert unseen == {"api_keys", "tenant_readers"}


@pytest.mark.parametrize("role", ["gateway", "reader"])
def test_nothing_of_another_tenant_is_read_or_written(filled: Place, role: str) -> None:
    with filled.as_role(role) as connection:
        connection.execute(f"SET parley.tenant = '{A}'")
        for table in set(tables_of(connection)) - NOT_OF_TENANTS:
            assert count(connection, table, B) == 0, table
            for change in (
                f"UPDATE {table} SET tenant_id = tenant_id WHERE tenant_id = '{B}'",
                f"DELETE FROM {table} WHERE tenant_id = '{B}'",
            ):
                with suppress(psycopg.errors.InsufficientPrivilege):
                    assert connection.execute(change).rowcount == 0, table
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                insert_row(connection, table, B)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"TRUNCATE {table}")
    with psycopg.connect(filled.url) as connection:
        assert all(count(connection, table, B) == 1 for table in ("sessions", "turns", "api_keys"))


def test_how_the_whole_system_stands_is_told_to_the_gateway_and_not_to_readers(filled: Place) -> None:
    """RT-24: counts over all tenants, for the operator's metrics alone."""
    with filled.as_role("gateway") as connection:
        connection.execute(f"SET parley.tenant = '{A}'")
        row = connection.execute("SELECT quarantined_turns FROM parley_standing()").fetchone()
        assert row is not None
    with filled.as_role("reader") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT * FROM parley_standing()")


def test_a_row_cannot_be_given_to_another_tenant(filled: Place) -> None:
    with filled.as_role("gateway") as connection:
        connection.execute(f"SET parley.tenant = '{A}'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            connection.execute(f"UPDATE preferences SET tenant_id = '{B}'")


def test_a_gateway_that_names_no_tenant_sees_nothing(filled: Place) -> None:
    with filled.as_role("gateway") as connection:
        assert count(connection, "sessions", A) == 0
        with connection.transaction():
            connection.execute(f"SELECT set_config('parley.tenant', '{A}', true)")
            assert count(connection, "sessions", A) > 0
        assert count(connection, "sessions", A) == 0


@pytest.mark.parametrize(
    "attempt",
    [
        f"SET parley.tenant = '{B}'",
        f"SET ROLE {GATEWAY}",
        f"SET ROLE {RUNTIME}",
        "SET row_security = off",
        "CREATE TEMP TABLE tenant_readers AS SELECT session_user::text AS role, 'bolt' AS tenant_id",
        "CREATE FUNCTION public.session_user() RETURNS text LANGUAGE sql AS 'SELECT 1'",
        f"INSERT INTO tenant_readers VALUES (session_user, '{B}')",
        "DROP POLICY parley_tenant ON sessions",
        "SELECT parley_guard('sessions', '', '', '')",
    ],
)
def test_a_person_stays_within_his_tenant(filled: Place, attempt: str) -> None:
    with filled.as_role("reader") as connection:
        with suppress(psycopg.errors.InsufficientPrivilege):
            connection.execute(attempt)
        try:
            seen = connection.execute("SELECT DISTINCT tenant_id FROM sessions").fetchall()
        except psycopg.errors.InsufficientPrivilege:  # with row_security off: an error, never all rows
            seen = []
        assert seen in ([], [(A,)])


def test_people_read_no_secrets(filled: Place) -> None:
    with filled.as_role("reader") as connection:
        for table in ("webhook_secrets", "api_keys", "tenant_readers"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SELECT * FROM {table}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM parley_find_key('x')")


async def test_the_roles_suffice_for_a_turn(place: Place) -> None:
    """The gateway accepts, a worker runs, the gateway reads; another tenant finds nothing of it."""
    acting_tenant.set(A)
    session_id = SessionId(f"session_{uuid4().hex}")
    async with (
        Database(place.urls["gateway"], tenant_bound=True) as door,
        Database(place.urls["runtime"]) as inside,
        WorkerLiveness(place.urls["runtime"]) as worker,
    ):
        sessions, inbox = PostgresSessions(door), PostgresInbox(door)
        await sessions.create(A, "travel", session_id=session_id)
        receipt = await inbox.submit(submission(A, session_id))
        lane = PostgresLane(inside, worker)
        lease = await lane.claim(session_id)
        assert lease is not None
        await lane.commit(lease, commit_for(lease))
        assert await lane.sweep(grace_s=0) == []

        assert (await inbox.turn(A, receipt.turn_id)).status == "done"
        acting_tenant.set(B)
        # even a query that names the wrong tenant finds nothing
        with pytest.raises(NotFound):
            await inbox.turn(A, receipt.turn_id)
        with pytest.raises(InvalidInput, match="in use elsewhere"):
            await sessions.create(B, "travel", session_id=session_id)
        acting_tenant.set("")
        assert await sessions.list(A) == []


def test_workers_pay_nothing_for_the_policies(place: Place) -> None:
    """Their role's policy is folded away when a statement is planned."""
    with place.as_role("runtime") as connection:
        plan = connection.execute("EXPLAIN UPDATE lanes SET epoch = epoch WHERE session_id = 's'").fetchall()
    assert not any("tenant" in row[0] for row in plan), plan


def test_making_the_roles_again_changes_nothing(place: Place) -> None:
    assert make_roles(place.url) == []


async def test_a_gateway_under_the_policies_serves_its_tenants(place: Place, redis_url: str) -> None:
    """Every call that reads or writes names its tenant, also those that stream."""
    settings = Settings(
        DATABASE_URL=place.urls["gateway"],
        REDIS_URL=redis_url,
        PARLEY_ROW_SECURITY=True,
        PARLEY_AUTH="required",
    )
    async with Database(place.url) as owner, open_database_doors(settings) as url:
        keys = PostgresKeys(owner)
        operator = frozenset({Scope.OPERATOR})
        ours, theirs = [(await keys.create(tenant, tenant, operator))[1] for tenant in (C, D)]
        async with (
            httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {ours}"}) as http,
            httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {theirs}"}) as stranger,
        ):
            made = await http.post("/v1/sessions", json={"webhook": "https://hooks.example/"})
            assert made.status_code == 201, made.text
            session = made.json()["session_id"]
            sent = await http.post(f"/v1/sessions/{session}/turns", json={"text": "hello"})
            assert sent.status_code == 202, sent.text
            for path in (
                "",
                "/turns",
                "/history",
                "/effects",
                "/frames",
                "/scratchpad",
                "/feedback",
                "/journal",
            ):
                answer = await http.get(f"/v1/sessions/{session}{path}")
                assert answer.status_code == 200, (path, answer.text)
            events = await http.get(f"/v1/sessions/{session}/events", params={"follow": "false"})
            assert "event: accepted" in events.text
            secret = await http.post("/v1/webhooks/secret")
            assert secret.status_code == 201, secret.text
            assert len((await http.get("/v1/webhooks")).json()) >= 1
            assert (await http.get("/v1/runs")).status_code == 200
            assert (await http.get("/v1/approvals")).status_code == 200
            dropped = await http.post(f"/v1/turns/{sent.json()['turn_id']}/cancel")
            assert dropped.status_code == 200, dropped.text
            closed = await http.delete(f"/v1/sessions/{session}")
            assert closed.status_code == 200, closed.text
            for path in ("", "/turns", "/history", "/events?follow=false"):
                assert (await stranger.get(f"/v1/sessions/{session}{path}")).status_code == 404, path


@asynccontextmanager
async def open_database_doors(settings: Settings) -> AsyncIterator[str]:
    async with serve(create_app(lambda: open_doors(settings))) as url:
        yield url
