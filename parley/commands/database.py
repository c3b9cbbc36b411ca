"""`parley migrate`: bring the database to the newest schema."""

from __future__ import annotations

import os

from parley.commands.options import DEFAULT_DATA_DIR, DataDir
from parley.commands.output import say
from parley.embedded import stores


def migrate(data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Migrate DATABASE_URL, or the embedded database of the data folder (`up` does so by itself)."""
    from orchestrator.adapters.postgres.migrate import migrate as migrate_database  # noqa: PLC0415  # slow to import

    database_url = os.environ.get("DATABASE_URL")
    if database_url is not None:
        migrate_database(database_url)
    else:
        with stores(data_dir) as running:
            migrate_database(running.database_url)
    say("The database is up to date.")
