"""Every command of docker-compose.yml, run with the variables and secrets that the file gives it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from pathlib import Path

import httpx
import pytest
import redis

from orchestrator.client import AsyncClient
from tests.integration.deploy.compose import OURS, ROOT, read_compose
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
    service = read_compose()["services"][name]
    environment = {key: str(value) for key, value in service["environment"].items() if value is not None}
    return Container(name, service["command"], environment, secrets, folder)


async def say_hello(url: str, key: str) -> str:
    async with AsyncClient(url, api_key=key) as client:
        session = await client.create_session(user_id="ada")
        turn = await client.submit(session["session_id"], "Hello", wait_s=30)
        return turn["status"]


@pytest.mark.timeout(900)
def test_a_deployment_comes_up_answers_is_diagnosed_and_stops(database_url: str, tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path)
    services = read_compose()["services"]
    with deployed_redis(tmp_path, secrets) as redis_url:
        put(secrets, "database_url", database_url)
        put(secrets, "redis_url", redis_url)
        put(secrets, "broker_url", redis_url)
        containers = {name: container(name, secrets, tmp_path) for name in OURS}

        migrated = containers["migrate"].run()
        assert migrated.returncode == 0, migrated.stderr

        with ended(containers):
            for name in RUNNING:
                check = services[name]["healthcheck"]["test"][1:]
                assert containers[name].check(check) == 1, f"{name} is well before it runs"
                containers[name].start()
            for name in RUNNING:
                containers[name].await_well(services[name]["healthcheck"]["test"][1:])

            gateway = f"http://127.0.0.1:{containers['gateway'].port}"
            assert httpx.get(f"{gateway}/v1/sessions").status_code == 401
            key = containers["doctor"].run("keys", "create", "tests")
            assert key.returncode == 0, key.stderr
            assert asyncio.run(say_hello(gateway, key.stdout.strip())) == "done"

            diagnosed = containers["doctor"].run()
            assert diagnosed.returncode == 0, diagnosed.stdout + diagnosed.stderr

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
