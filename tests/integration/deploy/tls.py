"""A Redis and a PostgreSQL from Debian's packages that speak nothing but TLS, with certificates made here.

The embedded servers of the wheels are built without TLS.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis
import trustme

from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import wait_until

NAME = "localhost"
"""The only name in the certificates: 127.0.0.1 is the same machine by a name that they do not hold."""
REDIS = Path("/usr/bin/redis-server")


def postgres_programs() -> Path | None:
    """The newest of Debian's PostgreSQLs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@dataclass(frozen=True)
class Certificates:
    """What one authority made, as files."""

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        folder.mkdir()
        made = cls(folder / "authority.pem", folder / "certificate.pem", folder / "key.pem")
        authority = trustme.CA()
        issued = authority.issue_cert(NAME)
        authority.cert_pem.write_to_path(made.authority)
        issued.cert_chain_pems[0].write_to_path(made.certificate)
        issued.private_key_pem.write_to_path(made.key)
        return made


@dataclass(frozen=True)
class Secured:
    """A running server; what a client believes is up to its address."""

    kind: str
    password: str
    port: int

    def url(self, authority: Path, *, host: str = NAME) -> str:
        place = f"parley:{self.password}@{host}:{self.port}"
        if self.kind == "redis":
            return f"rediss://{place}/0?ssl_cert_reqs=required&ssl_ca_certs={authority}"
        return f"postgresql://{place}/parley?sslmode=verify-full&sslrootcert={authority}"

    def plain_url(self) -> str:
        place = f"parley:{self.password}@{NAME}:{self.port}"
        return (
            f"redis://{place}/0" if self.kind == "redis" else f"postgresql://{place}/parley?sslmode=disable"
        )


@contextmanager
def secured_redis(folder: Path, certificates: Certificates) -> Iterator[Secured]:
    """A Redis without a plain port."""
    server = Secured("redis", secrets.token_urlsafe(12), free_port())
    folder.mkdir()
    settings = {
        "bind": "127.0.0.1",
        "port": "0",
        "tls-port": str(server.port),
        "tls-cert-file": str(certificates.certificate),
        "tls-key-file": str(certificates.key),
        "tls-ca-cert-file": str(certificates.authority),
        "tls-auth-clients": "no",
        "dir": str(folder),
        "save": '""',
        "user": f"parley on >{server.password} ~* &* +@all",
    }
    configuration = folder / "redis.conf"
    configuration.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))

    def answers() -> bool:
        with redis.Redis.from_url(server.url(certificates.authority)) as client:
            return bool(client.ping())

    with _running([str(REDIS), str(configuration)], folder / "log", answers, None):
        yield server


@contextmanager
def secured_postgres(certificates: Certificates) -> Iterator[Secured]:
    """A PostgreSQL that refuses whoever does not speak TLS. As root it runs under Debian's account."""
    programs = postgres_programs()
    assert programs is not None
    account = "postgres" if os.geteuid() == 0 else None
    server = Secured("postgresql", secrets.token_urlsafe(12), free_port())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        password = folder / "password"
        password.write_text(server.password)
        for path in (certificates.certificate, certificates.key):
            shutil.copy(path, folder)
        (folder / "key.pem").chmod(0o600)
        _give(folder, account)
        cluster = folder / "cluster"
        subprocess.run(
            [
                *(programs / "initdb", "-D", cluster, "-U", "parley", f"--pwfile={password}"),
                *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"),
            ],
            user=account,
            cwd=folder,
            check=True,
            capture_output=True,
        )
        (cluster / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(server.port),
            "unix_socket_directories": "",
            "ssl": "on",
            "ssl_cert_file": str(folder / "certificate.pem"),
            "ssl_key_file": str(folder / "key.pem"),
            "fsync": "off",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        administrators = server.url(certificates.authority).replace("/parley?", "/postgres?")

        def answers() -> bool:
            with psycopg.connect(administrators, autocommit=True) as connection:
                connection.execute("CREATE DATABASE parley")
            return True

        command = [str(programs / "postgres"), "-D", str(cluster), *options]
        with _running(command, folder / "log", answers, account):
            yield server


def _give(folder: Path, account: str | None) -> None:
    if account is not None:
        entry = pwd.getpwnam(account)
        for path in (folder, *folder.iterdir()):
            os.chown(path, entry.pw_uid, entry.pw_gid)


@contextmanager
def _running(
    command: Sequence[str], log: Path, answers: Callable[[], bool], account: str | None
) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, user=account, cwd=log.parent)

    def is_up() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return answers()
        except (redis.ConnectionError, psycopg.OperationalError):
            return False

    try:
        wait_until(is_up, within_s=30, what=f"{command[0]} answers, see {log}")
        yield
    finally:
        process.terminate()
        process.wait()
