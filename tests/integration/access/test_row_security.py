"""Row-level security: a connection of one tenant can't use rows of another tenant with any SQL (RT-22)."""

from __future__ import annotations

from contextlib import suppress

import httpx
import psycopg
import pytest

from gateway.app import create_app
from gateway.wiring import open_dependencies
from orchestrator.adapters.postgres.keys import PostgresKeys
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.roles import make_roles
from orchestrator.settings import Settings
from orchestrator.turns.access import Scope
from orchestrator.types import TenantId
from tests.integration.access.tenants import NOT_OF_TENANTS, A, B, Place, count, insert_row, tables_of
from tests.integration.gateway import serve

C, D = TenantId("crane"), TenantId("dart")


def test_every_table_is_under_the_policies(filled: Place) -> None:
    """Fails if a later migration adds a table without policies."""
    with psycopg.connect(filled.url) as connection:
        unguarded = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT (relrowsecurity AND EXISTS"
            " (SELECT FROM pg_policy WHERE polrelid = pg_class.oid AND polname = 'parley_tenant'))"
        )
        assert {row[0] for row in unguarded} == NOT_OF_TENANTS


def test_only_what_is_meant_for_nobody_cannot_be_read_by_the_gateway(filled: Place) -> None:
    """The read test below would pass for an unreadable table. These are all unreadable tables."""
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
    """RT-24: counts over all tenants are for the operator's metrics only."""
    with filled.as_role("gateway") as connection:
        connection.execute(f"SET parley.tenant = '{A}'")
        row = connection.execute("SELECT quarantined_turns FROM parley_status()").fetchone()
        assert row is not None
    with filled.as_role("reader") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT * FROM parley_status()")


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


def test_only_workers_read_webhook_secrets(filled: Place) -> None:
    """The gateway creates and deletes the secrets, workers sign with them; no other role has access."""
    with filled.as_role("runtime") as connection:
        assert connection.execute("SELECT secret FROM webhook_secrets").rowcount > 0
        for change in ("UPDATE webhook_secrets SET secret = 'mine'", "DELETE FROM webhook_secrets"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(change)
    with filled.as_role("gateway") as connection:
        connection.execute(f"SET parley.tenant = '{A}'")
        assert connection.execute("SELECT secret_id FROM webhook_secrets").rowcount == 1
        for attempt in (
            "SELECT secret FROM webhook_secrets",
            "SELECT * FROM webhook_secrets",
            "SELECT webhook_secrets::text FROM webhook_secrets",
            "SELECT count(*) FROM webhook_secrets WHERE secret LIKE 'w%'",
            "COPY webhook_secrets TO STDOUT",
            "UPDATE webhook_secrets SET secret = 'mine' RETURNING secret",
            f"INSERT INTO webhook_secrets VALUES ('{A}', 'x', 'y') RETURNING secret",
            "DELETE FROM webhook_secrets RETURNING secret",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(attempt)


def test_workers_pay_nothing_for_the_policies(place: Place) -> None:
    """The policy of their role is optimized away during planning."""
    with place.as_role("runtime") as connection:
        plan = connection.execute("EXPLAIN UPDATE lanes SET epoch = epoch WHERE session_id = 's'").fetchall()
    assert not any("tenant" in row[0] for row in plan), plan


def test_making_the_roles_again_changes_nothing(place: Place) -> None:
    assert make_roles(place.url) == []


async def test_a_gateway_under_the_policies_serves_its_tenants(place: Place, redis_url: str) -> None:
    """Every call that reads or writes specifies its tenant, also streaming calls."""
    settings = Settings(
        DATABASE_URL=place.urls["gateway"],
        REDIS_URL=redis_url,
        PARLEY_ROW_SECURITY=True,
        PARLEY_AUTH="required",
    )
    async with Database(place.url) as owner, serve(create_app(lambda: open_dependencies(settings))) as url:
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
            for path in ("", "/turns", "/history", "/effects", "/frames", "/scratchpad", "/journal"):
                answer = await http.get(f"/v1/sessions/{session}{path}")
                assert answer.status_code == 200, (path, answer.text)
            events = await http.get(f"/v1/sessions/{session}/events", params={"follow": "false"})
            assert "event: accepted" in events.text
            secret = await http.post("/v1/webhooks/secret")
            assert secret.status_code == 201, secret.text
            assert len((await http.get("/v1/webhooks")).json()) >= 1
            assert (await http.get("/v1/runs")).status_code == 200
            assert (await http.get("/v1/feedback")).status_code == 200
            assert (await http.get("/v1/approvals")).status_code == 200
            dropped = await http.post(f"/v1/turns/{sent.json()['turn_id']}/cancel")
            assert dropped.status_code == 200, dropped.text
            closed = await http.delete(f"/v1/sessions/{session}")
            assert closed.status_code == 200, closed.text
            for path in ("", "/turns", "/history", "/events?follow=false"):
                assert (await stranger.get(f"/v1/sessions/{session}{path}")).status_code == 404, path
