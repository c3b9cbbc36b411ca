"""Parley's programs as processes without import time: the client of `fork_server`."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import IO

import orjson

ROOT = Path(__file__).resolve().parents[2]
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
_ADDRESS = Path(tempfile.gettempdir(), f"parley-forks-{_RUN}")


def user_environment(**more: str) -> dict[str, str]:
    """Return the environment of a user without the developer's own stores and model."""
    hidden = {"DATABASE_URL", "REDIS_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PARLEY_URL"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


class ForkedProcess:
    """A process of the fork server, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.cpu_s = 0.0
        """CPU time of the process and its children, known when it has ended."""
        self._ended = threading.Event()

    def note_end(self, code: int, cpu_s: float) -> None:
        self.returncode, self.cpu_s = code, cpu_s
        self._ended.set()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """A connection to the fork server of this run, which the first test process starts."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._orders = self._connect()
        self._asking = threading.Lock()
        self._answered = threading.Condition()
        self._started: list[int] = []
        self._is_lost = False
        self.processes: dict[int, ForkedProcess] = {}
        threading.Thread(target=self._listen, name="fork server", daemon=True).start()

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with _ADDRESS.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                connection.connect(str(_ADDRESS))
            except OSError:
                self._start_server()
                connection.connect(str(_ADDRESS))
        return connection

    def _start_server(self) -> None:
        _ADDRESS.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(_ADDRESS))
            listener.listen()
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.processes.fork_server", str(listener.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
            )

    @property
    def pid(self) -> int | None:
        """Return the process ID of the server if this process started it."""
        return None if self._server is None else self._server.pid

    def start(self, order: Mapping[str, object], streams: Sequence[int]) -> ForkedProcess:
        with self._asking, self._answered:
            socket.send_fds(self._orders, [orjson.dumps(order)], streams)
            self._answered.wait_for(lambda: self._started or self._is_lost)
            assert not self._is_lost, "the fork server has ended"
            return self.processes[self._started.pop()]

    def _listen(self) -> None:
        try:
            while answer := self._orders.recv(100):
                self._note(answer)
        finally:  # also if the server was killed before it read an order, which resets the connection
            with self._answered:
                self._is_lost = True
                self._answered.notify()

    def _note(self, answer: bytes) -> None:
        what, pid, *end = answer.split()
        with self._answered:
            if what == b"started":
                self.processes[int(pid)] = ForkedProcess(int(pid))
                self._started.append(int(pid))
                self._answered.notify()
            else:
                code, cpu_s = end
                self.processes[int(pid)].note_end(int(code), float(cpu_s))


@cache
def _server() -> ForkServer:
    server = ForkServer()
    _connected.append(server)
    return server


_connected: list[ForkServer] = []


def connected() -> ForkServer | None:
    """Return the connection of this process, or None if it has started no process so far."""
    return _connected[0] if _connected else None


def start(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    log: Path | IO[bytes],
    errors: IO[bytes] | None = None,
    given: IO[bytes] | None = None,
    folder: Path = ROOT,
    imports: Sequence[str] = (),
) -> ForkedProcess:
    """Run ``python ARGUMENTS``, beginning with ``-m``. Append the output to the log, and errors to `errors`.

    `given`: input, or None for no input. `imports`: additional modules.
    """
    assert arguments[0] == "-m"
    order = {
        "arguments": list(arguments),
        "folder": str(folder),
        "environment": dict(environment),
        "imports": list(imports),
    }
    with ExitStack() as opened:
        output = opened.enter_context(log.open("ab")) if isinstance(log, Path) else log
        lines = given or opened.enter_context(Path(os.devnull).open("rb"))
        return _server().start(order, [stream.fileno() for stream in (lines, output, errors or output)])


def run(
    arguments: Sequence[str], *, environment: Mapping[str, str], given: bytes = b"", folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run ``python ARGUMENTS`` to its end."""
    with (
        tempfile.TemporaryFile() as lines,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        lines.write(given)
        lines.seek(0)
        process = start(
            arguments, environment=environment, log=output, errors=errors, given=lines, folder=folder
        )
        code = process.wait()
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, code, output.read().decode(), errors.read().decode())
