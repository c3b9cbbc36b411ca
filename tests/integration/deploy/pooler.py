"""A PgBouncer before a PostgreSQL: a few connections of its own, given to one transaction after another."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg

from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import wait_until

PROGRAM = Path("/usr/sbin/pgbouncer")
CONNECTIONS = 4
"""Far fewer than its clients have, so that these do share."""


@contextmanager
def pooler(database_urls: Sequence[str]) -> Iterator[list[str]]:
    """The same addresses, the same database by several logins, through a pooler. It will not run as root."""
    parts = [urlsplit(url) for url in database_urls]
    server, port = parts[0], free_port()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        users = folder / "users.txt"
        users.write_text("".join(f'"{part.username}" "{unquote(part.password or "")}"\n' for part in parts))
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(
            f"[databases]\n* = host={server.hostname} port={server.port}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\n"
            f"auth_file = {users}\npool_mode = transaction\ndefault_pool_size = {CONNECTIONS}\n"
            "max_client_conn = 200\n"
        )
        for path in (folder, users, configuration):
            path.chmod(0o755)
        account = "postgres" if os.geteuid() == 0 else None
        log = folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen([PROGRAM, configuration], stdout=output, stderr=output, user=account)
        pooled = [
            part._replace(netloc=f"{part.username}:{part.password}@127.0.0.1:{port}").geturl()
            for part in parts
        ]

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                with psycopg.connect(pooled[0], connect_timeout=2):
                    return True
            except psycopg.OperationalError:
                return False

        try:
            wait_until(answers, within_s=20, what="the pooler answers")
            yield pooled
        finally:
            process.terminate()
            process.wait()
