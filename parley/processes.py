"""One child process: started, awaited, watched and stopped.

It knows how to run one program and how to recognise and end one that a killed run left behind.
Which programs there are, and in which order, is the matter of `parley.stack`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import orjson
import psutil

from orchestrator.errors import ProcessFailed

_PR_SET_PDEATHSIG = 1
_POLL_S = 0.02
_HURRIED_GRACE_S = 1.0
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


hurry = threading.Event()
"""Set when the operator will not wait: every stop then has one second, also one that is under way."""


@dataclass(frozen=True, slots=True)
class Account:
    """The system account that a program runs under when Parley itself runs as root.

    `keep_access` keeps the right to reach files below folders that are closed to the account.
    """

    uid: int
    gid: int
    keep_access: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How one child is started, known to be ready, and stopped.

    Args:
        ready: told what the program has logged since its start; true once it can be used.
        grace_s: how long it may take to end after `stop_signal` before it is killed.
        metrics: where it tells its metrics, if anywhere.
    """

    name: str
    command: tuple[str, ...]
    log: Path
    ready: Callable[[str], bool]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 10.0
    account: Account | None = None
    metrics: str | None = None


class _Credentials(TypedDict, total=False):
    """The arguments of Popen that change the account."""

    user: int
    group: int
    extra_groups: list[int]


def log_says(text: str) -> Callable[[str], bool]:
    """A readiness check that waits for `text` in the program's log."""
    return lambda log: text in log


class Child:
    """A running program. Its pid is noted in `notes`, so that a later run can find it."""

    def __init__(self, program: Program, notes: Path) -> None:
        self.program = program
        self._note = notes / f"{program.name}.json"
        self._log_start = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the present run."""
        if self._process is None:
            raise ProcessFailed(f"{self.program.name} has not been started.")
        return self._process.pid

    def start(self) -> None:
        """Start the program in its own session, so that Ctrl-C in the terminal reaches only us."""
        program = self.program
        program.log.parent.mkdir(parents=True, exist_ok=True)
        self._note.parent.mkdir(parents=True, exist_ok=True)
        with program.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = _spawn(program, log.fileno())
        _write_note(self._note, self._process.pid, program.stop_signal)

    def is_running(self) -> bool:
        """Whether the process lives; reaps it when it has ended."""
        return self._process is not None and self._process.poll() is None

    def exit_code(self) -> int | None:
        """The exit code, or None while it runs."""
        return None if self._process is None else self._process.poll()

    def is_ready(self) -> bool:
        """Whether it can be used now."""
        return self.program.ready(self.logged())

    def logged(self) -> str:
        """What the program has logged since its last start."""
        with self.program.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def await_ready(self, timeout_s: float = 60.0) -> None:
        """Block until it is ready. Raises ProcessFailed when it ends or the time is over."""
        deadline = time.monotonic() + timeout_s
        while not self.is_ready():
            if not self.is_running():
                raise ProcessFailed(self._explain(f"ended with code {self.exit_code()} while starting"))
            if time.monotonic() > deadline:
                raise ProcessFailed(self._explain(f"was not ready after {timeout_s:.0f} s"))
            time.sleep(_POLL_S)

    def ask_to_stop(self) -> None:
        """Send the stop signal and return at once."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(self.program.stop_signal)

    def stop(self) -> None:
        """End it: the stop signal, its grace, then a kill; forgets the note."""
        self.ask_to_stop()
        if self._process is not None:
            self._wait_for_end(self._process)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
        self._note.unlink(missing_ok=True)

    def _wait_for_end(self, process: subprocess.Popen[bytes]) -> None:
        begun = time.monotonic()
        while process.poll() is None:
            grace_s = min(self.program.grace_s, _HURRIED_GRACE_S) if hurry.is_set() else self.program.grace_s
            if time.monotonic() - begun > grace_s:
                return
            time.sleep(_POLL_S)

    def _explain(self, what: str) -> str:
        lines = [line.strip() for line in self.logged().splitlines() if line.strip()]
        last = f" Its last words: {lines[-1]}" if lines else ""
        return f"{self.program.name} {what}; see {self.program.log}.{last}"


