"""Measure a turn's cost as state, queue and idle sessions grow: `make bench-growth` (RT-19).

Parley runs an agent that does only the benchmark's work. For growing states, a hand-written Celery task is measured
for comparison. Rounds are interleaved.
"""

import asyncio
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from psycopg import sql

from benchmarks.candidates import ByHand, drain, run_by_hand, run_ours
from benchmarks.environment import Report, open_stores, own_stores, parse
from benchmarks.measure import Measurement
from benchmarks.turns import talk
from benchmarks.work import PLAIN, state_of
from parley.embedded import Stores
from parley.output import progress

KILOBYTES = (8, 98, 968)
SHORT, LONG = 100, 100_000
"""The compared numbers of queued turns and of idle sessions."""
TURNS_EACH = 10
"""Number of queued turns per session."""
WINDOW = 0.05
"""Share of a long queue's turns that are used to measure the rate near each end."""
BAR = 1.2
ENDED = "SELECT extract(epoch FROM finished_at)::float8 FROM turns WHERE finished_at IS NOT NULL ORDER BY 1"
OF_SESSIONS = """
    SELECT table_name FROM information_schema.columns AS named JOIN pg_class ON relname = table_name
    WHERE table_schema = current_schema() AND column_name = 'session_id' AND relkind = 'r'"""
COLUMNS = """
    SELECT column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = %s AND is_identity = 'NO'"""

Results = dict[str, list[Measurement]]


async def main() -> int:
    arguments = parse(
        "benchmarks.growth",
        __doc__,
        rounds=(3, "rounds of each comparison"),
        turns=(60, "turns per session in a closed loop"),
        queued=(LONG, "waiting turns in the long queue"),
        rest=(LONG, "idle sessions"),
    )
    report, kept = Report("growth", as_json=arguments.json), []
    with open_stores() as (running, folder), progress("parts") as counted:
        states = await _grow_states(running, folder, arguments.rounds, arguments.turns)
        counted(1, 3)
        rates = await _grow_queue(running, folder, arguments.queued)
        counted(2, 3)
        resting = await _grow_rest(running, folder, arguments.rest, arguments.rounds, arguments.turns)
        counted(3, 3)
    report.rows("states", _rows(states, f"echo, {KILOBYTES[0]} KB"))
    report.rows("queue", [{"queue": name, "turns/s": rate} for name, rate in rates.items()])
    report.rows("at rest", _rows(resting, f"{SHORT} at rest"))
    first, last = rates["long, its first"], rates["long, its last"]
    kept.append(report.verdict("drain, end of a long queue / its beginning, turns/s", last / first, BAR))
    kept.append(
        report.verdict("worker and PostgreSQL CPU, many at rest / few", _ratio(*resting.values()), BAR)
    )
    report.end()
    return 0 if all(kept) else 1


async def _grow_states(running: Stores, folder: Path, rounds: int, turns: int) -> Results:
    results: Results = defaultdict(list)
    async with (
        run_by_hand(own_stores(running, 1), folder) as by_hand,
        run_ours(
            own_stores(running, 2), folder, name="echo", application="benchmarks.echo", domain="echo"
        ) as echo,
    ):
        assert isinstance(by_hand, ByHand)
        for number in range(rounds + 1):
            for kilobytes in KILOBYTES:
                by_hand.first, echo.domain = state_of(kilobytes), f"echo-{kilobytes}"
                for candidate in (echo, by_hand):
                    measured = await talk(candidate, f"{kilobytes}-{number}", turns if number else 4)
                    if number:
                        results[f"{candidate.name}, {kilobytes} KB"].append(measured)
    return results


