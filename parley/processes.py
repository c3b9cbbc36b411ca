"""Start and stop child processes, wait until they are ready, and clean up after a killed run.

`parley.stack` defines the programs and their order.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import psutil

from orchestrator.errors import ProcessFailed
from parley.data_folder import CLOSED, OWNERS_ONLY
from parley.forking import ForkedProcess, can_fork, die_with, fork_program
from parley.signals import hurry

_POLL_S = 0.02
_READY_WITHIN_S = 180.0  # a start usually takes a few seconds, but much longer on a busy machine
_HURRIED_GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Account:
    """The system account that runs a program when Parley runs as root.

    `keep_access`: True to keep root's right to access files, if the account can't reach the needed folders.
    """

    uid: int
    gid: int
    keep_access: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run as a child process.

    Args:
        ready: returns whether the program is ready, from its log since the start.
        imported: True for a Python program whose modules this process has imported, so that it can be forked.
        grace_s: seconds between `stop_signal` and SIGKILL.
        account: account that runs the program, or None for the current account.
        metrics: URL of the program's metrics, or None.
    """

    name: str
    command: tuple[str, ...]
    log: Path
    ready: Callable[[str], bool]
    imported: bool = False
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 10.0
    account: Account | None = None
    metrics: str | None = None


def log_says(text: str) -> Callable[[str], bool]:
    """Return a readiness check that looks for `text` in the log."""
    return lambda log: text in log


class Child:
    """A program and its process. `notes`: folder for a file with the pid, so that a later run can stop the process."""

    def __init__(self, program: Program, notes: Path) -> None:
        self.program = program
        self._note = notes / f"{program.name}.json"
        self._log_start = 0
        self._process: ForkedProcess | psutil.Popen | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ProcessFailed(f"{self.program.name} has not been started.")
        return self._process.pid

    def start(self) -> None:
        """Start the program in a separate session, so that Ctrl-C in the terminal does not reach it."""
        program = self.program
        for folder in (program.log.parent, self._note.parent):
            folder.mkdir(mode=CLOSED, parents=True, exist_ok=True)
        program.log.touch(mode=0o600)
        with program.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = _begin(program, log.fileno())
        note = {
            "pid": self.pid,
            "started_at": self._process.create_time(),
            "stop_signal": program.stop_signal,
        }
        self._note.touch(mode=0o600)
        self._note.write_bytes(orjson.dumps(note))

    def is_running(self) -> bool:
        """Return True if the process is running. Reap the process if it has exited."""
        return self._process is not None and self._process.poll() is None

    def exit_code(self) -> int | None:
        """Return the exit code, or None if the process is running or was never started."""
        return None if self._process is None else self._process.poll()

    def logged(self) -> str:
        """Return the program's log since its last start."""
        with self.program.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def await_ready(self, timeout_s: float = _READY_WITHIN_S) -> None:
        """Wait until the program is ready. Raises ProcessFailed if it exits, or isn't ready in `timeout_s` seconds."""
        ends_at = time.monotonic() + timeout_s
        while not self.program.ready(self.logged()):
            if not self.is_running():
                raise self._failure(f"exited with code {self.exit_code()} while starting")
            if time.monotonic() > ends_at:
                raise self._failure(f"was not ready after {timeout_s:.0f} s")
            time.sleep(_POLL_S)

    def ask_to_stop(self) -> None:
        if self._process is not None and self.is_running():
            self._process.send_signal(self.program.stop_signal)

    def stop(self) -> None:
        """Stop the process with `end_process`, and remove the note."""
        if self._process is not None and self.is_running():
            end_process(self._process, self.program.stop_signal, self.program.grace_s)
            self._process.wait()
        self._note.unlink(missing_ok=True)

    def _failure(self, what: str) -> ProcessFailed:
        lines = [line.strip() for line in self.logged().splitlines() if line.strip()]
        last = f" Last log line: {lines[-1]}" if lines else ""
        return ProcessFailed(f"{self.program.name} {what}; see {self.program.log}.{last}")


def run_to_end(command: tuple[str, ...], *, account: Account | None = None) -> None:
    """Run a command until it exits. Raises ProcessFailed with the command's output if it fails."""
    command, how = _as_account(command, account, None)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, cwd="/", **how)
    if done.returncode != 0:
        words = " ".join(done.stdout.decode(errors="replace").split())
        raise ProcessFailed(f"{command[0]} failed with code {done.returncode}: {words}")


def end_leftovers(notes: Path) -> list[str]:
    """Stop child processes left behind by a killed run, and return their names. `notes`: folder of `Child` notes.

    The caller must hold the data folder's lock, so that every noted process is an orphan.
    """
    ended: list[str] = []
    for note in sorted(notes.glob("*.json")):
        # The process may have exited, and the kill may have truncated the note.
        with contextlib.suppress(psutil.NoSuchProcess, orjson.JSONDecodeError, KeyError, ValueError):
            known = orjson.loads(note.read_bytes())
            process = psutil.Process(known["pid"])
            is_the_same = abs(process.create_time() - known["started_at"]) < 1.0
            if is_the_same and not has_ended(process):
                end_process(process, signal.Signals(known["stop_signal"]))
                ended.append(note.stem)
        note.unlink(missing_ok=True)
    return ended


def end_process(process: psutil.Process, stop_signal: signal.Signals, grace_s: float = 10.0) -> None:
    """Send the signal, and kill the process if it is still running after `grace_s` seconds.

    `hurry` shortens that time.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(stop_signal)
        process.resume()  # a suspended process doesn't act on the signal
        asked_at = time.monotonic()
        while not has_ended(process):
            waited_s = time.monotonic() - asked_at
            if waited_s > grace_s or (hurry.is_set() and waited_s > _HURRIED_GRACE_S):
                process.kill()
            time.sleep(_POLL_S)


def has_ended(process: psutil.Process) -> bool:
    """Return True if the process has exited, even if it hasn't been reaped."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _begin(program: Program, log: int) -> ForkedProcess | psutil.Popen:
    environment = {**os.environ, **program.environment}
    if program.imported and can_fork():
        with Path(os.devnull).open("rb") as nothing:
            return fork_program(
                program.command[1:],
                name=program.name,
                environment=environment,
                streams=(nothing.fileno(), log, log),
                dies_by=program.stop_signal,
                umask=OWNERS_ONLY,
            )
    command, how = _as_account(program.command, program.account, program.stop_signal)
    return psutil.Popen(
        command, stdout=log, env=environment, start_new_session=True, umask=OWNERS_ONLY, **how
    )


def _as_account(
    command: tuple[str, ...], account: Account | None, dies_by: signal.Signals | None
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the command and the Popen arguments that run it without input. `account`: None for the current one.

    `dies_by`: signal that the kernel sends to the command when this process exits. It has an effect only on Linux
    and on the main thread.
    """
    how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    # The parent-death signal is bound to the thread that started the child.
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        dies_by = None
    if account is not None and account.keep_access:
        # Changing the account clears the parent-death signal, so setpriv must set it afterward.
        death = () if dies_by is None else ("--pdeathsig", dies_by.name.removeprefix("SIG"))
        setpriv = (
            *("setpriv", "--reuid", str(account.uid), "--regid", str(account.gid), "--clear-groups"),
            *("--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"),
            "--securebits=+no_setuid_fixup",  # makes access(2), which PostgreSQL uses, respect the capability
        )
        return (*setpriv, *death, *command), how
    if account is not None:
        how |= {"user": account.uid, "group": account.gid, "extra_groups": []}
    if dies_by is not None:
        how["preexec_fn"] = partial(die_with, os.getpid(), dies_by)
    return command, how
