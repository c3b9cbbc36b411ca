"""A database connection of tenant A can't read data of tenant B with any SQL (RT-22).

`filled` has a row of both tenants in every table. Texts of B begin with its name, so a search of the results
detects any leak.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from orchestrator.adapters.postgres.roles import GATEWAY, OWNER, RUNTIME
from tests.integration.access.tenants import NOT_OF_TENANTS, A, B, Place, tables_of

ALLOWED_DEFINERS = {
    "reader": {"parley_tenant"},
    "gateway": {"parley_tenant", "parley_find_key", "parley_unfinished_turns", "parley_status"},
}
"""Functions that run with their owner's rights. Their results are checked in their own tests."""
HIDDEN_FROM_PEOPLE = {"api_keys", "tenant_readers", "webhook_secrets"}


@pytest.fixture
def person(filled: Place) -> Iterator[psycopg.Connection[Any]]:
    """Connect as a login of tenant A. Notices are part of the result of `told`."""
    with filled.as_role("reader") as connection:
        yield connection


def told(connection: psycopg.Connection[Any], *statements: str) -> str:
    """Return everything from statements, run in order as far as possible: rows, notices, errors."""
    heard: list[str] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        heard.append(f"{notice.message_primary} {notice.message_detail}")

    connection.add_notice_handler(hear)
    try:
        for statement in statements:
            try:
                answer = connection.execute(statement.encode())
                if answer.description is not None:
                    heard.append(str(answer.fetchall()))
            except psycopg.Error as error:
                heard.append(f"{error} {error.diag.message_detail}")
    finally:
        connection.remove_notice_handler(hear)
    return "\n".join(heard)


def tenant_tables(connection: psycopg.Connection[Any]) -> list[str]:
    return [name for name in tables_of(connection) if name not in NOT_OF_TENANTS]


def copied(connection: psycopg.Connection[Any], source: str) -> bytes:
    with connection.cursor().copy(f"COPY {source} TO STDOUT".encode()) as rows:
        return b"".join(bytes(row) for row in rows)


def test_the_search_would_find_rows_of_the_other_tenant(filled: Place) -> None:
    """The owner of the tables sees both tenants in every table. Otherwise the other tests would show nothing."""
    with psycopg.connect(filled.url, autocommit=True) as owner:
        for table in set(tenant_tables(owner)) - {"tenant_readers"}:
            assert B.encode() in copied(owner, table), table
            assert B in told(owner, f"SELECT * FROM {table}"), table


def test_copying_gives_what_selecting_gives(person: psycopg.Connection[Any]) -> None:
    hidden: set[str] = set()
    for table in tenant_tables(person):
        for source in (table, f"(SELECT * FROM {table})", f"(TABLE {table})"):
            try:
                rows = copied(person, source)
            except psycopg.errors.InsufficientPrivilege:
                hidden.add(table)
                continue
            except psycopg.errors.FeatureNotSupported:
                continue  # never COPY from a partitioned table itself
            assert A.encode() in rows, table
            assert B.encode() not in rows, table
    assert hidden == HIDDEN_FROM_PEOPLE


@pytest.mark.parametrize(
    "trick",
    [
        "SET row_security = off",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        f"SET parley.tenant = '{B}'",
        f"SELECT set_config('parley.tenant', '{B}', false)",
        f"SET ROLE {OWNER}",
        f"SET ROLE {RUNTIME}",
        f"SET ROLE {GATEWAY}",
        "SET SESSION AUTHORIZATION postgres",
        "SET session_replication_role = replica",
        f"ALTER USER CURRENT_USER SET parley.tenant = '{B}'",
        f"CREATE SCHEMA mine; CREATE TABLE mine.tenant_readers AS SELECT session_user AS role, '{B}' AS tenant_id",
        f"CREATE TEMP TABLE tenant_readers AS SELECT session_user::text AS role, '{B}' AS tenant_id",
        f"CREATE FUNCTION pg_temp.parley_tenant() RETURNS text LANGUAGE sql AS 'SELECT ''{B}'''",
        f"CREATE FUNCTION pg_temp.current_setting(text, boolean) RETURNS text LANGUAGE sql AS 'SELECT ''{B}'''",
        "CREATE FUNCTION pg_temp.texteq(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR pg_temp.= (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)",
        f"UPDATE tenant_readers SET tenant_id = '{B}'",
        "ALTER TABLE sessions DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON sessions USING (true)",
        "CREATE TRIGGER mine BEFORE INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION parley_mark_lane()",
        "CREATE RULE mine AS ON SELECT TO sessions DO INSTEAD SELECT 1",
        "GRANT ALL ON sessions TO CURRENT_USER",
        "CREATE EXTENSION dblink",
        "CREATE TEMP VIEW mine AS SELECT * FROM sessions",
        "CREATE FUNCTION public.session_user() RETURNS text LANGUAGE sql AS 'SELECT 1'",
        f"INSERT INTO tenant_readers VALUES (session_user, '{B}')",
        "DROP POLICY parley_tenant ON sessions",
        "SELECT parley_guard('sessions', '', '', '')",
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        "pg_temp, pg_catalog, public",
        *(
            pytest.param(path, marks=pytest.mark.slow)
            for path in ("public", "pg_temp, public", "mine, public")
        ),
    ],
)
def test_no_trick_shows_a_row_of_the_other_tenant(
    person: psycopg.Connection[Any], trick: str, path: str
) -> None:
    """Each trick is refused or has no effect, also with a search path that prefers the user's own objects."""
    told(person, trick, f"SET search_path = {path}")
    for table in tenant_tables(person):
        seen = told(
            person,
            f"SELECT * FROM public.{table}",
            f"SELECT count(*) FROM public.{table} WHERE tenant_id <> '{A}'",
        )
        assert B not in seen, (trick, table)
        assert "[(1,)]" not in seen, (trick, table)


