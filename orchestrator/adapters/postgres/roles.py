"""Database roles and their login users, created once by an administrator (RT-22).

The database function `parley_guard` defines each role's rights on each table.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from orchestrator.adapters.postgres.errors import NO_ROLE, reached
from orchestrator.adapters.postgres.pool import LIMITS
from orchestrator.errors import InvalidInput, NotFound, Refused
from orchestrator.telemetry import get_logger
from orchestrator.types import TenantId

OWNER: Final = "parley_owner"
"""Role that owns the tables and runs migrations."""
RUNTIME: Final = "parley_runtime"
"""Role for workers, with access to the rows of all tenants, but without schema changes."""
GATEWAY: Final = "parley_gateway"
"""Role for the gateway, with access to the rows of the tenant set in each transaction."""
READER: Final = "parley_reader"
"""Role for SQL users, with access to the rows of the tenant assigned to their login role."""
SESSION_FLOWS: Final = "parley_session_flows"
"""Role for session flows, with access to scratchpads and memories but not to sessions.

Workers switch to this role for each transaction of a session flow.
"""
SESSION_FLOWS_CONNECTIONS: Final = 4
"""Maximum number of connections per worker for the session-flow role."""

_ROLES: Final = (OWNER, RUNTIME, GATEWAY, READER, SESSION_FLOWS)
READER_CONNECTIONS: Final = 4
"""Maximum number of connections for a reader's login."""
READER_TEMPORARY_FILES: Final = "1GB"
"""Maximum temporary disk space for a reader's queries."""

# Functions that affect the whole server: advisory locks fill the lock table that all transactions share, and
# the others fill the disk or the notification queue. `open`: True if a reader can still call the function.
_SERVER_WIDE: Final[LiteralString] = """
SELECT oid::regprocedure::text AS function, proname LIKE '%%advisory%%' AS locks,
       has_function_privilege(%(reader)s, oid, 'EXECUTE') AS open
FROM pg_proc
WHERE pronamespace = 'pg_catalog'::regnamespace
  AND (proname ~ '^(pg_.*advisory|lo_)' OR proname IN ('loread', 'lowrite', 'pg_logical_emit_message', 'pg_notify'))
"""
_TABLE_OWNER: Final[LiteralString] = (
    "SELECT relowner::regrole::text FROM pg_class WHERE oid = 'sessions'::regclass"
)
_MAY_ACT: LiteralString = (
    "SELECT coalesce(pg_has_role(to_regrole(%(role)s)::oid, 'MEMBER')"
    " AND has_table_privilege(to_regrole(%(role)s)::oid, 'preferences', 'SELECT')"
    " AND has_schema_privilege(to_regrole(%(role)s)::oid, current_schema(), 'USAGE'), false)"
)
_ATTEMPTS = 3
_TRY_AGAIN = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DuplicateObject,
    psycopg.errors.InternalError_,
    psycopg.errors.DeadlockDetected,
)
"""Errors that occur if another database on the server creates the role concurrently, or workers use the
tables.
"""
_LOCK: Final = 0x5041524C524F4C45
"""Key of the advisory lock that serializes grants, because concurrent grants of the same rights conflict."""

_log = get_logger(__name__)


@contextmanager
def _administering(database_url: str, action: str) -> Generator[psycopg.Connection[Any]]:
    """Open a transaction. Raises Unavailable, or Refused if the user isn't permitted to do the `action`."""
    try:
        with reached(), psycopg.connect(database_url, connect_timeout=10) as connection:
            yield connection
    except psycopg.errors.InsufficientPrivilege as error:
        raise Refused(f"This user can't {action}: {error.diag.message_primary}.") from error


def make_roles(database_url: str) -> list[str]:
    """Create missing roles, grant all roles their rights, and return the names of the new roles.

    The database must be migrated, and the URL's user must be an administrator or the tables' owner with
    CREATEROLE. Raises Unavailable or Refused.
    """
    with _administering(database_url, "create roles") as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        made = [name for name in _ROLES if _make_role(connection, name)]
        schema, every_role = _schema(connection), sql.SQL(", ").join(map(sql.Identifier, _ROLES))
        _run(connection, "GRANT USAGE ON SCHEMA {} TO {}", schema, every_role)
        _run(connection, "GRANT CREATE ON SCHEMA {} TO {}", schema, OWNER)
        _run(connection, "GRANT {} TO {}", SESSION_FLOWS, RUNTIME)
        # Every process checks that the schema matches its release.
        _run(connection, "GRANT SELECT ON alembic_version TO {}", every_role)
        connection.execute("SELECT parley_guard_all()")
        _withhold_server_wide_functions(connection)
        return made


def may_run_session_flows(connection: psycopg.Connection[Any]) -> bool:
    """Return whether this user can switch to the session-flow role and that role has its rights in this database.

    Roles belong to the server and rights to the database, so either can exist without the other.
    """
    row = connection.execute(_MAY_ACT, {"role": SESSION_FLOWS}).fetchone()
    return row is not None and row[0]


def make_session_flows_role(connection: psycopg.Connection[Any]) -> None:
    """Create the session-flow role and let this user switch to it, or log a warning if not permitted."""
    try:
        for _ in range(_ATTEMPTS):
            if may_run_session_flows(connection):
                return
            with suppress(*_TRY_AGAIN), connection.transaction():
                _make_role(connection, SESSION_FLOWS)
                _run(connection, "GRANT USAGE ON SCHEMA {} TO {}", _schema(connection), SESSION_FLOWS)
                _run(connection, "GRANT {} TO CURRENT_USER", SESSION_FLOWS)
                connection.execute("SELECT parley_guard_all()")
    except psycopg.errors.InsufficientPrivilege as error:
        _log.warning(NO_ROLE, error=error)


