"""The roles of the database: made once by an administrator, and the login users that have them (RT-22).

What each may do with each table is written in the database itself, by `parley_guard`.
"""

from contextlib import suppress
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from orchestrator.adapters.postgres.errors import NO_ROLE
from orchestrator.adapters.postgres.pool import LIMITS
from orchestrator.errors import InvalidInput, NotFound, Refused, Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.types import TenantId

OWNER: Final = "parley_owner"
"""Owns the tables: migrations run as it."""
RUNTIME: Final = "parley_runtime"
"""Workers: the rows of all tenants, no change of tables."""
GATEWAY: Final = "parley_gateway"
"""The gateway: the rows of the tenant that each transaction names."""
READER: Final = "parley_reader"
"""People who look with SQL: the rows of the one tenant that their login role is tied to."""
SESSION_FLOWS: Final = "parley_session_flows"
"""Session flows: scratchpads and what is remembered, nothing of sessions. Nobody logs in as it: workers act as it."""
SESSION_FLOWS_CONNECTIONS: Final = 4
"""How many connections a worker keeps to act as it."""

_SCHEMA_RIGHTS: tuple[tuple[str, LiteralString], ...] = (
    (OWNER, "USAGE, CREATE"),
    (RUNTIME, "USAGE"),
    (GATEWAY, "USAGE"),
    (READER, "USAGE"),
    (SESSION_FLOWS, "USAGE"),
)
_MAY_ACT: LiteralString = (
    "SELECT coalesce(pg_has_role(to_regrole(%(role)s)::oid, 'MEMBER')"
    " AND has_table_privilege(to_regrole(%(role)s)::oid, 'preferences', 'SELECT')"
    " AND has_schema_privilege(to_regrole(%(role)s)::oid, current_schema(), 'USAGE'), false)"
)
_ATTEMPTS = 3
_MADE_BY_ANOTHER = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DuplicateObject,
    psycopg.errors.InternalError_,
)
"""Another database of the server makes the role at this moment."""
_LOCK: Final = 0x5041524C524F4C45
"""Two that give the same rights at once would get into each other's way."""

_log = get_logger(__name__)


def make_roles(database_url: str) -> list[str]:
    """Make the five roles that are missing, and give all of them their rights; the names of the new ones.

    The database must be migrated, and the user of the address an administrator or the tables' owner who
    may make roles. Raises Unavailable, Refused.
    """
    try:
        with psycopg.connect(database_url, connect_timeout=10) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            made = [name for name, _ in _SCHEMA_RIGHTS if _make_role(connection, name)]
            for name, rights in _SCHEMA_RIGHTS:
                schema = sql.Identifier(_schema(connection))
                grant = sql.SQL("GRANT {} ON SCHEMA {} TO {}")
                connection.execute(grant.format(sql.SQL(rights), schema, sql.Identifier(name)))
            connection.execute(
                sql.SQL("GRANT {} TO {}").format(sql.Identifier(SESSION_FLOWS), sql.Identifier(RUNTIME))
            )
            # Every process looks whether the schema is the one of its release.
            readers = sql.SQL(", ").join(sql.Identifier(name) for name, _ in _SCHEMA_RIGHTS)
            connection.execute(sql.SQL("GRANT SELECT ON alembic_version TO {}").format(readers))
            connection.execute("SELECT parley_guard_all()")
            return made
    except psycopg.errors.InsufficientPrivilege as error:
        raise Refused(f"This user may not make roles: {error.diag.message_primary}.") from error
    except psycopg.OperationalError as error:
        raise Unavailable("The database does not answer; check DATABASE_URL.") from error


def may_run_session_flows(connection: psycopg.Connection[Any]) -> bool:
    """Say whether this user may act as the role of session flows, and that has its rights here.

    Roles belong to the server and rights to the database: either may be there without the other.
    """
    row = connection.execute(_MAY_ACT, {"role": SESSION_FLOWS}).fetchone()
    return row is not None and row[0]


def make_session_flows_role(connection: psycopg.Connection[Any]) -> None:
    """Make the role of session flows, and let this user act as it, where it may do so; else `parley doctor` tells."""
    role = sql.Identifier(SESSION_FLOWS)
    try:
        for _ in range(_ATTEMPTS):
            if may_run_session_flows(connection):
                return
            with suppress(*_MADE_BY_ANOTHER), connection.transaction():
                _make_role(connection, SESSION_FLOWS)
                schema = sql.Identifier(_schema(connection))
                connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, role))
                connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(role))
                connection.execute("SELECT parley_guard_all()")
    except psycopg.errors.InsufficientPrivilege as error:
        _log.warning(NO_ROLE, error=error)


def make_login(database_url: str, login_url: str, role: str) -> str:
    """Let the user of an address log in with its password, with the rights of one role; the user's name.

    A user who is there gets this password. Raises InvalidInput for an address without user and password,
    Refused for a user with more rights than the role or when it may not be made, Unavailable.
    """
    given = conninfo_to_dict(login_url)
    user, password = given.get("user"), given.get("password")
    if not user or not password:
        raise InvalidInput(f"The address for {role} must name a user and a password.", field="login")
    try:
        with psycopg.connect(database_url, connect_timeout=10) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            if _passes_by(connection, str(user)):
                raise Refused(f"{user} may do more than {role}: name another user in its address.")
            _set_login(connection, str(user), str(password), role)
    except psycopg.errors.InsufficientPrivilege as error:
        raise Refused(f"This user may not make logins: {error.diag.message_primary}.") from error
    except psycopg.OperationalError as error:
        raise Unavailable("The database does not answer; check DATABASE_URL.") from error
    return str(user)


def tie_reader(database_url: str, role: str, tenant_id: TenantId) -> None:
    """Let an existing login role read the rows of one tenant, and no others. Raises NotFound, Unavailable."""
    try:
        with psycopg.connect(database_url, connect_timeout=10) as connection:
            if not _exists(connection, role):
                raise NotFound("database role", role)
            membership = sql.SQL("GRANT {} TO {}")
            connection.execute(membership.format(sql.Identifier(READER), sql.Identifier(role)))
            connection.execute(
                "INSERT INTO tenant_readers (role, tenant_id) VALUES (%s, %s)"
                " ON CONFLICT (role) DO UPDATE SET tenant_id = excluded.tenant_id",
                (role, tenant_id),
            )
    except psycopg.OperationalError as error:
        raise Unavailable("The database does not answer; check DATABASE_URL.") from error


def _make_role(connection: psycopg.Connection[Any], name: str) -> bool:
    if _exists(connection, name):
        return False
    connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(name)))
    return True


def _set_login(connection: psycopg.Connection[Any], user: str, password: str, role: str) -> None:
    """The server, and its log, are given a digest of the password only.

    The limits are the login's own, because a pooler passes on none that a connection asks for.
    """
    digest = connection.pgconn.encrypt_password(password.encode(), user.encode(), b"scram-sha-256").decode()
    verb = sql.SQL("ALTER" if _exists(connection, user) else "CREATE")
    statement = sql.SQL("{} ROLE {} LOGIN PASSWORD {}")
    connection.execute(statement.format(verb, sql.Identifier(user), sql.Literal(digest)))
    connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(user)))
    for name, value in LIMITS.items():
        limit = sql.SQL("ALTER ROLE {} SET {} TO {}")
        connection.execute(limit.format(sql.Identifier(user), sql.Identifier(name), sql.Literal(value)))


def _passes_by(connection: psycopg.Connection[Any], user: str) -> bool:
    """Look whether policies do not bind a user: an administrator, or an owner of tables."""
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
