"""Supervision: crashed processes restart with a growing delay, and a signal causes an orderly stop."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from parley.processes import Child, Program, log_says
from parley.signals import StopRequested, raise_if_stopped, stop_on_signals
from parley.supervision import Supervised


def make_child(folder: Path, code: str) -> Child:
    program = Program(
        name="sample", command=(sys.executable, "-c", code), log=folder / "sample.log", ready=lambda _: True
    )
    child = Child(program, folder / "run")
    child.start()
    return child


def wait_for_end(child: Child) -> None:
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def test_a_dead_child_is_started_again_after_a_growing_delay(tmp_path: Path) -> None:
    said: list[str] = []
    child = make_child(tmp_path, "raise SystemExit(3)")
    supervised = Supervised(child)

    wait_for_end(child)
    first = child.pid
    supervised.check(100.0, said.append)
    supervised.check(100.5, said.append)
    assert child.pid == first
    supervised.check(101.0, said.append)
    assert child.pid != first

    wait_for_end(child)
    second = child.pid
    supervised.check(102.0, said.append)
    supervised.check(103.9, said.append)
    assert child.pid == second
    supervised.check(104.0, said.append)
    assert child.pid != second
    assert said[0] == "sample exited with code 3; restarting in 1 s."
    assert said[2] == "sample exited with code 3; restarting in 2 s."
    child.stop()


def test_the_delay_is_short_again_after_a_steady_run(tmp_path: Path) -> None:
    said: list[str] = []
    child = make_child(tmp_path, "pass")
    supervised = Supervised(child, delay_s=16.0, started_at=100.0)

    wait_for_end(child)
    supervised.check(500.0, said.append)

    assert said == ["sample exited with code 0; restarting in 1 s."]
    child.stop()


def test_a_running_child_is_left_alone(tmp_path: Path) -> None:
    child = make_child(tmp_path, "import signal; signal.pause()")
    said: list[str] = []
    Supervised(child).check(100.0, said.append)
    assert said == []
    assert child.is_running()
    child.stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_stops_and_the_next_does_not_disturb_the_stop(number: signal.Signals) -> None:
    stopped_in_order: list[bool] = []

    def work_until_stopped() -> None:
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), number)
            stopped_in_order.append(True)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(StopRequested), stop_on_signals():
        work_until_stopped()
    assert stopped_in_order
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_signal_shortens_the_grace_of_a_stop(tmp_path: Path) -> None:
    deaf = """if 1:
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("deaf", flush=True)
        while True:
            signal.pause()
    """
    program = Program(
        name="sample",
        command=(sys.executable, "-c", deaf),
        log=tmp_path / "sample.log",
        ready=log_says("deaf"),
        grace_s=1_000_000,
    )
    child = Child(program, tmp_path / "run")
    child.start()
    child.await_ready()

    def stop_impatiently() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            child.stop()

    with pytest.raises(StopRequested), stop_on_signals():
        stop_impatiently()
    assert child.exit_code() == -signal.SIGKILL


def test_a_stop_whose_exception_was_lost_is_raised_again() -> None:
    """A signal may arrive during a finalizer, which swallows exceptions."""

    def lose_the_first() -> None:
        with contextlib.suppress(StopRequested):
            os.kill(os.getpid(), signal.SIGTERM)
        raise_if_stopped()

    with pytest.raises(StopRequested), stop_on_signals():
        lose_the_first()
    raise_if_stopped()
