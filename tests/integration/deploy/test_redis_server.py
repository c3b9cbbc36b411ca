"""The Redis of docker-compose.yml, with its configuration and its accounts."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.integration.deploy.deployment import make_secrets
from tests.integration.deploy.servers import deployed_redis


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