def test_what_a_query_calls_sees_no_row_that_the_query_does_not(person: psycopg.Connection[Any]) -> None:
    """A cheap function in WHERE runs before a filter but not before a policy. Division by zero reveals nothing."""
    spy = (
        "CREATE FUNCTION pg_temp.spy(anything anyelement) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS"
        " $$ BEGIN RAISE NOTICE 'seen %', anything; RETURN true; END $$"
    )
    assert "ERROR" not in told(person, spy)
    for table in set(tenant_tables(person)) - HIDDEN_FROM_PEOPLE:
        seen = told(
            person,
            f"SELECT count(*) FROM {table} WHERE pg_temp.spy({table}::text)",
            f"SELECT 1 / (CASE WHEN tenant_id = '{B}' THEN 0 ELSE 1 END) FROM {table}",
            f"SELECT tenant_id::integer FROM {table}",
            f"SELECT max(tenant_id), array_agg(tenant_id) FROM {table}",
            f"SELECT * FROM {table} AS one LEFT JOIN {table} AS other ON true",
            f"SELECT * FROM {table} TABLESAMPLE SYSTEM (100)",
            f"DECLARE kept CURSOR WITH HOLD FOR SELECT * FROM {table}",
            "FETCH ALL FROM kept",
            "CLOSE kept",
            f"SELECT query_to_xml('SELECT * FROM {table}', true, false, '')",
            f"SELECT table_to_xml('{table}', true, false, '')",
        )
        assert f"seen ({A}" in seen or f",{A}" in seen or A in seen, table
        assert B not in seen, table
        assert "division by zero" not in seen, table


def test_statistics_and_other_connections_tell_nothing(
    filled: Place, person: psycopg.Connection[Any]
) -> None:
    with psycopg.connect(filled.url, autocommit=True) as owner:
        owner.execute("ANALYZE")
        assert B in told(
            owner, "SELECT most_common_vals, histogram_bounds FROM pg_stats WHERE schemaname = 'public'"
        )
    with filled.as_role("runtime") as worker:
        worker.execute(f"SELECT '{B}', pg_backend_pid()".encode())
        seen = told(
            person,
            "SELECT tablename, most_common_vals, histogram_bounds FROM pg_stats WHERE schemaname = 'public'",
            "SELECT stavalues1 FROM pg_statistic",
            "SELECT query FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
            "SELECT pg_read_file('postgresql.conf')",
            "SELECT lo_import('/etc/passwd')",
            "COPY (SELECT 1) TO PROGRAM 'true'",
            "SELECT pg_logical_slot_get_changes('x', null, null)",
        )
    assert B not in seen


def test_nothing_is_written_to_the_other_tenant(filled: Place, person: psycopg.Connection[Any]) -> None:
    """The gateway with A's name can't either, by COPY or through existing rows."""
    with filled.as_role("gateway") as gateway:
        gateway.execute(f"SET parley.tenant = '{A}'".encode())
        for connection in (gateway, person):
            for table in tenant_tables(connection):
                statements = (
                    f"MERGE INTO {table} USING (SELECT '{B}' AS t) AS given ON tenant_id = t WHEN MATCHED THEN DELETE",
                    f"UPDATE {table} SET tenant_id = '{A}' WHERE tenant_id = '{B}'",
                    f"WITH gone AS (DELETE FROM {table} WHERE tenant_id = '{B}' RETURNING 1) SELECT 'gone' FROM gone",
                    f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE",
                )
                seen = told(connection, *statements)
                assert "gone'" not in seen, table
            with suppress(psycopg.Error), connection.cursor().copy(b"COPY sessions FROM STDIN") as rows:
                rows.write_row((f"{B}_x", B))
    with psycopg.connect(filled.url, autocommit=True) as owner:
        for table in set(tenant_tables(owner)) - {"tenant_readers"}:
            count = f"SELECT count(*) FROM {table} WHERE tenant_id = '{B}'"
            assert told(owner, count) == "[(1,)]", table


@pytest.mark.parametrize("role", ["reader", "gateway"])
def test_what_runs_with_other_rights_is_known(filled: Place, role: str) -> None:
    """A new view or function with its owner's rights would bypass the policies. This test then fails."""
    with filled.as_role(role) as connection:
        definers = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef"
            " AND has_function_privilege(oid, 'EXECUTE')"
        ).fetchall()
        views = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('v', 'm')"
            " AND NOT coalesce('security_invoker=true' = ANY(reloptions), false)"
        ).fetchall()
        free = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef"
            " AND NOT coalesce((SELECT bool_or(entry LIKE 'search_path=%') FROM unnest(proconfig) AS entry), false)"
        ).fetchall()
        assert connection.execute("SELECT has_schema_privilege('public', 'CREATE')").fetchone() == (False,)
    assert {name for (name,) in definers} == ALLOWED_DEFINERS[role]
    assert (views, free) == ([], [])
