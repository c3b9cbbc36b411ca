"""A Redis, a replica of it, and three sentinels, who make the replica the master when the master is gone."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from orchestrator.adapters.redis.client import connect_blocking
from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import wait_until
from tests.integration.deploy.tls import REDIS

MASTER = "parley"
WITNESSES = 3
_SENTINEL = """\
port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor {master} 127.0.0.1 {watched} 2
sentinel auth-user {master} parley
sentinel auth-pass {master} {password}
sentinel down-after-milliseconds {master} 1000
sentinel failover-timeout {master} 5000
"""


@dataclass(frozen=True)
class Replicated:
    """`url`: as processes are given it. `servers`: by port, the first of them was the master at the start."""

    url: str
    servers: dict[int, subprocess.Popen[bytes]]

    def master(self) -> int:
        """The port of the present master, as the sentinels tell it."""
        with connect_blocking(self.url, timeout_s=2) as client:
            return int(client.info("server")["tcp_port"])

    def kill_master(self) -> None:
        """End the master, and wait until another server has taken its place."""
        was = self.master()
        self.servers[was].kill()
        self.servers[was].wait()
        wait_until(lambda: self._other_than(was), within_s=30, what="the replica is the master")

    def _other_than(self, was: int) -> bool:
        try:
            return self.master() != was
        except redis.RedisError:
            return False


@contextmanager
def replicated_redis(folder: Path) -> Iterator[Replicated]:
    """All five on ports of their own, with a password."""
    password = secrets.token_urlsafe(12)
    ports = [free_port() for _ in range(2)]
    witnesses = [free_port() for _ in range(WITNESSES)]
    places = ",".join(f"127.0.0.1:{port}" for port in witnesses)
    url = f"redis+sentinel://parley:{password}@{places}/{MASTER}/0"
    with ExitStack() as stack:
        servers = {
            port: stack.enter_context(_server(folder / str(port), port, password, ports[0])) for port in ports
        }
        for port in witnesses:
            stack.enter_context(_sentinel(folder / str(port), port, password, ports[0]))
        made = Replicated(url, servers)
        wait_until(lambda: _is_watched(made, witnesses[0]), within_s=30, what="the replica is known")
        yield made


def _is_watched(made: Replicated, witness: int) -> bool:
    try:
        with redis.Redis(port=witness, decode_responses=True) as sentinel:
            told = sentinel.sentinel_master(MASTER)
        return (
            told["num-slaves"] == 1 and told["num-other-sentinels"] == WITNESSES - 1 and bool(made.master())
        )
    except redis.RedisError:
        return False


@contextmanager
def _server(folder: Path, port: int, password: str, master: int) -> Iterator[subprocess.Popen[bytes]]:
    settings = {
        "bind": "127.0.0.1",
        "port": str(port),
        "dir": str(folder),
        "save": '""',
        "appendonly": "yes",
        "maxmemory-policy": "noeviction",
        "masteruser": "parley",
        "masterauth": password,
        "user": f"parley on >{password} ~* &* +@all",
        **({} if port == master else {"replicaof": f"127.0.0.1 {master}"}),
    }
    text = "".join(f"{name} {value}\n" for name, value in settings.items())
    with _running(folder, text) as process:
        yield process


@contextmanager
def _sentinel(folder: Path, port: int, password: str, watched: int) -> Iterator[None]:
    text = _SENTINEL.format(port=port, folder=folder, master=MASTER, watched=watched, password=password)
    with _running(folder, text, "--sentinel"):
        yield


@contextmanager
def _running(folder: Path, configuration: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir(parents=True)
    file = folder / "redis.conf"
    file.write_text(configuration)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([REDIS, file, *options], stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
