"""The roles of the database: made once by an administrator, then given to login users of their own (RT-22).

What each may do with each table is written in the database itself, by `parley_guard`.
"""

from __future__ import annotations

from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql

from orchestrator.errors import NotFound, Refused, Unavailable
from orchestrator.types import TenantId

OWNER: Final = "parley_owner"
"""Owns the tables: migrations run as it."""
RUNTIME: Final = "parley_runtime"
"""Workers: the rows of all tenants, no change of tables."""
GATEWAY: Final = "parley_gateway"
"""The gateway: the rows of the tenant that each transaction names."""
READER: Final = "parley_reader"
"""People who look with SQL: the rows of the one tenant that their login role is tied to."""

_SCHEMA_RIGHTS: tuple[tuple[str, LiteralString], ...] = (
    (OWNER, "USAGE, CREATE"),
    (RUNTIME, "USAGE"),
    (GATEWAY, "USAGE"),
    (READER, "USAGE"),
)


def make_roles(database_url: str) -> list[str]:
    """Make the four roles that are missing, and give all of them their rights; the names of the new ones.

    The database must be migrated, and the user of the address an administrator or the tables' owner who
    may make roles. Raises Unavailable, Refused.
    """
    try:
        with psycopg.connect(database_url, connect_timeout=10) as connection:
            made = [name for name, _ in _SCHEMA_RIGHTS if _make_role(connection, name)]
            for name, rights in _SCHEMA_RIGHTS:
                schema = sql.Identifier(_schema(connection))
                grant = sql.SQL("GRANT {} ON SCHEMA {} TO {}")
                connection.execute(grant.format(sql.SQL(rights), schema, sql.Identifier(name)))
            connection.execute("SELECT parley_guard_all()")
            return made
    except psycopg.errors.InsufficientPrivilege as error:
        raise Refused(f"This user may not make roles: {error.diag.message_primary}.") from error
    except psycopg.OperationalError as error:
        raise Unavailable("The database does not answer; check DATABASE_URL.") from error


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


def _exists(connection: psycopg.Connection[Any], role: str) -> bool:
    found = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,))
    return found.fetchone() is not None


def _schema(connection: psycopg.Connection[Any]) -> str:
    row = connection.execute("SELECT current_schema()").fetchone()
    assert row is not None
    return row[0]
