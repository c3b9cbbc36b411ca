"""The demo run by `make demo`: a worker is killed while it books a flight, yet the flight is booked exactly once.

A lock on the bookings table delays the booking, like a slow booking system. The worker is killed before it
learns whether the booking succeeded.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psycopg

from orchestrator.errors import ParleyError, Unavailable
from parley.embedded.ports import free_port
from parley.stack import RunningStack, StackPlan, run_stack
from parley.supervision import supervise
from parley_client import Client

SESSION: Final = "demo"
QUESTIONS: Final = ("Book a flight from Oslo to Madrid tomorrow", "wait, are pets allowed?")
WAIT_S: Final = 30.0
READING_S: Final = 2.0  # pause after each line in a terminal, in seconds
STARTED: Final = """
    SELECT workers.pid
    FROM effects
    JOIN lanes USING (session_id)
    JOIN workers ON workers.worker_id = lanes.lease_owner
    WHERE effects.session_id = %s AND effects.tool_id = 'flight_book' AND effects.status = 'started'
"""


class Screen:
    """The demo's output. In a terminal, it pauses for reading."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._began = time.monotonic()

    def say(self, who: str, text: str) -> None:
        lines = f"{who}: {text}".splitlines()
        width = shutil.get_terminal_size().columns
        print(
            *(textwrap.fill(line, width) if self._terminal else line for line in lines),
            "",
            sep="\n",
            flush=True,
        )
        self._pause()

    def note(self, text: str, color: int = 33) -> None:
        line = f"[{time.monotonic() - self._began:4.1f} s] {text}"
        print(f"\033[{color}m{line}\033[0m\n" if self._terminal else f"{line}\n", flush=True)
        self._pause()

    def _pause(self) -> None:
        if self._terminal:
            time.sleep(READING_S)


def run_demo(screen: Screen, data_dir: Path) -> bool:
    """Run the demo on a private stack with two workers. Return True if the flight was booked exactly once."""
    plan = StackPlan(
        data_dir=data_dir,
        domain="travel",
        host="127.0.0.1",
        port=free_port(),
        turn_workers=2,
        private=True,
        lasting=False,
    )
    with run_stack(plan, _print_progress) as stack, Client(stack.url) as client:
        screen.note("Two workers are ready.")
        client.create_session("travel", session_id=SESSION, user_id="ann")
        for text in QUESTIONS:
            _ask(screen, client, text)
        _book_beside_a_kill(screen, stack, client)
        return _count_bookings(screen, client)


def _print_progress(line: str) -> None:
    print(line, file=sys.stderr)


def _ask(screen: Screen, client: Client, text: str) -> None:
    screen.say("You", text)
    screen.say("Parley", client.submit(SESSION, text, wait_s=WAIT_S)["reply"])


def _book_beside_a_kill(screen: Screen, stack: RunningStack, client: Client) -> None:
    with psycopg.connect(stack.stores.database_url, autocommit=True) as watching:
        with _held_up(stack.stores.database_url):
            screen.say("You", "yes")
            turn_id = client.submit(SESSION, "yes")["turn_id"]
            pid = _await_call(watching)
            screen.note(f"Worker {pid} is booking the flight. kill -9 {pid}", 31)
            os.kill(pid, signal.SIGKILL)
        _await_failover(watching, pid)
        screen.note("The airline responds again. The other worker takes over the turn.")
        supervise(stack.children, _print_progress, until=lambda: client.turn(turn_id)["status"] == "done")
        screen.say("Parley", client.turn(turn_id)["reply"])


@contextmanager
def _held_up(database_url: str) -> Generator[None]:
    """Lock the bookings table until the block ends."""
    with psycopg.connect(database_url) as connection:
        connection.execute("LOCK TABLE records IN SHARE ROW EXCLUSIVE MODE")
        yield
        connection.rollback()


def _await_call(watching: psycopg.Connection) -> int:
    """Wait until a worker calls the booking tool. Return the worker's pid. Raises Unavailable on timeout."""
    ends_at = time.monotonic() + WAIT_S
    while time.monotonic() < ends_at:
        if (row := watching.execute(STARTED, [SESSION]).fetchone()) is not None:
            return row[0]
        time.sleep(0.05)
    raise Unavailable("The booking did not start.")


def _await_failover(watching: psycopg.Connection, pid: int) -> None:
    while watching.execute("SELECT FROM workers WHERE pid = %s", [pid]).fetchone() is not None:
        time.sleep(0.05)


def _count_bookings(screen: Screen, client: Client) -> bool:
    made = [effect for effect in client.effects(SESSION) if effect["tool_id"] == "flight_book"]
    done = [effect for effect in made if effect["status"] == "done"]
    _ask(screen, client, "list my bookings")
    screen.note(f"Side effects of this session: {len(done)} × flight_book. Answered once, booked once.", 32)
    return len(done) == 1


def main() -> int:
    with TemporaryDirectory(prefix="parley-demo-") as folder:
        try:
            return 0 if run_demo(Screen(), Path(folder)) else 1
        except ParleyError as error:
            print(f"parley: {error}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
