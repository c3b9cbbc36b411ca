"""Another user of the same machine, with a shell: reads nothing of a data folder, and gets into no store."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
import redis

from parley.embedded import Stores, stores

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


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that others could get to: not below the closed one of the tests."""
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
    done = subprocess.run(
        command,
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_stranger_reads_no_file_of_the_folder(running: Stores, folder: Path) -> None:
    assert any(WORD.encode() in path.read_bytes() for path in folder.rglob("*.aof"))
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable

    assert as_stranger(python, "-c", LOOK, str(folder)).strip() == "[]"


def test_every_file_and_folder_is_its_owners_alone(running: Stores, folder: Path) -> None:
    others = [path for path in folder.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o007]

    assert folder.stat().st_mode & 0o007 == 0
    assert others == []


def test_a_stranger_without_the_password_gets_into_no_store(running: Stores) -> None:
    database = running.database_url.replace(running.database_url.split(":")[2].split("@")[0], "guess")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(database)
    place = running.redis_url.rpartition("@")[2]
    with redis.Redis.from_url(f"redis://{place}") as stranger, pytest.raises(redis.AuthenticationError):
        stranger.get("said")


def test_no_password_is_in_the_arguments_of_a_process(running: Stores) -> None:
    arguments = subprocess.run(
        ["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True
    ).stdout
    for url in (running.database_url, running.redis_url):
        assert url.rpartition("@")[0].rpartition(":")[2] not in arguments


def test_connections_without_a_password_take_little_memory(running: Stores) -> None:
    """The server of 2023 took 400 MB for one connection that asked and did not listen."""
    host, _, port = running.redis_url.rpartition("@")[2].partition("/")[0].partition(":")
    flood = (
        "import socket, time\n"
        f"connection = socket.create_connection(({host!r}, {port}))\n"
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
