"""Child processes: started, awaited, stopped, and recognized after a killed run."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import psutil
import pytest

from orchestrator.errors import ProcessFailed
from parley import processes
from parley.processes import Child, Program, end_leftovers, has_ended, log_says
from parley.stack import await_role

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


class Slow(Child):
    """A process on a machine so busy that it is not ready in time. Each check costs a second, up to `most_s`."""

    used_s = 0.0
    most_s = 59.0

    def _cpu_s(self) -> float:
        self.used_s = min(self.used_s + 1, self.most_s)
        return self.used_s


READY_AFTER_A_WHILE = "import time; time.sleep(0.6); " + READY + SLEEP


def test_a_child_that_gets_somewhere_is_waited_for_longer_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_SAY_EVERY_S", 0.05)
    monkeypatch.setattr(processes, "_MOST_WORK_S", 1e9)
    child, said = Slow(make_program(tmp_path, READY_AFTER_A_WHILE), tmp_path / "run"), list[str]()
    child.most_s = 1e8
    child.start()
    try:
        child.await_ready(timeout_s=0.1, say=said.append)
    finally:
        child.stop()
    assert said[0].startswith("sample is still starting: 0 s, ")


@pytest.mark.parametrize("most_s", [1.0, 1e8])
def test_a_child_that_stands_still_or_goes_in_circles_is_given_up(tmp_path: Path, most_s: float) -> None:
    child = Slow(make_program(tmp_path, SLEEP), tmp_path / "run")
    child.most_s = most_s
    child.start()

    with pytest.raises(ProcessFailed, match="not ready after"):
        child.await_ready(timeout_s=0.1)
    child.stop()


def test_what_a_child_and_its_own_children_work_is_counted(tmp_path: Path) -> None:
    works = (
        "import os, time\nends, held = os.pipe()\nits_own = os.fork()\n"
        "while time.process_time() < 0.2: pass\n"
        "its_own or (os.close(held), os.read(ends, 1), os._exit(0))  # which ends with its parent\n"
    )
    child = Child(make_program(tmp_path, works + READY + SLEEP), tmp_path / "run")
    child.start()
    try:
        while child._cpu_s() < 0.35:  # neither of the two is enough
            time.sleep(0.01)
        (its_own,) = psutil.Process(child.pid).children()
    finally:
        child.stop()
    while not has_ended(its_own):  # only init reaps it, at an unknown time
        time.sleep(0.01)


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


def test_a_role_that_is_killed_while_it_starts_is_started_again_and_that_is_said(tmp_path: Path) -> None:
    """The first process kills itself, as when memory runs out. The second is ready."""
    once = tmp_path / "once"
    dies_once = (
        f"import os, pathlib, signal; first = pathlib.Path({str(once)!r}); known = first.exists(); first.touch(); "
        "known or os.kill(os.getpid(), signal.SIGKILL); "
    )
    child = Child(make_program(tmp_path, dies_once + READY + SLEEP), tmp_path / "run")
    said: list[str] = []
    child.start()

    await_role(child, said.append)

    assert child.is_running()
    child.stop()
    [line] = said
    assert line.startswith("sample exited with code -9 while starting")
    assert line.endswith("Restarting it.")


def test_a_role_that_ends_by_itself_while_it_starts_says_why(tmp_path: Path) -> None:
    child = Child(make_program(tmp_path, "raise SystemExit('no such domain')"), tmp_path / "run")
    child.start()

    with pytest.raises(ProcessFailed, match="no such domain"):
        await_role(child, lambda _: None)
    child.stop()
