"""Measurement of how long turns of a killed worker wait for another worker (RT-11)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import psutil
import psycopg

from tests.processes.rows import read_rows

NOTE_TAKEOVERS = """
CREATE TABLE IF NOT EXISTS takeovers (turn_id text, at timestamptz, apart boolean);
CREATE OR REPLACE FUNCTION note_takeover() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO takeovers VALUES (NEW.turn_id, clock_timestamp(), NEW.crashes > 1); RETURN NEW; END';
CREATE OR REPLACE TRIGGER note_takeover AFTER UPDATE ON turns FOR EACH ROW WHEN (NEW.crashes > OLD.crashes)
    EXECUTE FUNCTION note_takeover();
"""
"""SQL for the takeover of a turn after a crash, which counts the crash in the same statement."""

HELD = """
    SELECT turns.turn_id, lanes.lease_token
    FROM workers
    JOIN lanes ON lanes.lease_owner = workers.worker_id
    JOIN turns ON turns.session_id = lanes.session_id AND turns.status = 'running'
    WHERE workers.pid = %s AND turns.finished_at IS NULL"""


@dataclass(frozen=True, order=True)
class Recovery:
    """Time from a kill until the turn ran again. `apart`: True in a process for suspected turns."""

    seconds: float
    apart: bool


@dataclass(frozen=True)
class Interruption:
    """An interrupted turn. `token`: fencing token of the killed worker's lease."""

    turn_id: str
    token: int
    killed_at: datetime


@dataclass(frozen=True)
class Machine:
    """The measured machine: idle, or with every core loaded. `bar_s`: the limit (RT-11).

    A short form runs beside other tests with unknown load. It shows that nothing waits for a lease to expire,
    which takes longer than everything else in its `settings`.
    """

    loaded: bool
    bar_s: float
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    @contextmanager
    def load(self) -> Iterator[None]:
        """Load each core if required, until the block ends."""
        command = [sys.executable, "-c", "while True: pass"]
        busy = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)] if self.loaded else []
        try:
            yield
        finally:
            for process in busy:
                process.kill()
                process.wait()


ANY = Machine(loaded=False, bar_s=120.0, settings={"PARLEY_LEASE_TTL_S": "600"})
QUIET = Machine(loaded=False, bar_s=2.0)
LOADED = Machine(loaded=True, bar_s=4.0)


@dataclass
class Takeovers:
    """Turns interrupted by kills, with times. All times are from the database's clock."""

    database_url: str
    interrupted: list[Interruption] = field(default_factory=list)
    kills: int = 0

    def prepare(self) -> None:
        """Install a trigger that records takeovers. Call it when the tables exist."""
        with psycopg.connect(self.database_url) as connection:
            connection.execute(NOTE_TAKEOVERS)

    def is_at_work(self, worker: psutil.Process) -> bool:
        """Return whether a worker has a turn that a kill would interrupt."""
        return bool(read_rows(self.database_url, HELD, (worker.pid,)))

    def kill(self, worker: psutil.Process) -> None:
        """Kill a worker and record its unfinished turns."""
        with psycopg.connect(self.database_url) as connection:
            # First, so that later takeovers of turns seen with this worker happen after the kill.
            row = connection.execute("SELECT clock_timestamp()").fetchone()
            assert row is not None
            held: dict[str, int] = dict(connection.execute(HELD, (worker.pid,)).fetchall())
            worker.kill()
            worker.wait()
            self.kills += 1
            left = connection.execute(
                "SELECT turn_id FROM turns WHERE turn_id = ANY(%s) AND finished_at IS NULL", (list(held),)
            )
            self.interrupted += [Interruption(turn, held[turn], row[0]) for (turn,) in left]

    def unfinished(self) -> list[Interruption]:
        """List the interruptions, except for turns that the killed worker's last commit ended."""
        with psycopg.connect(self.database_url) as connection:
            ended = dict(connection.execute("SELECT turn_id, token FROM turns").fetchall())
        return [one for one in self.interrupted if ended[one.turn_id] != one.token]

    def recoveries(self) -> list[Recovery]:
        """Return the recoveries of all interruptions, shortest first."""
        taken: dict[str, list[tuple[datetime, bool]]] = defaultdict(list)
        with psycopg.connect(self.database_url) as connection:
            for turn, at, apart in connection.execute("SELECT * FROM takeovers ORDER BY at"):
                taken[turn].append((at, apart))
        found: list[Recovery] = []
        for one in self.unfinished():
            after = next(((at, apart) for at, apart in taken[one.turn_id] if at > one.killed_at), None)
            if after is not None:
                found.append(Recovery((after[0] - one.killed_at).total_seconds(), after[1]))
        return sorted(found)


def percentile(values: list[float], share: float) -> float:
    """Return the smallest sorted value that is not below `share` percent of the values."""
    return values[min(len(values) - 1, int(len(values) * share / 100))]


def describe(recoveries: list[Recovery]) -> str:
    """Describe in one line: the number and durations, with separate numbers for suspected turns."""

    def tell(times: list[float]) -> str:
        if not times:
            return "none taken over"
        shares = ", ".join(f"p{share} {percentile(times, share):.2f} s" for share in (50, 90, 99))
        return f"{len(times)} taken over: {shares}, at most {times[-1]:.2f} s"

    apart = [recovery.seconds for recovery in recoveries if recovery.apart]
    return f"{tell([recovery.seconds for recovery in recoveries])}; of them suspects: {tell(apart)}"
