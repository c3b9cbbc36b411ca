"""A Redis with the configuration and the accounts of the deployment.

Debian's, since the accounts are written in words of Redis 7 and the embedded one is older.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import wait_until
from tests.integration.deploy.dockerfile import ROOT
from tests.integration.deploy.tls import REDIS

ACCOUNTS = ("worker", "gateway", "flower", "sender", "probe", "scaler")


@contextmanager
def deployed_redis(folder: Path, secrets: Path) -> Iterator[dict[str, str]]:
    """`deploy/redis.conf` on a port and in a folder of its own; its address for each account of the script."""
    if not REDIS.exists():
        pytest.skip("Debian's package redis-server is not installed")
    port, data = free_port(), folder / "redis"
    data.mkdir()
    text = (ROOT / "deploy" / "redis.conf").read_text()
    text = text.replace("/run/secrets/", f"{secrets}/").replace("dir /data", f"dir {data}")
    text = text.replace("port 6379", f"port {port}").replace("bind * -::*", "bind 127.0.0.1")
    (data / "redis.conf").write_text(text)
    passwords = {account: (secrets / f"{account}_redis_password").read_text() for account in ACCOUNTS}
    urls = {
        account: f"redis://parley-{account}:{word}@127.0.0.1:{port}/0" for account, word in passwords.items()
    }
    with (data / "log").open("wb") as log:
        process = subprocess.Popen([REDIS, data / "redis.conf"], stdout=log, stderr=log)
    try:
        wait_until(lambda: _answers(urls["worker"]), within_s=20, what=f"Redis answers, see {data / 'log'}")
        yield urls
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    with redis.Redis.from_url(url) as client:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
