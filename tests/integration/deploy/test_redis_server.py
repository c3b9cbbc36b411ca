"""Redis of docker-compose.yml, with its configuration and accounts."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.integration.deploy.fixtures.deployment import make_secrets
from tests.integration.deploy.fixtures.servers import deployed_redis

HARM = ("FLUSHALL", "CONFIG GET *", "KEYS *", "SHUTDOWN", "ACL LIST", "MONITOR")


def test_accounts_may_not_harm_the_redis_server_and_strangers_may_nothing(tmp_path: Path) -> None:
    """`tests/integration/access/test_redis_acl.py` tests the accounts' access to foreign keys."""
    secrets = make_secrets(tmp_path)
    with deployed_redis(tmp_path, secrets) as urls:
        with redis.Redis.from_url(urls["worker"]) as client:
            assert client.info("memory")["maxmemory_policy"] == "noeviction"
            assert client.info("persistence")["aof_enabled"] == 1
        for url in urls.values():
            with redis.Redis.from_url(url) as client:
                assert client.ping()
                for command in HARM:
                    with pytest.raises(redis.exceptions.NoPermissionError):
                        client.execute_command(*command.split())
        stranger = urls["worker"].replace("parley-worker:", "default:")
        with redis.Redis.from_url(stranger) as other, pytest.raises(redis.RedisError):
            other.ping()
