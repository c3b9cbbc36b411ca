"""Three concurrent beats: every due time once, despite kills, freezes and a Redis outage (IF-15)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from internal_flows.schedule import Job, read_jobs
from tests.integration.chaos.fleet import ROOT, wait_until
from tests.processes.forked import ForkedProcess, start
from tests.processes.rows import read_rows

SETTINGS = """
schedule:
  every_second: {trigger: by_hand, every_s: 1}
  repair_state: null
  abandon_flows: null
  expire_sessions: null
  prune_archive: null
  prune_runtime: null
"""


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    folder.mkdir()
    (folder / "ontology.yaml").write_text("flows: {}\n")
    (folder / "internal_flows.yaml").write_text(SETTINGS)
    return folder


def start_beat(database_url: str, domain: Path, log: Path) -> ForkedProcess:
    return start(
        [
            *("-m", "celery", "-A", "tests.contract.internal.stand_in"),
            *("beat", "--pidfile=", "-s", str(log.with_suffix(".schedule"))),
        ],
        environment={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DATABASE_URL": database_url,
            "REDIS_URL": "redis://127.0.0.1:1/0",
            "PARLEY_DOMAIN": str(domain),
        },
        log=log,
    )


@pytest.fixture
def beats(database_url: str, domain: Path, tmp_path: Path) -> Iterator[list[ForkedProcess]]:
    with ExitStack() as stack:
        started = []
        for number in range(3):
            beat = start_beat(database_url, domain, tmp_path / f"beat{number}.log")
            stack.callback(beat.wait)
            stack.callback(beat.kill)
            started.append(beat)
        yield started


def firings(database_url: str, job: str = "every_second") -> list[tuple[float, float]]:
    """Return due times and actual times, in order."""
    query = (
        "SELECT extract(epoch FROM due_at)::float8, extract(epoch FROM fired_at)::float8"
        " FROM schedule_firings WHERE job = %s ORDER BY due_at"
    )
    return read_rows(database_url, query, (job,))


def started_runs(database_url: str) -> list[float]:
    """Return the due times of the started graphs."""
    query = "SELECT (parameters ->> 'due')::float8 FROM internal_runs WHERE flow = 'scripted' ORDER BY 1"
    return [due for (due,) in read_rows(database_url, query)]


async def test_firings_go_on_and_happen_once(beats, database_url: str, tmp_path: Path) -> None:
    """Without a broker; one beat is frozen, another is killed."""

    def fired(count: int) -> None:
        already = len(firings(database_url))
        wait_until(
            lambda: len(firings(database_url)) >= already + count, within_s=40, what=f"{count} more firings"
        )

    await asyncio.to_thread(fired, 3)
    beats[0].send_signal(signal.SIGSTOP)
    await asyncio.to_thread(fired, 3)
    beats[1].kill()
    await asyncio.to_thread(fired, 3)
    beats[0].send_signal(signal.SIGCONT)
    await asyncio.to_thread(fired, 2)

    seen = firings(database_url)
    due = [at for at, _ in seen]
    assert due == [due[0] + number for number in range(len(due))], "a due time was missed"
    # No worker runs these graphs, so later due times are merged with the first (IF-11).
    assert len(started_runs(database_url)) == 1
    assert started_runs(database_url)[0] in due


async def test_what_was_missed_while_no_beat_was_there_is_fired_once(
    beats, database_url: str, domain: Path, tmp_path: Path
) -> None:
    """Killed and restarted beats neither repeat nor lose a schedule."""
    await asyncio.to_thread(
        wait_until, lambda: firings(database_url), within_s=40, what="the first job is fired"
    )
    for beat in beats:
        beat.kill()
        beat.wait()
    before = firings(database_url)
    rare_at = time.time() // 1 + 2
    settings = domain / "internal_flows.yaml"
    settings.write_text(
        f"{SETTINGS}  rare: {{trigger: by_hand, every_s: 86400, offset_s: {rare_at % 86400:.0f}}}\n"
    )
    await asyncio.to_thread(
        wait_until, lambda: time.time() > rare_at + 1, within_s=20, what="nobody is there when it is due"
    )
    assert firings(database_url) == before

    with ExitStack() as stack:
        for number in range(2):
            again = start_beat(database_url, domain, tmp_path / f"again{number}.log")
            stack.callback(again.wait)
            stack.callback(again.kill)
        await asyncio.to_thread(
            wait_until,
            lambda: len(firings(database_url)) >= len(before) + 4 and firings(database_url, "rare"),
            within_s=40,
            what="jobs are fired again",
        )
    after = [due for due, _ in firings(database_url)][len(before) :]
    assert after == [after[0] + number for number in range(len(after))], "none is missed once they are back"
    assert after[0] > before[-1][0] + 1, "of several that were missed, the last one is fired"
    assert [due for due, _ in firings(database_url, "rare")] == [rare_at]


def test_due_times_do_not_depend_on_who_works_them_out() -> None:
    job = Job("j", "t", 60.0, 15.0)
    at = time.time() // 60 * 60

    assert [job.due(at + later) for later in (14.9, 15.0, 74.9, 75.0)] == [at - 45, at + 15, at + 15, at + 75]


def test_schedules_are_configuration() -> None:
    jobs = {
        job.name: job
        for job in read_jobs(
            {"repair_state": {"every_s": 30}, "prune_runtime": None, "own": {"every_s": 5}}
        ).jobs
    }

    assert jobs["repair_state"] == Job("repair_state", "repair_state", 30.0)
    assert jobs["own"] == Job("own", "own", 5.0)
    assert "prune_runtime" not in jobs


def test_every_mistake_of_a_schedule_is_told() -> None:
    jobs, off = read_jobs({"a": {}, "b": {"every_s": 5, "often": 1}, "c": {"every_s": 5, "offset_s": 9}})

    assert [problem.place.rpartition(".")[2] for problem in off] == ["a", "b", "c"]
    assert "repair_state" in {job.name for job in jobs}
