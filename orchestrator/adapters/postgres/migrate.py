"""Migrate a database to the current schema. Concurrent runs are safe, and a run without changes is fast."""

from importlib import resources
from typing import Any, Final

import psycopg
from sqlalchemy import create_engine

from orchestrator.adapters.postgres.errors import reached
from orchestrator.adapters.postgres.pool import Database, engine_url
from orchestrator.adapters.postgres.roles import make_session_flows_role
from orchestrator.errors import Unavailable

FIRST = "0001"
HEAD = "0001"
"""The newest revision. A test compares this value with the migration scripts."""
_LOCK = 0x5041524C4D494752
_GUARD: Final = "SELECT parley_guard_all()"
"""Statement that applies row-level policies to all tables, including new tables (RT-22)."""
# A new transaction ID has the same requirements as a write: a primary server and room for a lock.
_PING: Final = """SELECT version_num,
CASE WHEN current_setting('transaction_read_only') = 'off' THEN pg_current_xact_id() END FROM alembic_version"""
_REVISIONS: Final = """CREATE TABLE alembic_version (
    version_num varchar(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY
)"""


def migrate(database_url: str) -> None:
    """Apply missing migrations, and create the role for session flows.

    Raises Unavailable if the database does not respond.
    """
    with reached(), psycopg.connect(database_url, autocommit=True, connect_timeout=10) as connection:
        if current_revision(connection) != HEAD:
            connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
            found = current_revision(connection)
            if found is None:
                found = _make_first_schema(connection)
            if found != HEAD:
                _upgrade(database_url)
        make_session_flows_role(connection)


def check_schema(database_url: str) -> None:
    """Raise Unavailable if the schema is missing or too old, or the database does not respond."""
    with reached(), psycopg.connect(database_url, connect_timeout=10) as connection:
        found = current_revision(connection)
    _require(found)


async def ping_schema(database: Database) -> None:
    """Raise Unavailable if the schema is missing or too old, or the database rejects writes. For probes."""
    try:
        found = await database.fetch_one(_PING, {})
    except psycopg.errors.UndefinedTable:
        found = None
    _require(None if found is None else found[0])
    if found is not None and found[1] is None:
        raise Unavailable("The database is read-only: the server is a replica, or writes are disabled.")


def _require(found: str | None) -> None:
    if found is None or found < HEAD:
        raise Unavailable(
            f"The database is at {found or 'no schema'}, this release needs {HEAD}; run `parley migrate`."
        )


def current_revision(connection: psycopg.Connection[Any]) -> str | None:
    """Return the database's revision, or None if it has no schema."""
    row = connection.execute("SELECT to_regclass('alembic_version')").fetchone()
    if row is None or row[0] is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else row[0]


def read_first_schema() -> list[str]:
    folder = resources.files("orchestrator.adapters.postgres") / "schema"
    return [part.read_text("utf-8") for part in sorted(folder.iterdir(), key=lambda part: part.name)]


def _make_first_schema(connection: psycopg.Connection[Any]) -> str:
    """Create the schema of an empty database and return its revision.

    Alembic is not used, because its import takes longer. A test compares the result with Alembic's.
    """
    with connection.transaction():
        connection.execute(_REVISIONS)
        for part in read_first_schema():
            connection.execute(part.encode())
        connection.execute("INSERT INTO alembic_version VALUES (%s)", (FIRST,))
        # Do this before the commit: applying policies locks all tables, which could deadlock with running
        # workers.
        make_session_flows_role(connection)
        connection.execute(_GUARD)
    return FIRST


def _upgrade(database_url: str) -> None:
    from alembic import command  # noqa: PLC0415  # slow to import, rarely needed
    from alembic.config import Config  # noqa: PLC0415

    configuration = Config()
    configuration.set_main_option("script_location", "orchestrator.adapters.postgres:migrations")
    engine = create_engine(engine_url(database_url))
    try:
        with engine.begin() as connection:
            configuration.attributes["connection"] = connection
            command.upgrade(configuration, "head")
            connection.exec_driver_sql(_GUARD)
    finally:
        engine.dispose()
