"""The schema: tables in code match the migrations, and concurrent migrations are possible."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy import Inspector, create_engine, inspect
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

from orchestrator.adapters.postgres.migrate import HEAD, _upgrade, current_revision, migrate
from orchestrator.adapters.postgres.pool import Database, engine_url
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.postgres.statements import Statement, statement
from orchestrator.adapters.postgres.tables import metadata
from orchestrator.errors import Unavailable
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.cases import for_each


@pytest.fixture
def schema(database_url: str) -> Iterator[Inspector]:
    """Return the tables of a migrated database."""
    migrate(database_url)
    engine = create_engine(engine_url(database_url))
    with engine.connect() as connection:
        yield inspect(connection)
    engine.dispose()


def test_migrating_at_once_is_safe(empty_database_url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(migrate, [empty_database_url] * 4))
    with psycopg.connect(empty_database_url) as connection:
        assert current_revision(connection) == HEAD


DESCRIBED = """
    SELECT 'column', attrelid::regclass::text, attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0
    UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT 'constraint', conrelid::regclass::text, conname || ' ' || pg_get_constraintdef(oid)
    FROM pg_constraint
    UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'function', proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT 'policy', tablename, concat_ws(' ', policyname, roles, cmd, qual, with_check) FROM pg_policies
    UNION ALL SELECT 'rights', oid::regclass::text, concat_ws(' ', relacl::text, relrowsecurity, relforcerowsecurity)
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'revision', version_num, '' FROM alembic_version
    ORDER BY 1, 2, 3"""


def test_an_empty_database_is_made_as_alembic_would(database_url: str) -> None:
    """Without importing Alembic, which takes longer than the schema itself."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        found = {}
        for make in (migrate, _upgrade):  # one after the other: roles belong to the whole cluster
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
            assert current_revision(connection) is None
            make(database_url)
            found[make] = connection.execute(DESCRIBED.encode()).fetchall()

    assert len(found[migrate]) > 300
    assert found[migrate] == found[_upgrade]


@pytest.mark.filterwarnings("ignore:Did not recognize type 'vector'")
def test_the_tables_in_code_are_those_of_the_schema(schema: Inspector) -> None:
    """RT-20: each declared column exists with its type; the schema may have more."""
    for name, table in metadata.tables.items():
        declared = {column.name: _written(column.type) for column in table.columns}
        made = schema.get_columns(name)
        assert declared == {
            column["name"]: _written(column["type"]) for column in made if column["name"] in declared
        }, name


def test_no_index_names_what_a_running_turn_changes(schema: Inspector) -> None:
    """RT-19: status changes to queued, running and done are in-place updates."""
    hot = {
        "status",
        "attempts",
        "token",
        "epoch",
        "error",
        "result",
        "started_at",
        "deadline_at",
        "finished_at",
    }
    indexes = schema.get_indexes("turns")
    assert len(indexes) > 1
    for index in indexes:
        predicate = str(index.get("dialect_options", {}).get("postgresql_where", ""))
        named = {*index["column_names"], *predicate.replace("(", " ").split()}
        assert not hot & named, index["name"]


def test_a_database_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        migrate("postgresql://nobody@127.0.0.1:1/none")


def _written(kind: TypeEngine[Any]) -> str:
    return kind.compile(dialect=postgresql.dialect())


@for_each(
    ("name", "without"),
    [("claim", ""), ("commit_turn", "last whole"), ("commit_turn", "last step"), ("take_turn", "")],
)
async def test_the_next_turn_is_found_by_indexes(database_url: str, name: str, without: str) -> None:
    """RT-19, RT-20: also with sequences, neither the queue's length nor other sessions matter."""
    plan = await _plan(database_url, statement(name, frozenset(without.split())))
    assert any("Index Scan using turns_session_id_seq_key" in line for line in plan), plan
    assert not any("Seq Scan" in line for line in plan), plan


@pytest.mark.parametrize("name", ["submit", "last_events", "load_notes"])
async def test_what_names_a_session_visits_no_other(empty_database_url: str, name: str) -> None:
    """RT-19: also with plans from before any sessions existed, when the tenant seemed equally selective."""
    plan = await _plan(empty_database_url, statement(name))
    found = [line for line in plan if "Index Cond" in line]
    assert found, plan
    assert all("session_id = " in line for line in found), plan


async def _plan(database_url: str, asked: Statement) -> list[str]:
    """Return the plan of a hot statement, for any arguments."""
    migrate(database_url)
    query = f"EXPLAIN (GENERIC_PLAN, COSTS OFF) {asked.text}"
    async with Database(database_url) as database, database.pool.connection() as connection:
        found = connection.pgconn.exec_(query.encode())
    return [(found.get_value(line, 0) or b"").decode() for line in range(found.ntuples)]


HURRIED = "SELECT current_setting('synchronous_commit')"


async def test_only_what_may_be_done_again_is_not_waited_for(empty_database_url: str) -> None:
    """RT-2, RT-8, RT-9: the start of a call is flushed before the call, its end before anything else."""
    migrate(empty_database_url)
    names = {"session_id": "s", "tenant_id": DEFAULT_TENANT, "turn_id": "t", "token": 0, "epoch": 0}
    step = {**names, "kind": "tool", "request_hash": "", "result": None, "duration_ms": None}
    async with Database(empty_database_url) as database:

        async def waits(name: str, **arguments: Any) -> bool:
            async with database.hot_transaction() as transaction:
                await transaction.fetch_all("SET LOCAL synchronous_commit = on", {})
                assert await transaction.fetch_all(statement(name), arguments)
                return await transaction.fetch_one(HURRIED, {}) == ("on",)

        await PostgresSessions(database).create(DEFAULT_TENANT, "travel", session_id=SessionId("s"))
        turn = (
            "INSERT INTO turns (turn_id, session_id, tenant_id, seq, kind, form) "
            "VALUES ('t', 's', 'default', 1, 'user', 'text')"
        )
        await database.fetch_all(turn, {})
        await database.fetch_all("UPDATE lanes SET pending = 1, next_seq = 2", {})
        taken = {"ttl_s": 1.0, "deadline_s": 1.0, "max_attempts": 1, "crashes_below": 1, "worker_id": 1}
        assert not await waits("claim", session_id="s", **taken)
        token = await database.fetch_one("SELECT lease_token FROM lanes", {})
        assert token is not None
        step |= {"token": token[0]}
        assert not await waits("record_step", **step, key="search", status="finished")
        assert await waits("record_step", **step, key="book", status="started")
        assert await waits("record_step", **step, key="book", status="finished")
        note = (
            "INSERT INTO outbox (tenant_id, session_id, kind, payload) VALUES ('default', 's', 'notes', '{}')"
        )
        await database.fetch_all(note, {})
        assert not await waits("take_outbox", kinds=["notes"], again_after_s=10.0, limit=1)
        assert not await waits("acknowledge_outbox", ids=[1])
