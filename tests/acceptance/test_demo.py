"""`make demo`: a worker is killed in the middle of a booking, and the flight is booked once (RT-9, RT-11, RT-17)."""

from __future__ import annotations

import re

from tests.processes.forked import run, user_environment


def test_the_killed_booking_is_answered_once_and_made_once() -> None:
    shown = run(("-m", "parley.demo"), environment=user_environment())

    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("Parley: Booked. Your reference is ") == 1
    assert re.search(r"Worker \d+ is booking the flight", shown.stdout)
    assert "exited with code -9" in shown.stderr
    assert "You have 1 booking:" in shown.stdout
    assert "1 × flight_book. Answered once, booked once." in shown.stdout
