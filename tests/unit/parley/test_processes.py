"""Child processes: started, awaited, stopped, and recognized after a killed run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import psutil
import pytest

from orchestrator.errors import ProcessFailed
from parley.processes import Child, Program, end_leftovers, has_ended, log_says

READY = "print('here we go', flush=True); "
SLEEP = "import signal; signal.pause()"


def make_program(folder: Path, code: str, *, grace_s: float = 5.0) -> Program:
    return Program(
        name="sample",
        command=(sys.executable, "-c", code),
        log=folder / "logs" / "sample.log",
        ready=log_says("here we go"),
        grace_s=grace_s,
    )


@contextmanager
def running(program: Program, notes: Path) -> Iterator[Child]:
    child = Child(program, notes)
    child.start()
    try:
        child.await_ready()
        yield child
    finally:
        child.stop()


def test_a_child_is_awaited_noted_and_stopped(tmp_path: Path) -> None:
    with running(make_program(tmp_path, READY + SLEEP), tmp_path / "run") as child:
        note = orjson.loads((tmp_path / "run" / "sample.json").read_bytes())
        assert note["pid"] == child.pid
        assert child.is_running()
    assert not psutil.pid_exists(child.pid)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_child_that_ends_while_starting_is_told_with_its_last_words(tmp_path: Path) -> None:
    child = Child(make_program(tmp_path, "raise SystemExit('no such database')"), tmp_path / "run")
    child.start()

    with pytest.raises(ProcessFailed, match=r"sample exited with code 1 .*no such database"):
        child.await_ready()
    child.stop()


def test_a_child_that_is_never_ready_is_given_up(tmp_path: Path) -> None:
    child = Child(make_program(tmp_path, SLEEP), tmp_path / "run")
    child.start()

    with pytest.raises(ProcessFailed, match="not ready after"):
        child.await_ready(timeout_s=0.1)
    child.stop()


def test_words_of_an_earlier_run_do_not_make_a_child_ready(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "sample.log").write_text("here we go\n")
    child = Child(make_program(tmp_path, "pass"), tmp_path / "run")
    child.start()

    with pytest.raises(ProcessFailed, match="exited with code 0"):
        child.await_ready()
    child.stop()


def test_a_child_that_ignores_the_stop_signal_is_killed_after_its_grace(tmp_path: Path) -> None:
    deaf = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY + "\nwhile 1: signal.pause()"
    )
    with running(make_program(tmp_path, deaf, grace_s=0.1), tmp_path / "run") as child:
        pass
    assert child.exit_code() == -signal.SIGKILL


def test_only_the_noted_process_itself_is_a_leftover(tmp_path: Path) -> None:
    """The PID may belong to a different process by now."""
    with running(make_program(tmp_path, READY + SLEEP), tmp_path / "run") as child:
        note = tmp_path / "run" / "sample.json"
        known = orjson.loads(note.read_bytes())

        note.write_bytes(orjson.dumps({**known, "started_at": known["started_at"] - 60}))
        assert end_leftovers(tmp_path / "run") == []
        assert child.is_running()
        assert not note.exists()

        note.write_bytes(orjson.dumps(known))
        assert end_leftovers(tmp_path / "run") == ["sample"]
        assert not child.is_running()


def test_a_process_that_was_not_reaped_counts_as_ended() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(psutil.Process(pid))
    os.waitpid(pid, 0)
