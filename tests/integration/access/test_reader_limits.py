"""A reader login cannot stop other tenants: no server locks, no disk space, few connections (RT-22)."""

from __future__ import annotations

from contextlib import ExitStack

import psycopg
import pytest

from orchestrator.adapters.postgres.roles import READER_CONNECTIONS, make_roles
from tests.cases import for_each
from tests.integration.access.tenants import Place

SERVER_WIDE = [
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_lock(g::bigint) FROM generate_series(0, 499) AS g",
    "SELECT pg_advisory_xact_lock_shared(1, 2)",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000))",
    "SELECT pg_notify('x', repeat('x', 1000))",
    "CREATE TEMPORARY TABLE mine AS SELECT generate_series(1, 1000)",
]


@for_each("statement", SERVER_WIDE)
def test_a_reader_may_not_use_what_all_share(place: Place, statement: str) -> None:
    with place.as_role("reader") as reader, pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute(statement.encode())


@pytest.mark.parametrize("role", ["runtime", "gateway"])
def test_those_who_run_turns_still_take_their_locks(place: Place, role: str) -> None:
    """Also after the roles were created again."""
    make_roles(place.url)
    with place.as_role(role) as connection:
        assert connection.execute("SELECT pg_try_advisory_xact_lock(1)").fetchone() == (True,)


def test_every_function_of_the_kind_is_withheld(place: Place) -> None:
    """New functions of these families in a later PostgreSQL make this test fail."""
    with place.as_role("reader") as reader:
        left = reader.execute(
            "SELECT proname FROM pg_proc WHERE has_function_privilege(oid, 'EXECUTE')"
            " AND (proname ~ 'advisory|^lo_|^pg_logical_emit|^pg_notify$' OR proname IN ('loread', 'lowrite'))"
        ).fetchall()
    assert left == []


def test_a_reader_has_few_connections_and_little_disk(place: Place) -> None:
    with ExitStack() as open_connections:
        readers = [
            open_connections.enter_context(psycopg.connect(place.urls["reader"]))
            for _ in range(READER_CONNECTIONS)
        ]
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            psycopg.connect(place.urls["reader"])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            readers[0].execute("SET temp_file_limit = -1")
        assert readers[1].execute("SHOW temp_file_limit").fetchone() == ("1GB",)
