"""A database with row-level security for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.roles import GATEWAY, RUNTIME, make_roles, tie_reader
from tests.integration.access.tenants import NOT_OF_TENANTS, A, B, Place, insert_row, tables_of, url_of


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
            urls[name] = url_of(database_url, login)
            if role is None:
                tie_reader(database_url, login, A)
        yield Place(database_url, urls)
        for url in urls.values():
            login = str(conninfo_to_dict(url)["user"])
            connection.execute(f"DROP OWNED BY {login}")
            connection.execute(f"DROP ROLE {login}")


@pytest.fixture(scope="module")
def filled(place: Place) -> Place:
    """Insert a row of both tenants into every table, without foreign keys and triggers."""
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for table in set(tables_of(connection)) - NOT_OF_TENANTS:
            for tenant in (A, B):
                if table != "tenant_readers":
                    insert_row(connection, table, tenant)
    return place
