"""`parley migrate`: bring the database to the newest schema."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput, Unavailable
from orchestrator.settings.environment import read_variable
from orchestrator.types import DEFAULT_TENANT, TenantId
from parley.commands.options import DEFAULT_DATA_DIR, DataDir
from parley.commands.output import say
from parley.embedded import stores
from parley.embedded.postgres import running_database

_LOOK_EVERY_S = 1.0
_LOGIN_ROLES = {"runtime": "parley_runtime", "gateway": "parley_gateway"}
"""The roles that processes log in with; the others are for people and for migrations."""


@contextmanager
def some_database(data_dir: Path) -> Iterator[str]:
    """The server that the environment names, that of the running `up`, or the folder's, started for the block."""
    found = read_variable("PARLEY_DIRECT_DATABASE_URL") or read_variable("DATABASE_URL")
    found = found or running_database(data_dir.resolve())
    if found is not None:
        yield found
        return
    with stores(data_dir) as running:
        yield running.database_url


def migrate(
    data_dir: DataDir = DEFAULT_DATA_DIR,
    roles: Annotated[bool, typer.Option("--roles", help="Make the database's roles as well.")] = False,
    reader: Annotated[
        str | None, typer.Option(help="Let this login role read the rows of --tenant, and no others.")
    ] = None,
    login: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=FILE",
            help="Let the user of the address in FILE log in as `runtime` or `gateway`; makes the roles as well.",
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="The tenant of --reader.")] = DEFAULT_TENANT,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail unless this release can use the database.")
    ] = False,
    wait_s: Annotated[
        float, typer.Option("--for", min=0, help="Seconds that --check waits for another to migrate.")
    ] = 0.0,
) -> None:
    """Migrate DATABASE_URL, or the embedded database of the data folder (`up` does so by itself)."""
    from orchestrator.adapters.postgres.migrate import migrate as migrate_database  # noqa: PLC0415  # slow to import
    from orchestrator.adapters.postgres.roles import make_login, make_roles, tie_reader  # noqa: PLC0415

    logins = [read_login(entry) for entry in login or []]
    if reader is not None and not reader.strip():
        raise InvalidInput("Name a login role of the database.", field="reader")
    if check:
        await_schema(read_variable("DATABASE_URL"), wait_s)
        return
    with some_database(data_dir) as url:
        migrate_database(url)
        say("The database is up to date.")
        if roles or reader or logins:
            made = make_roles(url)
            say(f"Made the roles {', '.join(made)}." if made else "The roles are there.")
        for role, address in logins:
            say(f"{make_login(url, address, role)} logs in with the rights of {role}.")
        if reader:
            tie_reader(url, reader, TenantId(tenant))
            say(f"{reader} reads the rows of {tenant}.")


def read_login(entry: str) -> tuple[str, str]:
    """Role of the database and address of one `--login`. Raises InvalidInput."""
    name, _, place = entry.partition("=")
    role = _LOGIN_ROLES.get(name)
    if role is None or not place:
        raise InvalidInput(f"--login wants runtime=FILE or gateway=FILE, not {entry}.", field="login")
    try:
        return role, Path(place).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{place} cannot be read: {error}.", field="login") from error


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
