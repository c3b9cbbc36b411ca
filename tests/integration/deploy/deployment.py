"""A whole deployment on the tests' stores: migrated, started, talked to, looked at by the doctor, and stopped.

Containers come from Compose or from Kubernetes; when one counts as ready is for the caller to say.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import psycopg
from psycopg.conninfo import conninfo_to_dict

from orchestrator.client import AsyncClient
from tests.integration.chaos.fleet import wait_until
from tests.integration.deploy.containers import WELL_WITHIN_S, Container
from tests.integration.deploy.dockerfile import ROOT
from tests.integration.deploy.servers import deployed_redis

ROLES = ("gateway", "turns", "internal", "beat", "flower")


def make_secrets(folder: Path) -> Path:
    secrets = folder / "secrets"
    subprocess.run([ROOT / "deploy" / "make-secrets.sh", secrets], check=True, capture_output=True)
    return secrets


@contextmanager
def stores_for(database_url: str, secrets: Path, folder: Path) -> Iterator[dict[str, str]]:
    """Put the tests' stores into `secrets`, each address with the rights that its readers have; yields the users."""
    with deployed_redis(folder, secrets) as redis_urls, logins(database_url, secrets) as users:
        for account, redis_url in redis_urls.items():
            if (secrets / f"{account}_redis_url").exists():
                put(secrets, f"{account}_redis_url", redis_url)
        yield users


def put(secrets: Path, name: str, value: str) -> None:
    (secrets / name).chmod(0o644)
    (secrets / name).write_text(value)


def mounted(secrets: Path, items: Mapping[str, str], folder: Path) -> Path:
    """What one container finds in /run/secrets: by the name there, the name of the secret; and nothing else."""
    folder.mkdir(parents=True)
    for target, source in items.items():
        shutil.copy(secrets / source, folder / target)
    return folder


@contextmanager
def logins(database_url: str, secrets: Path) -> Iterator[dict[str, str]]:
    """Addresses as the script makes them, at the tests' server; their users are gone afterwards."""
    given = conninfo_to_dict(database_url)
    users = {name: f"{name}_{uuid4().hex[:8]}" for name in ("runtime", "gateway")}
    for name, user in users.items():
        password = urlsplit((secrets / f"{name}_database_url").read_text()).password
        url = f"postgresql://{user}:{password}@{given['host']}:{given['port']}/{given['dbname']}"
        put(secrets, f"{name}_database_url", url)
    put(secrets, "owner_database_url", database_url)
    try:
        yield users
    finally:
        with psycopg.connect(database_url, autocommit=True) as connection:
            for user in users.values():
                connection.execute(f"DROP OWNED BY {user}")
                connection.execute(f"DROP ROLE {user}")


def bring_up(roles: Mapping[str, Container], is_ready: Callable[[str], bool]) -> None:
    """Start every role, none of which may count as ready before, and wait until all are."""
    for name, container in roles.items():
        assert not is_ready(name), f"{name} is well before it runs"
        container.start()
    for name, container in roles.items():
        wait_until(
            lambda name=name, container=container: container.lives() and is_ready(name),
            within_s=WELL_WITHIN_S,
            what=f"{name} is well, see {container.log}",
        )


def talk(gateway: Container, owner: Container) -> None:
    """Nobody talks to it without a key; with one that its owner made, a turn is run."""
    url = f"http://127.0.0.1:{gateway.port}"
    assert httpx.get(f"{url}/v1/sessions").status_code == 401
    key = owner.run("keys", "create", "tests")
    assert key.returncode == 0, key.stderr
    assert asyncio.run(_say_hello(url, key.stdout.strip())) == "done"


async def _say_hello(url: str, key: str) -> str:
    async with AsyncClient(url, api_key=key) as client:
        session = await client.create_session(user_id="ada")
        turn = await client.submit(session["session_id"], "Hello", wait_s=30)
        return turn["status"]


def users_connected(database_url: str) -> set[str]:
    with psycopg.connect(database_url) as connection:
        found = connection.execute(
            "SELECT DISTINCT usename FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return {row[0] for row in found}


def be_diagnosed(container: Container, user: str) -> None:
    """The doctor finds nothing wrong from there, where nobody may make keys."""
    refused = container.run("keys", "create", "more")
    assert refused.returncode != 0, "a worker's user has no part of keys"
    diagnosed = container.run("doctor")
    assert diagnosed.returncode == 0, diagnosed.stdout + diagnosed.stderr
    assert f"guarded by tenant, also against {user}" in diagnosed.stdout


def stop_all(roles: Mapping[str, Container]) -> None:
    for container in roles.values():
        assert container.stop() in {0, -signal.SIGTERM}, container.log.read_text()[-2000:]
