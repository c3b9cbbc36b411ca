"""A Redis with the configuration and the accounts of the deployment."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from parley.embedded.ports import free_port
from parley.embedded.redis import find_server
from tests.integration.chaos.fleet import wait_until
from tests.integration.deploy.dockerfile import ROOT


@contextmanager
def deployed_redis(folder: Path, secrets: Path) -> Iterator[str]:
    """`deploy/redis.conf` on a port and in a folder of its own; its address for Parley's account."""
    port, data = free_port(), folder / "redis"
    data.mkdir()
    text = (ROOT / "deploy" / "redis.conf").read_text()
    text = text.replace("/run/secrets/", f"{secrets}/").replace("dir /data", f"dir {data}")
    text = text.replace("port 6379", f"port {port}").replace("bind * -::*", "bind 127.0.0.1")
    (data / "redis.conf").write_text(text)
    password = (secrets / "redis_password").read_text()
    url = f"redis://parley:{password}@127.0.0.1:{port}/0"
    with (data / "log").open("wb") as log:
        process = subprocess.Popen([find_server(), str(data / "redis.conf")], stdout=log, stderr=log)
    try:
        wait_until(lambda: _answers(url), within_s=20, what=f"Redis answers, see {data / 'log'}")
        yield url
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    with redis.Redis.from_url(url) as client:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