def make_login(database_url: str, login_url: str, role: str) -> str:
    """Create the login URL's user with the URL's password and a role's rights. Return the user's name.

    An existing user gets this password.

    Raises:
        InvalidInput: the URL has no user or no password.
        Refused: the user has more rights than the role, or cannot be created.
        Unavailable: the database is not responding.
    """
    given = conninfo_to_dict(login_url)
    user, password = given.get("user"), given.get("password")
    if not user or not password:
        raise InvalidInput(f"The URL for {role} must include a user and a password.", field="login")
    with _administering(database_url, "create logins") as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        if _passes_by(connection, str(user)):
            raise Refused(f"{user} has more privileges than {role}: use another user in the role's URL.")
        _set_login(connection, str(user), str(password), role)
    return str(user)


def tie_reader(database_url: str, role: str, tenant_id: TenantId) -> None:
    """Restrict an existing login role to one tenant's rows, and limit its connections and temporary files.

    Raises NotFound, Unavailable, or (if this user cannot change the role) Refused.
    """
    with _administering(database_url, "change the role") as connection:
        if not _exists(connection, role):
            raise NotFound("database role", role)
        _run(connection, "GRANT {} TO {}", READER, role)
        _run(connection, "ALTER ROLE {} CONNECTION LIMIT {}", role, sql.Literal(READER_CONNECTIONS))
        _limit_temporary_files(connection, role)
        connection.execute(
            "INSERT INTO tenant_readers (role, tenant_id) VALUES (%s, %s)"
            " ON CONFLICT (role) DO UPDATE SET tenant_id = excluded.tenant_id",
            (role, tenant_id),
        )


def _withhold_server_wide_functions(connection: psycopg.Connection[Any]) -> None:
    """Revoke rights that let a reader block all tenants, except from roles that need them.

    Only a server administrator can revoke all of them. PostgreSQL warns other users instead of failing.
    """
    row = connection.execute(_TABLE_OWNER).fetchone()
    assert row is not None
    roles = sql.SQL(", ").join(
        [*(sql.Identifier(name) for name in (OWNER, RUNTIME, GATEWAY)), sql.SQL(row[0])]
    )
    for function, locks, is_open in connection.execute(_SERVER_WIDE, {"reader": READER}).fetchall():
        if is_open:
            _run(connection, "REVOKE EXECUTE ON FUNCTION {} FROM PUBLIC", sql.SQL(function))
            if locks:
                _run(connection, "GRANT EXECUTE ON FUNCTION {} TO {}", sql.SQL(function), roles)
    _run(connection, "REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC", connection.info.dbname)
    left = [row[0] for row in connection.execute(_SERVER_WIDE, {"reader": READER}) if row[2]]
    if left:
        _log.warning(
            "Database readers can still block other tenants: run `parley migrate --roles` as a server administrator, "
            "or don't create reader logins.",
            functions=left,
        )


def _limit_temporary_files(connection: psycopg.Connection[Any], role: str) -> None:
    """Limit the temporary disk space for a reader's queries, or log a warning if not permitted."""
    limit = sql.Literal(READER_TEMPORARY_FILES)
    try:
        with connection.transaction():
            _run(connection, "ALTER ROLE {} SET temp_file_limit TO {}", role, limit)
    except psycopg.errors.InsufficientPrivilege as error:
        _log.warning("Could not limit disk space for a reader's queries.", error=error)


def _make_role(connection: psycopg.Connection[Any], name: str) -> bool:
    if _exists(connection, name):
        return False
    _run(connection, "CREATE ROLE {} NOLOGIN", name)
    return True


def _set_login(connection: psycopg.Connection[Any], user: str, password: str, role: str) -> None:
    """Create or change a login. The server and its log receive only the password's digest.

    The login role has the limits, because a pooler does not forward limits that a connection requests.
    """
    digest = connection.pgconn.encrypt_password(password.encode(), user.encode(), b"scram-sha-256").decode()
    verb = sql.SQL("ALTER" if _exists(connection, user) else "CREATE")
    _run(connection, "{} ROLE {} LOGIN PASSWORD {}", verb, user, sql.Literal(digest))
    _run(connection, "GRANT {} TO {}", role, user)
    for name, value in LIMITS.items():
        _run(connection, "ALTER ROLE {} SET {} TO {}", user, name, sql.Literal(value))


def _run(connection: psycopg.Connection[Any], statement: LiteralString, *parts: str | sql.Composable) -> None:
    """Run a statement whose braces are replaced by `parts`. A string is an identifier."""
    named = [sql.Identifier(part) if isinstance(part, str) else part for part in parts]
    connection.execute(sql.SQL(statement).format(*named))


def _passes_by(connection: psycopg.Connection[Any], user: str) -> bool:
    """Return whether a user bypasses row-level policies, for example as an administrator or table owner."""
    found = connection.execute(
        "SELECT FROM pg_roles WHERE rolname = %s AND (rolsuper OR rolbypassrls OR EXISTS ("
        "SELECT FROM pg_class WHERE relrowsecurity AND pg_has_role(pg_roles.oid, relowner, 'MEMBER')))",
        (user,),
    )
    return found.fetchone() is not None


def _exists(connection: psycopg.Connection[Any], role: str) -> bool:
    found = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,))
    return found.fetchone() is not None


def _schema(connection: psycopg.Connection[Any]) -> str:
    row = connection.execute("SELECT current_schema()").fetchone()
    assert row is not None
    return row[0]