async def _grow_queue(running: Stores, folder: Path, queued: int) -> dict[str, float]:
    """Return the turns per second with a short queue, and at both ends of a long queue."""
    rates: dict[str, float] = {}
    own = own_stores(running, 3)
    async with run_ours(own, folder, name="queue", application="benchmarks.echo", domain="echo") as echo:
        texts = [PLAIN[number % len(PLAIN)] for number in range(TURNS_EACH)]
        await drain(echo, _names("warm", SHORT), texts)
        for length in (SHORT, queued):
            with psycopg.connect(own.database_url, autocommit=True) as connection:
                before = len(connection.execute(ENDED).fetchall())
                await drain(echo, _names(f"queue-{length}", length // TURNS_EACH), texts)
                ended = [at for (at,) in connection.execute(ENDED).fetchall()[before:]]
            if length == SHORT:
                rates["short"] = _rate(ended)
                continue
            window = int(WINDOW * length)
            # Skip the first window, because the workers are still waking up.
            rates |= {"long": _rate(ended), "long, its first": _rate(ended[window : 2 * window])}
            rates["long, its last"] = _rate(ended[-window:])
    return rates


async def _grow_rest(running: Stores, folder: Path, rest: int, rounds: int, turns: int) -> Results:
    results: Results = defaultdict(list)
    few, many = own_stores(running, 4), own_stores(running, 5)
    options = {"application": "benchmarks.echo", "domain": "echo"}
    async with (
        run_ours(few, folder, name="few", **options) as beside_few,
        run_ours(many, folder, name="many", **options) as beside_many,
    ):
        for candidate, stores, count in ((beside_few, few, SHORT), (beside_many, many, rest)):
            await talk(candidate, "rest", 3)
            copy_session(stores.database_url, f"{candidate.name}-rest-0", count)
            await _settle(stores.database_url)
        for number in range(rounds + 1):
            for candidate, count in ((beside_few, SHORT), (beside_many, rest)):
                measured = await talk(candidate, f"loop-{number}", turns if number else 4)
                if number:
                    results[f"{count} at rest"].append(measured)
    return results


def copy_session(database_url: str, session: str, count: int) -> None:
    """Copy an idle session `count` times, with its rows in all tables, as new sessions."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        # Skip foreign-key checks, because the copied rows are as consistent as the originals.
        connection.execute("SET session_replication_role = replica")
        for (table,) in connection.execute(OF_SESSIONS).fetchall():
            columns = [name for (name,) in connection.execute(COLUMNS, (table,)).fetchall()]
            own = {"session_id", "turn_id"}
            values = [
                sql.SQL("kept.{name} || '-' || copy").format(name=sql.Identifier(name))
                if name in own
                else sql.SQL("kept.{name}").format(name=sql.Identifier(name))
                for name in columns
            ]
            connection.execute(
                sql.SQL(
                    "INSERT INTO {table} ({columns}) SELECT {values}"
                    " FROM {table} AS kept CROSS JOIN generate_series(1, {count}) AS copy WHERE session_id = {session}"
                ).format(
                    table=sql.Identifier(table),
                    columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
                    values=sql.SQL(", ").join(values),
                    count=sql.Literal(count),
                    session=sql.Literal(session),
                )
            )


async def _settle(database_url: str) -> None:
    """Wait until the workers' sweep has checked all copied sessions. Then vacuum, analyze and write a checkpoint."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        while connection.execute("SELECT FROM lanes WHERE check_at IS NOT NULL LIMIT 1").fetchone():
            await asyncio.sleep(0.5)
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def _rate(ended: list[float]) -> float:
    """Return turns per second. `ended`: sorted finish times of turns, in seconds."""
    return (len(ended) - 1) / (ended[-1] - ended[0])


def _cpu_us(measured: Measurement) -> float:
    return measured.cpu_us("worker") + measured.cpu_us("postgres")


def _ratio(few: list[Measurement], many: list[Measurement]) -> float:
    return median(_cpu_us(more) / _cpu_us(less) for less, more in zip(few, many, strict=True))


def _rows(results: Results, against: str) -> list[dict[str, Any]]:
    """Return table rows with the median of each result's rounds, and CPU time relative to the result `against`."""
    return [
        {
            "closed loop": name,
            "turns/s": median(one.rate for one in rounds),
            "worker CPU us": median(one.cpu_us("worker") for one in rounds),
            "postgres CPU us": median(one.cpu_us("postgres") for one in rounds),
            f"CPU / {against}": _ratio(results[against], rounds),
        }
        for name, rounds in results.items()
    ]


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
