"""Stores with TLS: every connection is encrypted, and foreign certificates are rejected (RT-22)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from celery import Celery
from kombu import Connection
from kombu.exceptions import OperationalError

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.redis.address import for_celery, tls_options
from orchestrator.errors import Unavailable
from parley_client import Client
from tests.celery_clients import submit_turn
from tests.integration.chaos.fleet import fleet
from tests.integration.deploy.fixtures.containers import Container, ended
from tests.integration.deploy.fixtures.tls import (
    NAME,
    REDIS,
    Certificates,
    Secured,
    postgres_programs,
    secured_postgres,
    secured_redis,
)

MOUNTED = Path("/run/secrets/authority.pem")
"""Path of the certificate authority in a container."""

pytestmark = [
    pytest.mark.skipif(
        not REDIS.exists() or postgres_programs() is None,
        reason="Debian's packages redis-server and postgresql are not installed",
    ),
]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create another authority, which signed none of the servers' certificates."""
    return Certificates.make(tmp_path_factory.mktemp("tls") / "others").authority


@pytest.fixture(scope="module")
def database(certificates: Certificates) -> Iterator[Secured]:
    with secured_postgres(certificates) as server:
        yield server


@pytest.fixture(scope="module")
def queues(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_redis(tmp_path_factory.mktemp("tls") / "redis", certificates) as server:
        yield server


def test_a_gateway_and_a_worker_run_a_turn(
    database: Secured, queues: Secured, certificates: Certificates, tmp_path: Path
) -> None:
    database_url = database.url(certificates.authority)
    migrate(database_url)
    environment = {"DATABASE_URL": database.url(MOUNTED), "REDIS_URL": queues.url(MOUNTED)}
    mounted = certificates.authority.parent
    roles = {
        name: Container(name, ["serve", name], environment, mounted, tmp_path)
        for name in ("gateway", "turns")
    }
    with ended(roles):
        for role in roles.values():
            role.start()
        for name, role in roles.items():
            role.await_well(["python", "-m", "parley.probe", name])
        with Client(f"http://127.0.0.1:{roles['gateway'].port}") as client:
            session = client.create_session(user_id="ada")
            turn = client.submit(session["session_id"], "Hello", wait_s=30)
        assert turn["status"] == "done", turn
        with psycopg.connect(database_url) as connection:
            encrypted = connection.execute(
                "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE datname = 'parley'"
            ).fetchall()
        assert len(encrypted) > 2
        assert all(ssl for (ssl,) in encrypted)


def test_postgresql_is_believed_only_with_its_own_name_and_our_authority(
    database: Secured, certificates: Certificates, others: Path
) -> None:
    for url in (
        database.plain_url(),
        database.url(others),
        database.url(certificates.authority, host="127.0.0.1"),
    ):
        with pytest.raises(Unavailable):
            migrate(url)


def test_redis_is_believed_only_with_our_authority(
    queues: Secured, certificates: Certificates, others: Path
) -> None:
    with redis.Redis.from_url(queues.url(certificates.authority)) as client:
        assert client.ping()
    for url in (queues.plain_url(), queues.url(others)):
        with redis.Redis.from_url(url) as client, pytest.raises(redis.ConnectionError):
            client.ping()


def test_the_doctor_sees_what_is_wrong(
    database: Secured, queues: Secured, certificates: Certificates, others: Path, tmp_path: Path
) -> None:
    shutil.copy(certificates.authority, tmp_path)
    shutil.copy(others, tmp_path / "others.pem")
    environment = {
        "DATABASE_URL": database.url(MOUNTED.with_name("others.pem")),
        "REDIS_URL": queues.url(MOUNTED),
    }
    doctor = Container("doctor", ["doctor", "--preflight"], environment, tmp_path, tmp_path)
    looked: subprocess.CompletedProcess[str] = doctor.run()
    assert looked.returncode == 1
    broken = [line for line in looked.stdout.splitlines() if line.startswith("BAD")]
    assert len(broken) == 1, looked.stdout
    assert "certificate" in broken[0]


def test_an_address_as_services_hand_it_out_is_verified(
    queues: Secured,
    certificates: Certificates,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """With plain `rediss://`, only the system's authorities are trusted."""
    url = f"rediss://parley:{queues.password}@{NAME}:{queues.port}/0"
    with (
        Connection(for_celery(url), ssl=tls_options(url)) as connection,
        pytest.raises(OperationalError, match="verify failed"),
    ):
        connection.default_channel.client.ping()

    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    with fleet(database_url, url, tmp_path) as crew, Celery(set_as_current=False) as app:
        crew.start(1)
        told = f"{url}?ssl_cert_reqs=required"
        app.conf.update(broker_url=told, result_backend=told)
        sent = submit_turn(app, "over-tls", "say", wait=20)
        assert sent.get(timeout=40, interval=0.05)["status"] == "done"
        log = crew.workers[0].log.read_text()
    assert "insecure" not in log
