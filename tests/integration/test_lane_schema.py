"""The schema: migrations and models say the same, and several processes may migrate at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from orchestrator.adapters.postgres.migrate import HEAD, current_revision, migrate
from orchestrator.adapters.postgres.models import metadata
from orchestrator.adapters.postgres.pool import engine_url
from orchestrator.errors import Unavailable


def test_migrating_at_once_is_safe(empty_database_url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(migrate, [empty_database_url] * 4))
    with psycopg.connect(empty_database_url) as connection:
        assert current_revision(connection) == HEAD


def test_the_models_are_what_the_migrations_make(database_url: str) -> None:
    """RT-20"""
    migrate(database_url)
    engine = create_engine(engine_url(database_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences: list[Any] = compare_metadata(context, metadata)
    engine.dispose()
    assert differences == []


def test_the_newest_script_is_the_head() -> None:
    configuration = Config()
    configuration.set_main_option("script_location", "orchestrator.adapters.postgres:migrations")
    assert ScriptDirectory.from_config(configuration).get_current_head() == HEAD


def test_every_row_carries_its_tenant() -> None:
    """RT-22"""
    without = {name for name, table in metadata.tables.items() if "tenant_id" not in table.c}
    assert without == {"workers", "guarded_tables"}


def test_no_index_names_what_a_running_turn_changes() -> None:
    """RT-19: queued, running and done are updates in place."""
    turns = metadata.tables["turns"]
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
    for index in turns.indexes:
        predicate = str(index.dialect_options["postgresql"]["where"])
        named = {column.name for column in index.columns} | set(predicate.replace("(", " ").split())
        assert not hot & named, index.name


def test_a_database_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        migrate("postgresql://nobody@127.0.0.1:1/none")
