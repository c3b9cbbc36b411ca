"""Every command of docker-compose.yml, run with the variables and secrets that the file gives it."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import psycopg
import pytest
import redis
from psycopg.conninfo import conninfo_to_dict

from orchestrator.client import AsyncClient
from tests.integration.deploy.compose import OURS, ROOT, mounts, read_compose
from tests.integration.deploy.containers import Container, ended
from tests.integration.deploy.servers import deployed_redis

RUNNING = ("gateway", "turns", "internal", "beat", "flower")


def make_secrets(folder: Path) -> Path:
    secrets = folder / "secrets"
    subprocess.run([ROOT / "deploy" / "make-secrets.sh", secrets], check=True, capture_output=True)
    return secrets


def put(secrets: Path, name: str, value: str) -> None:
    (secrets / name).chmod(0o644)
    (secrets / name).write_text(value)


def container(name: str, secrets: Path, folder: Path) -> Container:
    """With the secrets that the file gives this one, and no others."""
    service = read_compose()["services"][name]
    mounted = folder / "mounted" / name
    mounted.mkdir(parents=True)
    for target, source in mounts(service).items():
        shutil.copy(secrets / source, mounted / target)
    environment = {key: str(value) for key, value in service["environment"].items() if value is not None}
    return Container(name, service["command"], environment, mounted, folder)


async def say_hello(url: str, key: str) -> str:
    async with AsyncClient(url, api_key=key) as client:
        session = await client.create_session(user_id="ada")
        turn = await client.submit(session["session_id"], "Hello", wait_s=30)
        return turn["status"]


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


def users_connected(database_url: str) -> set[str]:
    with psycopg.connect(database_url) as connection:
        found = connection.execute(
            "SELECT DISTINCT usename FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return {row[0] for row in found}


@pytest.mark.timeout(900)
def test_a_deployment_comes_up_answers_is_diagnosed_and_stops(database_url: str, tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path)
    services = read_compose()["services"]
    with deployed_redis(tmp_path, secrets) as redis_url, logins(database_url, secrets) as users:
        put(secrets, "redis_url", redis_url)
        put(secrets, "broker_url", redis_url)
        containers = {name: container(name, secrets, tmp_path) for name in OURS}

        migrated = containers["migrate"].run()
        assert migrated.returncode == 0, migrated.stderr
        assert containers["migrate"].run().returncode == 0, "a second time changes nothing"

        with ended(containers):
            for name in RUNNING:
                check = services[name]["healthcheck"]["test"][1:]
                assert containers[name].check(check) == 1, f"{name} is well before it runs"
                containers[name].start()
            for name in RUNNING:
                containers[name].await_well(services[name]["healthcheck"]["test"][1:])

            gateway = f"http://127.0.0.1:{containers['gateway'].port}"
            assert httpx.get(f"{gateway}/v1/sessions").status_code == 401
            key = containers["migrate"].run("keys", "create", "tests")
            assert key.returncode == 0, key.stderr
            assert asyncio.run(say_hello(gateway, key.stdout.strip())) == "done"

            assert users_connected(database_url) == set(users.values()), "nobody runs as the owner"

            refused = containers["doctor"].run("keys", "create", "more")
            assert refused.returncode != 0, "a worker's user has no part of keys"
            diagnosed = containers["doctor"].run()
            assert diagnosed.returncode == 0, diagnosed.stdout + diagnosed.stderr
            assert f"guarded by tenant, also against {users['runtime']}" in diagnosed.stdout

            for name in RUNNING:
                assert containers[name].stop() in {0, -signal.SIGTERM}, containers[name].log.read_text()[
                    -2000:
                ]


def test_parleys_account_may_not_harm_the_redis_server(tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path)
    with deployed_redis(tmp_path, secrets) as url, redis.Redis.from_url(url) as client:
        assert client.info("memory")["maxmemory_policy"] == "noeviction"
        assert client.info("persistence")["aof_enabled"] == 1
        for command in ("FLUSHALL", "CONFIG GET *", "KEYS *", "SHUTDOWN", "ACL LIST", "DEBUG SLEEP 0"):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*command.split())
        stranger = url.replace("parley:", "default:")
        with redis.Redis.from_url(stranger) as other, pytest.raises(redis.RedisError):
            other.ping()
