import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.adapters.postgres.migrate import check_schema
from orchestrator.adapters.postgres.migrate import migrate as migrate_database
from orchestrator.adapters.postgres.roles import make_login, make_roles, tie_reader
from orchestrator.adapters.redis.acl import USERS, write_acl_file
from orchestrator.errors import InvalidInput, Unavailable
from orchestrator.settings.environment import read_variable
from orchestrator.types import DEFAULT_TENANT, TenantId
from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir
from parley.embedded import stores
from parley.embedded.postgres import running_database
from parley.output import Answer, print_result, say

app = typer.Typer()

_CHECK_EVERY_S = 1.0
# Database roles by their name in --login.
_LOGIN_ROLES = {"runtime": "parley_runtime", "gateway": "parley_gateway"}


@contextmanager
def open_some_database(data_dir: Path) -> Iterator[str]:
    """Yield the database URL from the environment, or that of the data folder's server, started if necessary."""
    found = read_variable("PARLEY_DIRECT_DATABASE_URL") or read_variable("DATABASE_URL")
    found = found or running_database(data_dir.resolve())
    if found is not None:
        yield found
        return
    with stores(data_dir) as running:
        yield running.database_url


@app.command()
def migrate(
    data_dir: DataDir = DEFAULT_DATA_DIR,
    roles: Annotated[bool, typer.Option("--roles", help="Also create the database roles.")] = False,
    reader: Annotated[
        str | None, typer.Option(help="Login role that can read only the rows of --tenant.")
    ] = None,
    login: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=FILE",
            help="Let the user in FILE's URL log in as `runtime` or `gateway`. Also create the roles.",
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="Tenant that --reader can read.")] = DEFAULT_TENANT,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only check that this release can use the database."),
    ] = False,
    wait_s: Annotated[
        float,
        typer.Option("--for", min=0, help="Seconds that --check waits for a migration by another process."),
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Apply database migrations.

    The database is DATABASE_URL or, if that is not set, the data folder's embedded database, which `parley
    up` migrates automatically.
    """
    logins = [read_login(entry) for entry in login or []]
    if reader is not None and not reader.strip():
        raise InvalidInput("--reader needs the name of a login role.", field="reader")
    if check:
        await_schema(read_variable("DATABASE_URL"), wait_s)
        print_result(Answer({"usable": True}, ""), as_json=as_json)
        return
    made: list[str] = []
    with open_some_database(data_dir) as url:
        migrate_database(url)
        say("The database is up to date.")
        if roles or reader or logins:
            made = list(make_roles(url))
            say(f"Created the roles {', '.join(made)}." if made else "The roles already exist.")
        for role, address in logins:
            say(f"{make_login(url, address, role)} can log in with the privileges of {role}.")
        if reader:
            tie_reader(url, reader, TenantId(tenant))
            say(f"{reader} can read the rows of {tenant}.")
    print_result(Answer({"usable": True, "roles_made": made, "reader": reader}, ""), as_json=as_json)


def read_login(entry: str) -> tuple[str, str]:
    """Parse a --login option. Return the database role, and the URL from the file.

    Raises InvalidInput if the option is malformed or the file can't be read.
    """
    name, _, place = entry.partition("=")
    role = _LOGIN_ROLES.get(name)
    if role is None or not place:
        raise InvalidInput(f"--login requires runtime=FILE or gateway=FILE, not {entry}.", field="login")
    try:
        return role, Path(place).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{place} cannot be read: {error}.", field="login") from error


def await_schema(database_url: str | None, wait_s: float) -> None:
    """Wait up to `wait_s` seconds until this release can use the database schema.

    Raises Unavailable after that time, or InvalidInput if `database_url` is None.
    """
    if database_url is None:
        raise InvalidInput("--check requires DATABASE_URL.", field="DATABASE_URL")
    ends_at = time.monotonic() + wait_s
    while True:
        try:
            check_schema(database_url)
        except Unavailable:
            if time.monotonic() >= ends_at:
                raise
            time.sleep(_CHECK_EVERY_S)
        else:
            return


@app.command("redis-acl")
def redis_acl() -> None:
    """Print a Redis ACL file. The generated passwords go to standard error."""
    passwords = {name: secrets.token_urlsafe(24) for name in USERS}
    sys.stdout.write(write_acl_file(passwords))
    for name, password in passwords.items():
        say(f"{name} {password}")