def run_to_end(command: tuple[str, ...], *, account: Account | None = None) -> None:
    """Run a short program and wait for it. Raises ProcessFailed with its last words."""
    done = subprocess.run(
        _as_account(command, account),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        cwd="/",
        **_account_arguments(account),
    )
    if done.returncode != 0:
        words = " ".join(done.stdout.decode(errors="replace").split())
        raise ProcessFailed(f"{Path(command[0]).name} failed with code {done.returncode}: {words}")


def end_leftovers(notes: Path) -> list[str]:
    """End the children that a killed run left behind; returns their names.

    Only call this while holding the folder's lock: every noted process is then an orphan.
    """
    ended: list[str] = []
    for note in sorted(notes.glob("*.json")):
        if _end_noted(note):
            ended.append(note.stem)
        note.unlink(missing_ok=True)
    return ended


def end_process(process: psutil.Process, stop_signal: signal.Signals, grace_s: float = 10.0) -> None:
    """End a process that is not our child: the signal, the grace, then a kill."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(stop_signal)
        process.resume()  # a frozen one would not act on the signal
        if not _await_end(process, grace_s):
            process.kill()
            _await_end(process, grace_s)


def has_ended(process: psutil.Process) -> bool:
    """Whether it does nothing any more; one that nobody has reaped yet counts as ended."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _await_end(process: psutil.Process, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not has_ended(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _end_noted(note: Path) -> bool:
    try:
        known = orjson.loads(note.read_bytes())
        process = psutil.Process(known["pid"])
        same = abs(process.create_time() - known["started_at"]) < 1.0
        stop_signal = signal.Signals(known["stop_signal"])
    except (psutil.NoSuchProcess, orjson.JSONDecodeError, KeyError, ValueError):
        return False  # it has ended, or the note was cut short by the kill
    if not same or has_ended(process):
        return False
    end_process(process, stop_signal)
    return True


def _write_note(note: Path, pid: int, stop_signal: signal.Signals) -> None:
    started_at = psutil.Process(pid).create_time()
    note.write_bytes(orjson.dumps({"pid": pid, "started_at": started_at, "stop_signal": int(stop_signal)}))


def _spawn(program: Program, log: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **program.environment}
    stop_signal = program.stop_signal
    # The kernel's "parent died" signal is tied to the thread that started the child.
    dies_with_us = _LIBC is not None and threading.current_thread() is threading.main_thread()
    parent = os.getpid()

    def die_with_parent() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, int(stop_signal))
        if os.getppid() != parent:
            os._exit(1)

    keeps_access = program.account is not None and program.account.keep_access
    return subprocess.Popen(
        _as_account(program.command, program.account, dies_with_us=dies_with_us, stop_signal=stop_signal),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
        preexec_fn=die_with_parent if dies_with_us and not keeps_access else None,  # noqa: PLW1509
        **_account_arguments(program.account),
    )


def _as_account(
    command: tuple[str, ...],
    account: Account | None,
    *,
    dies_with_us: bool = False,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> tuple[str, ...]:
    """The command, wrapped where the account has to keep its access to closed folders."""
    if account is None or not account.keep_access:
        return command
    # Changing the account clears the "parent died" signal, so setpriv has to set it afterwards.
    death = ("--pdeathsig", stop_signal.name.removeprefix("SIG")) if dies_with_us else ()
    return (
        *("setpriv", "--reuid", str(account.uid), "--regid", str(account.gid), "--clear-groups"),
        *("--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"),
        "--securebits=+no_setuid_fixup",  # else access(2), which PostgreSQL uses, ignores it
        *death,
        *command,
    )


def _account_arguments(account: Account | None) -> _Credentials:
    if account is None or account.keep_access:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}
