"""Another user of the same machine, with a shell, can't read a data folder or access a store."""

from __future__ import annotations

import asyncio
import os
import pwd
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
import redis
import uvicorn
from starlette.responses import PlainTextResponse

from gateway.protocol import STRANGER, OwnersProtocol
from orchestrator.errors import Forbidden
from parley.data_folder import hold
from parley.embedded import Stores, stores
from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import fleet
from tests.integration.gateway import run_server
from tests.processes.stores import connections_of_stores

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

WORD = "xylophone-in-the-cellar"
LOOK = """
import os, sys
found = []
for folder, folders, files in os.walk(sys.argv[1], onerror=lambda error: None):
    for name in files:
        try:
            with open(os.path.join(folder, name), 'rb') as file:
                file.read()
            found.append(os.path.join(folder, name))
        except OSError:
            pass
print(found)
"""
CONNECT = """
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
    print('connected', end='')
except OSError as error:
    print(type(error).__name__, end='')
"""
# A program that other accounts can start, too.
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Create a folder that others can access, outside the tests' private folder."""
    with TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o755)
        yield Path(place) / "data"


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Stores]:
    with stores(folder) as running:
        with redis.Redis.from_url(running.redis_url) as connection:
            connection.set("said", WORD)
        with psycopg.connect(running.database_url) as connection:
            connection.execute("CREATE TABLE said (text text)")
            connection.execute("INSERT INTO said VALUES (%s)", (WORD,))
        yield running


def as_stranger(*command: str) -> str:
    """Run a program as an account that owns nothing."""
    account = pwd.getpwnam("games")
    return run(*command, user=account.pw_uid, group=account.pw_gid, extra_groups=[])


def run(*command: str, **account: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **account)
    return done.stdout + done.stderr


def test_a_stranger_reads_no_file_of_the_folder(running: Stores, folder: Path) -> None:
    assert any(WORD.encode() in path.read_bytes() for path in folder.rglob("*.aof"))

    assert as_stranger(PYTHON, "-c", LOOK, str(folder)).strip() == "[]"


def test_a_folder_that_a_stranger_made_or_could_fill_is_not_used(tmp_path: Path) -> None:
    theirs, open_to_all = tmp_path / "theirs", tmp_path / "open"
    theirs.mkdir()
    os.chown(theirs, pwd.getpwnam("games").pw_uid, -1)
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (open_to_all / "redis.socket").symlink_to(theirs)

    for place in (theirs, open_to_all):
        with pytest.raises(Forbidden), hold(place):
            pass
    (open_to_all / "redis.socket").unlink()
    with hold(open_to_all):
        assert open_to_all.stat().st_mode & 0o777 == 0o700


def test_every_file_and_folder_is_its_owners_alone(running: Stores, folder: Path) -> None:
    others = [path for path in folder.rglob("*") if not path.is_symlink() and path.lstat().st_mode & 0o007]

    assert folder.stat().st_mode & 0o007 == 0
    assert others == []


def test_a_stranger_connects_to_no_store(running: Stores, folder: Path) -> None:
    sockets = [str(path) for path in folder.rglob("*") if path.is_socket()]
    assert len(sockets) == 2

    for path in sockets:
        assert run(sys.executable, "-c", CONNECT, path) == "connected"
        assert as_stranger(PYTHON, "-c", CONNECT, path) == "PermissionError"


def test_the_stores_listen_on_no_port(running: Stores) -> None:
    assert connections_of_stores() == []


def test_who_has_no_password_gets_into_no_store(running: Stores) -> None:
    password = urlsplit(running.database_url).password
    assert password is not None
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(running.database_url.replace(password, "guess"))
    place = running.redis_url.rpartition("@")[2]
    with redis.Redis.from_url(f"unix://{place}") as stranger, pytest.raises(redis.AuthenticationError):
        stranger.get("said")


def test_no_password_is_in_the_arguments_of_a_process(running: Stores) -> None:
    arguments = subprocess.run(
        ["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True
    ).stdout
    for url in (running.database_url, running.redis_url):
        assert url.rpartition("@")[0].rpartition(":")[2] not in arguments


def test_connections_without_a_password_take_little_memory(running: Stores) -> None:
    """The server of 2023 used 400 MB for one connection that sent a request and did not read."""
    flood = (
        "import socket\n"
        "connection = socket.socket(socket.AF_UNIX)\n"
        f"connection.connect({urlsplit(running.redis_url).path!r})\n"
        "connection.settimeout(1)\n"
        "try:\n"
        "    for _ in range(3000): connection.sendall(b'GET said\\r\\n' * 1000)\n"
        "except OSError: pass\n"
    )
    with redis.Redis.from_url(running.redis_url) as owner:
        before = int(owner.info("memory")["used_memory"])
        subprocess.run([sys.executable, "-c", flood], check=True, timeout=60)

        assert int(owner.info("memory")["used_memory_peak"]) - before < 50_000_000
        assert owner.get("said") == WORD.encode()


ASK = """
import socket, sys
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
with socket.socket(family) as connection:
    connection.connect((sys.argv[1], int(sys.argv[2])))
    upgrade = 'Connection: Upgrade\\r\\nUpgrade: websocket\\r\\n' if sys.argv[3:] else 'Connection: close\\r\\n'
    connection.sendall(f'GET / HTTP/1.1\\r\\nHost: x\\r\\n{upgrade}\\r\\n'.encode())
    print(b''.join(iter(lambda: connection.recv(4096), b'')).decode())
"""


@asynccontextmanager
async def serve_words(host: str) -> AsyncIterator[int]:
    """Start a private gateway on a port of this address, which prints the secret to its caller."""
    config = uvicorn.Config(
        PlainTextResponse(WORD), host=host, port=0, http=OwnersProtocol, log_config=None, lifespan="off"
    )
    async with run_server(config) as port:
        yield port


@pytest.mark.parametrize(
    ("host", "reached"), [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "::ffff:127.0.0.1"), ("::1", "::1")]
)
async def test_a_gateway_answers_its_owner_and_no_stranger(host: str, reached: str) -> None:
    async with serve_words(host) as port:
        told = await asyncio.to_thread(run, PYTHON, "-c", ASK, reached, str(port))
        refused = await asyncio.to_thread(as_stranger, PYTHON, "-c", ASK, reached, str(port))
        upgrade = await asyncio.to_thread(as_stranger, PYTHON, "-c", ASK, reached, str(port), "upgrade")

    assert told.startswith("HTTP/1.1 200")
    assert WORD in told
    assert refused.startswith("HTTP/1.1 403")
    assert "x-content-type-options: nosniff" in refused
    assert upgrade.startswith("HTTP/1.1 400")
    assert STRANGER in refused
    assert STRANGER in upgrade


async def test_workers_metrics_are_shown_to_no_stranger(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    port = str(free_port())
    told = {"PARLEY_METRICS_PORT": port, "PARLEY_OWNER_ONLY": "true"}
    with fleet(database_url, redis_url, tmp_path, told) as crew:
        crew.start(1)
        assert run(PYTHON, "-c", ASK, "127.0.0.1", port).startswith("HTTP/1.0 200")
        refused = as_stranger(PYTHON, "-c", ASK, "127.0.0.1", port)
        assert "HTTP" not in refused
        rebound = {"Host": "evil.example"}
        async with httpx.AsyncClient() as http:
            answer = await http.get(f"http://127.0.0.1:{port}/metrics", headers=rebound)
        assert answer.status_code == 403
