"""Check PostgreSQL: server, permissions, schema, tenants and backlog."""

import time
from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg

from orchestrator.adapters.postgres.migrate import HEAD, current_revision
from orchestrator.adapters.postgres.roles import SESSION_FLOWS, may_run_session_flows
from parley.diagnosis.finding import Finding, bad, note, well

OLDEST_VERSION = 15
SKEW_S = 2.0
WAITING_S = 30.0
_TIMEOUT_S = 3

_CONNECTIONS = """
    SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
           current_setting('max_connections')::int"""
# Role name, and whether the role bypasses row-level security, as administrators and table owners do.
_ROLE = """
    SELECT rolname, rolsuper OR rolbypassrls OR EXISTS (
        SELECT FROM pg_class
        WHERE relrowsecurity AND relnamespace = current_schema()::regnamespace
            AND pg_has_role(pg_roles.oid, relowner, 'USAGE'))
    FROM pg_roles WHERE rolname = current_user"""
# Names of the checked tables that lack the required grants. All tables get the same grants, so four are
# enough.
_FORBIDDEN = """
    SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '') FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace
        AND (relname IN ('alembic_version', 'sessions', 'lanes', 'turns') AND NOT has_table_privilege(oid, 'SELECT')
             OR relname = 'turns' AND NOT has_table_privilege(oid, 'INSERT'))"""
_GUARDED = """
    SELECT count(*) FROM pg_class
    WHERE relrowsecurity AND relnamespace = current_schema()::regnamespace"""
_WAITING = """
    SELECT count(*), coalesce(extract(epoch FROM max(clock_timestamp() - turns.accepted_at)), 0)::float8
    FROM lanes JOIN turns ON turns.session_id = lanes.session_id AND turns.seq = lanes.done_seq + 1
    WHERE lanes.check_at IS NOT NULL AND lanes.pending > 0 AND lanes.lease_owner IS NULL
        AND lanes.gap_at IS NULL AND turns.status = 'queued'"""


def examine_database(url: str, *, guarded: bool) -> Iterator[Finding]:
    """Check the database at `url`. `guarded`: True if row-level security must apply to this user.

    Raises psycopg.Error if the database does not respond.
    """
    with psycopg.connect(url, connect_timeout=_TIMEOUT_S, autocommit=True) as connection:
        connection.execute("SET statement_timeout = '5s'")
        yield _check_server(connection)
        yield check_clock("postgres clock", _server_time(connection))
        yield from _check_connections(connection)
        yield from _check_writes(connection)
        if (forbidden := _check_rights(connection)) is not None:
            yield forbidden
            return
        schema = _check_schema(connection)
        yield schema
        yield from _check_tenants(connection, guarded=guarded)
        if schema.fine:
            yield _check_session_flows(connection)
            yield _check_lanes(connection)


def check_clock(name: str, their_lead_s: float) -> Finding:
    """Check that a clock agrees with this machine's clock.

    `their_lead_s`: how far the other clock is ahead, in seconds.
    """
    if abs(their_lead_s) <= SKEW_S:
        return well(name, "matches this machine's")
    direction = "ahead of" if their_lead_s > 0 else "behind"
    return bad(
        name,
        f"is {abs(their_lead_s):.0f} s {direction} this machine's",
        "synchronize both machines with NTP: tokens, limits and logs depend on these clocks",
    )


def _check_server(connection: psycopg.Connection[Any]) -> Finding:
    number = connection.info.server_version // 10_000
    vector = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
    if number < OLDEST_VERSION:
        return bad("postgres", f"is version {number}", f"upgrade to PostgreSQL {OLDEST_VERSION} or newer")
    if vector is None:
        return note(
            "postgres",
            f"version {number} is responding, without pgvector: document search only uses words",
            "install the extension's package on the server (the image pgvector/pgvector has it)",
        )
    return well("postgres", f"version {number} with pgvector is responding")


def _server_time(connection: psycopg.Connection[Any]) -> float:
    before = time.time()
    (now,) = _fetch(connection, "SELECT extract(epoch FROM clock_timestamp())::float8")
    return now - (before + time.time()) / 2


def _check_connections(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    used, most = _fetch(connection, _CONNECTIONS)
    if used > 0.9 * most:
        yield bad(
            "connections",
            f"{used} of {most} are in use",
            "raise max_connections, lower PARLEY_DATABASE_POOL_SIZE, or add a connection pooler",
        )


def _check_writes(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    (read_only,) = _fetch(connection, "SELECT current_setting('transaction_read_only')::bool")
    if read_only:
        yield bad(
            "postgres writes",
            "are refused: the server is a standby, or configured as read-only",
            "point DATABASE_URL at the primary, or unset default_transaction_read_only",
        )


def _check_rights(connection: psycopg.Connection[Any]) -> Finding | None:
    (forbidden,) = _fetch(connection, _FORBIDDEN)
    if not forbidden:
        return None
    return bad(
        "rights",
        f"{connection.info.user} can't use {forbidden}",
        "as the owner of the tables, run `parley migrate --login runtime=FILE`, where FILE has this user's URL",
    )


def _check_schema(connection: psycopg.Connection[Any]) -> Finding:
    revision = current_revision(connection)
    if revision == HEAD:
        return well("schema", f"is at {HEAD}, as this release requires")
    if revision is None:
        return bad("schema", "does not exist", "run `parley migrate`")
    if revision < HEAD:
        return bad("schema", f"is at {revision}, but this release needs {HEAD}", "run `parley migrate`")
    return note(
        "schema",
        f"is at {revision}, newer than this release's {HEAD}",
        "fine during an upgrade; otherwise run the newer release",
    )


def _check_tenants(connection: psycopg.Connection[Any], *, guarded: bool) -> Iterator[Finding]:
    """Check that row-level security applies to this role. A bypass is bad only if `guarded`."""
    (tables,) = _fetch(connection, _GUARDED)
    name, passes_by = _fetch(connection, _ROLE)
    if tables and passes_by:
        yield (bad if guarded else note)(
            "tenants",
            f"{tables} tables have row-level security, but the role {name} bypasses it",
            "use database users with fewer privileges: `parley migrate --login=runtime=FILE`",
        )
    elif tables:
        yield well("tenants", f"{tables} tables have row-level security, which applies to {name}")


def _check_session_flows(connection: psycopg.Connection[Any]) -> Finding:
    if may_run_session_flows(connection):
        return well("session flows", f"run as {SESSION_FLOWS}, which can't access sessions")
    user = connection.info.user
    return bad(
        "session flows",
        f"can't run, and neither can forgetting or repair: {user} can't use the role {SESSION_FLOWS}",
        f"as the database's administrator, run `parley migrate --roles` and then `GRANT {SESSION_FLOWS} TO {user}`",
    )


def _check_lanes(connection: psycopg.Connection[Any]) -> Finding:
    count, oldest_s = _fetch(connection, _WAITING)
    if oldest_s > WAITING_S:
        return bad(
            "lanes",
            f"{count} sessions wait for a worker, up to {oldest_s:.0f} s",
            "start more workers (`parley serve turns`), or check their logs",
        )
    return well("lanes", f"{count} sessions wait for a worker")


def _fetch(connection: psycopg.Connection[Any], query: LiteralString) -> tuple[Any, ...]:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row
