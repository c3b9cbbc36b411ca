"""`parley migrate`: bring the database to the newest schema."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput, Unavailable
from parley.commands.options import DEFAULT_DATA_DIR, DataDir
from parley.commands.output import say
from parley.embedded import stores

_LOOK_EVERY_S = 1.0


def migrate(
    data_dir: DataDir = DEFAULT_DATA_DIR,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail unless this release can use the database.")
    ] = False,
    wait_s: Annotated[
        float, typer.Option("--for", min=0, help="Seconds that --check waits for another to migrate.")
    ] = 0.0,
) -> None:
    """Migrate DATABASE_URL, or the embedded database of the data folder (`up` does so by itself)."""
    from orchestrator.adapters.postgres.migrate import migrate as migrate_database  # noqa: PLC0415  # slow to import

    database_url = os.environ.get("DATABASE_URL")
    if check:
        await_schema(database_url, wait_s)
        return
    if database_url is not None:
        migrate_database(database_url)
    else:
        with stores(data_dir) as running:
            migrate_database(running.database_url)
    say("The database is up to date.")


def await_schema(database_url: str | None, wait_s: float) -> None:
    """Wait for the schema of this release, or a newer one. Raises InvalidInput, Unavailable."""
    from orchestrator.adapters.postgres.migrate import check_schema  # noqa: PLC0415  # slow to import

    if database_url is None:
        raise InvalidInput("--check looks at DATABASE_URL; set it.", field="DATABASE_URL")
    ends_at = time.monotonic() + wait_s
    while True:
        try:
            check_schema(database_url)
        except Unavailable:
            if time.monotonic() >= ends_at:
                raise
            time.sleep(_LOOK_EVERY_S)
        else:
            return
