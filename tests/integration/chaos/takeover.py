"""Measures how long the turns of a killed worker wait until another has them (RT-11)."""

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
"""A turn that is taken up after a crash counts it in the same statement."""

HELD = """
    SELECT turns.turn_id, lanes.lease_token
    FROM workers
    JOIN lanes ON lanes.lease_owner = workers.worker_id
    JOIN turns ON turns.session_id = lanes.session_id AND turns.status = 'running'
    WHERE workers.pid = %s AND turns.finished_at IS NULL"""


@dataclass(frozen=True, order=True)
class Recovery:
    """From a kill until the turn was at work again; `apart`: in a process for suspects."""

    seconds: float
    apart: bool


@dataclass(frozen=True)
class Interruption:
    """`token`: of the lease that the killed worker had."""

    turn_id: str
    token: int
    killed_at: datetime


@dataclass(frozen=True)
class Machine:
    """Where recoveries are measured: quiet, or with every core loaded by others; `bar_s`: what holds there (RT-11).

    A short form runs beside other tests, whose load nobody knows; it shows that nothing waits for a lease to run out,
    which in its `settings` takes longer than anything else may.
    """

    loaded: bool
    bar_s: float
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    @contextmanager
    def load(self) -> Iterator[None]:
        """Keep each core busy, when it is to be, until the block ends."""
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
    """The turns that kills interrupted, and when; the database's clock is the only one."""

    database_url: str
    interrupted: list[Interruption] = field(default_factory=list)
    kills: int = 0

    def prepare(self) -> None:
        """Have the database note who takes a turn over; call it once its tables are there."""
        with psycopg.connect(self.database_url) as connection:
            connection.execute(NOTE_TAKEOVERS)

    def is_at_work(self, worker: psutil.Process) -> bool:
        """Say whether a worker has a turn that a kill would interrupt."""
        return bool(read_rows(self.database_url, HELD, (worker.pid,)))

    def kill(self, worker: psutil.Process) -> None:
        """Kill a worker and note the turns that it leaves unfinished."""
        with psycopg.connect(self.database_url) as connection:
            # First, so that whoever takes a turn over after we have seen it with this worker does so after the kill.
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
        """List the interruptions but for those whose turn the killed worker's last commit has ended."""
        with psycopg.connect(self.database_url) as connection:
            ended = dict(connection.execute("SELECT turn_id, token FROM turns").fetchall())
        return [one for one in self.interrupted if ended[one.turn_id] != one.token]

    def recoveries(self) -> list[Recovery]:
        """Of each interruption, shortest first."""
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
    """The value that `share` percent of the sorted values do not exceed."""
    return values[min(len(values) - 1, int(len(values) * share / 100))]


def describe(recoveries: list[Recovery]) -> str:
    """One line: how many, and how long they took, those of suspects also by themselves."""

    def tell(times: list[float]) -> str:
        if not times:
            return "none taken over"
        shares = ", ".join(f"p{share} {percentile(times, share):.2f} s" for share in (50, 90, 99))
        return f"{len(times)} taken over: {shares}, at most {times[-1]:.2f} s"

    apart = [recovery.seconds for recovery in recoveries if recovery.apart]
    return f"{tell([recovery.seconds for recovery in recoveries])}; of them suspects: {tell(apart)}"
