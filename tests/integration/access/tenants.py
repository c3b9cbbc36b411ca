"""Rows of two tenants in every table of a database, and login users with the rights of each role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg

from orchestrator.types import TenantId

NOT_OF_TENANTS = {"alembic_version", "guarded_tables", "workers"}
A, B = TenantId("acme"), TenantId("bolt")

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


def url_of(database_url: str, login: str) -> str:
    return f"postgresql://{login}:secret@{database_url.rpartition('@')[2]}"


def tables_of(connection: psycopg.Connection[Any]) -> list[str]:
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    )
    return sorted(row[0] for row in found)


def sample(kind: str) -> str:
    """Return a value of a type. Vectors have the length of the column."""
    name, _, size = kind.partition("(")
    if name in {"vector", "halfvec"}:
        return f"'[{', '.join(['1'] * int(size.rstrip(')') or 3))}]'"
    return "'{}'" if kind.endswith("[]") else _SAMPLES[kind]


def insert_row(connection: psycopg.Connection[Any], table: str, tenant: str) -> None:
    """Insert a row of a tenant with all required values. Texts begin with the tenant's name."""
    columns = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        " AND attnotnull AND NOT atthasdef AND attidentity = ''",
        (table,),
    ).fetchall()
    unique = f"{tenant}_{uuid4().hex}"
    values = {name: f"'{unique}'" if kind == "text" else sample(kind) for name, kind in columns}
    values["tenant_id"] = f"'{tenant}'"
    connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(values.values())})")


def count(connection: psycopg.Connection[Any], table: str, tenant: str) -> int:
    """Return the number of readable rows, or 0 for an unreadable table."""
    try:
        row = connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = '{tenant}'").fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return 0
    assert row is not None
    return row[0]
