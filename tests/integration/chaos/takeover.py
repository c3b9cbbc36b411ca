"""Measures how long the sessions of a killed worker wait for their next progress (RT-11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import psutil
import psycopg

HELD = """
    SELECT turns.turn_id
    FROM workers
    JOIN lanes ON lanes.lease_owner = workers.worker_id
    JOIN turns ON turns.session_id = lanes.session_id AND turns.status = 'running'
    WHERE workers.pid = %s"""


AT_WORK = """
    SELECT EXISTS (
        SELECT 1 FROM workers
        JOIN lanes ON lanes.lease_owner = workers.worker_id
        JOIN turns ON turns.session_id = lanes.session_id AND turns.status = 'running'
        WHERE workers.pid = %s)"""


@dataclass
class Takeovers:
    """The turns that kills interrupted, and when."""

    database_url: str
    interrupted: dict[str, datetime] = field(default_factory=dict)
    kills: int = 0

    def is_at_work(self, worker: psutil.Process) -> bool:
        """Say whether a worker has a turn that a kill would interrupt."""
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(AT_WORK, (worker.pid,)).fetchone()
        return row is not None and row[0]

    def kill(self, worker: psutil.Process) -> None:
        """Kill a worker and note the turns that it leaves unfinished, on the database's clock."""
        with psycopg.connect(self.database_url) as connection:
            held = [turn for (turn,) in connection.execute(HELD, (worker.pid,))]
            worker.kill()
            worker.wait()
            self.kills += 1
            row = connection.execute("SELECT clock_timestamp()").fetchone()
            assert row is not None
            left = connection.execute(
                "SELECT turn_id FROM turns WHERE turn_id = ANY(%s) AND finished_at IS NULL", (held,)
            )
            for (turn,) in left:
                self.interrupted.setdefault(turn, row[0])

    def times_s(self) -> list[float]:
        """For each interrupted turn, the seconds from the kill until it was committed."""
        with psycopg.connect(self.database_url) as connection:
            finished = dict(
                connection.execute(
                    "SELECT turn_id, finished_at FROM turns WHERE turn_id = ANY(%s)",
                    (list(self.interrupted),),
                ).fetchall()
            )
        return sorted((finished[turn] - at).total_seconds() for turn, at in self.interrupted.items())


def percentile(values: list[float], share: float) -> float:
    """The value that `share` percent of the sorted values do not exceed."""
    return values[min(len(values) - 1, int(len(values) * share / 100))]
