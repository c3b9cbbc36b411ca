import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from orchestrator.adapters.postgres.keys import PostgresKeys
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.errors import InvalidInput
from orchestrator.turns.access import ApiKey, Scope
from orchestrator.turns.submission import IDENTIFIER_PATTERN
from orchestrator.types import DEFAULT_TENANT, JsonObject, TenantId, UserId
from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir
from parley.commands.stores import open_some_database
from parley.output import Answer, Rows, print_json, print_result, say

app = typer.Typer(help="Manage API keys.", no_args_is_help=True)

_LISTED = ("key_id", "name", "tenant_id", "user_id", "scopes", "status", "created_at", "expires_at")
_T = TypeVar("_T")

Tenant = Annotated[str, typer.Option(help="Tenant whose sessions the key can access.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the key, shown in lists.")],
    tenant: Tenant = DEFAULT_TENANT,
    operator: Annotated[bool, typer.Option("--operator", help="Allow all operations in the tenant.")] = False,
    user: Annotated[str | None, typer.Option(help="Limit the key to this user's sessions.")] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Number of days until the key expires.")] = None,
    as_json: AsJson = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Create a key and print it to standard output. Parley stores only a hash, so the key is shown only once."""
    _require_identifier(tenant, "tenant")
    if user is not None:
        _require_identifier(user, "user")
    if operator and user is not None:
        raise InvalidInput(
            "An operator key can't be limited to a user: use either --operator or --user.", field="user"
        )
    scope = Scope.OPERATOR if operator else Scope.USER
    ends = None if days is None else datetime.now(UTC) + timedelta(days=days)
    key, text = _ask(
        data_dir,
        lambda kept: kept.create(
            TenantId(tenant),
            name,
            frozenset({scope}),
            user_id=None if user is None else UserId(user),
            expires_at=ends,
        ),
    )
    if as_json:
        print_json({**key_object(key), "key": text})
        return
    print(text)
    say(f"Created key {key.key_id} for tenant {tenant}. Save it now; it won't be shown again.")


@app.command("list")
def list_keys(
    tenant: Annotated[str | None, typer.Option(help="Only keys of this tenant.")] = None,
    as_json: AsJson = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """List all keys, including expired and revoked keys."""
    found = _ask(data_dir, lambda kept: kept.list(None if tenant is None else TenantId(tenant)))
    print_result(Rows([key_object(key) for key in found], _LISTED), as_json=as_json)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Key ID.")],
    as_json: AsJson = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Revoke a key. Takes effect within a second."""
    revoked = key_object(_ask(data_dir, lambda kept: kept.revoke(key)))
    print_result(Answer(revoked, f"{revoked['key_id']} is {revoked['status']}"), as_json=as_json)


def key_object(key: ApiKey) -> JsonObject:
    now = datetime.now(UTC)
    expired = key.expires_at is not None and key.expires_at <= now
    return {
        "key_id": key.key_id,
        "name": key.name,
        "tenant_id": key.tenant_id,
        "user_id": key.user_id,
        "scopes": " ".join(sorted(key.scopes)),
        "status": "revoked" if key.revoked_at is not None else "expired" if expired else "valid",
        "created_at": key.created_at and key.created_at.isoformat(timespec="seconds"),
        "expires_at": key.expires_at and key.expires_at.isoformat(timespec="seconds"),
    }


def _require_identifier(text: str, field: str) -> None:
    if not IDENTIFIER_PATTERN.fullmatch(text):
        raise InvalidInput(f"{text!r} is not a valid ID: use letters, digits and . _ : @ -", field=field)


def _ask(data_dir: Path, call: Callable[[Any], Awaitable[_T]]) -> _T:
    """Migrate the database, then pass the key store to `call` and return its result."""

    async def ask(url: str) -> _T:
        async with Database(url, size=2, reading_size=1, application="parley keys") as database:
            return await call(PostgresKeys(database))

    with open_some_database(data_dir) as url:
        migrate(url)
        return asyncio.run(ask(url))
