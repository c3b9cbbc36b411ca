"""A real RabbitMQ from Debian's package, with its own folders and ports."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kombu import Connection

from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import wait_until

PROGRAM = Path(os.environ.get("RABBITMQ_BIN", "/usr/lib/rabbitmq/bin")) / "rabbitmq-server"
"""Not the program on the PATH, which only runs as the system's service."""
CONTROL = PROGRAM.with_name("rabbitmqctl")
STARTS_WITHIN_S = 60.0


class Rabbit:
    """A node that can be killed and restarted with its data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._names_port = free_port()
        self._node = f"parley{self._port}@{socket.gethostname().split('.')[0]}"
        self._password = secrets.token_urlsafe(12)
        self._names: subprocess.Popen[bytes] | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._write_configuration()

    @property
    def url(self) -> str:
        return f"amqp://parley:{self._password}@127.0.0.1:{self._port}//"

    def start(self) -> None:
        """Start the node and wait until it answers."""
        environment = self._environment()
        if self._names is None:
            # Erlang would leave its name server running; this name server ends with the tests.
            self._names = subprocess.Popen(["epmd"], env=environment)
        with (self._folder / "out").open("ab") as output:
            self._server = subprocess.Popen(
                [PROGRAM], env=environment, stdout=output, stderr=output, start_new_session=True
            )
        wait_until(
            self.answers, within_s=STARTS_WITHIN_S, what=f"RabbitMQ answers, see {self._folder / 'out'}"
        )

    def control(self, *arguments: str) -> None:
        """Run `rabbitmqctl`."""
        subprocess.run([CONTROL, *arguments], env=self._environment(), check=True, capture_output=True)

    def answers(self) -> bool:
        with Connection(self.url, connect_timeout=2) as connection:
            try:
                connection.connect()
            except OSError:
                return False
        return True

    def kill(self) -> None:
        """Kill the node, like a crash."""
        if self._server is not None:
            os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()
            self._server = None
            # The node's name is free after its connection to the name server has ended.
            wait_until(self._name_is_free, within_s=20, what="the name of the node is free")

    def end(self) -> None:
        self.kill()
        if self._names is not None:
            self._names.kill()
            self._names.wait()

    def _name_is_free(self) -> bool:
        listed = subprocess.run(
            ["epmd", "-names"], env=self._environment(), capture_output=True, text=True, check=False
        )
        return self._node.split("@")[0] not in listed.stdout

    def _write_configuration(self) -> None:
        lines = (
            f"listeners.tcp.1 = 127.0.0.1:{self._port}",
            "default_user = parley",
            f"default_pass = {self._password}",
            "vm_memory_high_watermark.absolute = 512MB",
            "disk_free_limit.absolute = 10MB",
            "log.console = true",
        )
        (self._folder / "rabbitmq.conf").write_text("".join(f"{line}\n" for line in lines))
        (self._folder / "plugins").write_text("[].\n")
        (self._folder / "env").touch()

    def _environment(self) -> dict[str, str]:
        folder = self._folder
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(self._names_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "env"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_IO_THREAD_POOL_SIZE": "4",
        }


def is_installed() -> bool:
    return PROGRAM.exists() and shutil.which("epmd") is not None


@contextmanager
def rabbit(folder: Path) -> Iterator[Rabbit]:
    """Yield a RabbitMQ node that runs until the block ends."""
    folder.mkdir()
    node = Rabbit(folder)
    try:
        node.start()
        yield node
    finally:
        node.end()
