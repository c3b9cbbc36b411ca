"""Profile a turn's CPU time by layer, on the production path with real stores, in one process.

First, CPU-time samples show the share of each layer. Then function calls are counted: for sessions that stay with
one lane runner, and for sessions that alternate between two runners. These counts don't depend on the machine.
Finally, one session runs alone, to measure the CPU time that PostgreSQL uses for each statement (Linux only).
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import uvloop
from psycopg.rows import TupleRow

from benchmarks.environment import Report, open_lanes, open_stores, parse
from benchmarks.turns import BOOKING
from orchestrator.adapters.postgres.hot_connections import HotConnection, Query
from orchestrator.adapters.postgres.statements import Statement, statement
from orchestrator.bootstrap import Ports
from orchestrator.runtime.lane import LaneRunner
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, SessionId
from workers.loop import collect_seldom

SAMPLE_EVERY_S = 0.001
DOMAIN = "travel"
LAYERS = {
    "orchestrator.nlu": "NLU",
    "orchestrator.pex": "PEX",
    "orchestrator.tools": "tools",
    "domains": "tools",
    "orchestrator.res": "RES",
    "orchestrator.agent": "Agent",
    "orchestrator.plans": "Agent",
    "orchestrator.context": "Agent",
    "orchestrator.dialogue": "dialogue state",
    "orchestrator.memory": "memory",
    "orchestrator.models": "models",
    "orchestrator.runtime": "lane",
    "orchestrator.turns": "lane",
    "orchestrator.adapters.postgres": "PostgreSQL client",
    "orchestrator.adapters.redis": "Redis client",
    "orchestrator.telemetry": "telemetry",
    "orchestrator": "other",
    "workers": "other",
}
BENEATH = "event loop"
"""Layer of samples without Parley code on the call stack."""

SERVED = {
    "submit": ("submit",),
    "claim": ("claim",),
    "commit": ("commit_turn",),
    "the domain's records": ("get_record", "find_records", "create_record", "update_record"),
    "journal and ledger of effects": ("record_step", "record_effect", "find_effect"),
}
"""Names of a turn's SQL statements, by the label that the report shows."""
BEGINNING = 60
"""Number of leading characters that identify an SQL statement. The text after them can vary with the arguments."""

WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
WAL_BYTES = "bytes of WAL"
CALLS = "function calls"
EVENT_LOOP = frozenset({"asyncio", "selectors"})
"""Packages whose calls are not counted, because their number depends on timing."""
COUNTED = {
    ("orjson", "loads"): "JSON decoded",
    ("orjson", "dumps"): "JSON encoded",
    ("orchestrator.adapters.postgres.statements", "ordered"): "statements",
    ("redis.asyncio.connection", "pack_command"): "Redis commands",
    ("hiredis.hiredis", "pack_command"): "Redis commands",
    ("prometheus_client.metrics", "observe"): "metric observations",
    ("orchestrator.telemetry.metrics", "observe"): "metric observations",
    ("prometheus_client.metrics", "inc"): "metric observations",
}


async def main() -> None:
    arguments = parse(
        "benchmarks.profile",
        __doc__,
        sessions=(16, "concurrent sessions"),
        turns=(60, "turns per session"),
        lines=(0, "number of most expensive code locations to list"),
    )
    with open_stores() as (running, _):
        async with open_lanes(running) as (ports, lanes), open_lanes(running) as (_, others):
            talk = Talk(ports, lanes, arguments.sessions)
            await talk.take(len(BOOKING))
            collect_seldom()
            samples, calls, moving = Samples(), Calls(), Calls()
            await talk.take(arguments.turns, samples)
            await talk.take(len(BOOKING), calls)
            logged = await talk.log_bytes(arguments.turns)
            for turn in range(3 * len(BOOKING)):
                talk.lanes = lanes if turn % 2 else others
                await talk.take(1, moving if turn >= 2 * len(BOOKING) else None)
            served = Served()
            alone = Talk(ports, lanes, 1, prefix="alone")
            await alone.take(len(BOOKING))
            await alone.take(arguments.turns, served)
    report = Report("profile", as_json=arguments.json)
    _report(samples, arguments.sessions * arguments.turns, arguments.lines, report)
    report.rows("PostgreSQL", served.of_one(arguments.turns))
    turns = arguments.sessions * len(BOOKING)
    counted, moved = {**calls.of_one(turns), WAL_BYTES: logged}, moving.of_one(turns)
    report.rows(
        "counts",
        [
            {"counted": name, "a turn": count, "where sessions move": moved.get(name, "")}
            for name, count in counted.items()
        ],
    )
    report.end()


@dataclass
class Talk:
    ports: Ports
    lanes: LaneRunner
    sessions: int
    said: int = 0
    prefix: str = "profile"
    names: list[SessionId] = field(default_factory=list[SessionId])

    async def take(self, turns: int, watch: Samples | Calls | Served | None = None) -> None:
        """Run `turns` turns in each session.

        `watch`: measures the turns from claim to commit. A `Served` also measures the submission.
        """
        if not self.names:
            self.names = [SessionId(f"{self.prefix}-{n}") for n in range(self.sessions)]
            for name in self.names:
                await self.ports.stores.sessions.create(DEFAULT_TENANT, DOMAIN, session_id=name)
        for _ in range(turns):
            text = BOOKING[self.said % len(BOOKING)]
            self.said += 1
            if isinstance(watch, Served):
                watch.begin()
            for name in self.names:
                await self.ports.stores.inbox.submit(Submission(name, TurnInput(text=text), DEFAULT_TENANT))
            if watch is not None and not isinstance(watch, Served):
                watch.begin()
            await asyncio.gather(*map(self.lanes.run, self.names))
            if watch is not None:
                watch.end()

    async def log_bytes(self, turns: int) -> float:
        """Return the WAL bytes per turn, including the turn's submission. Run `turns` turns per session.

        A checkpoint and some unmeasured turns come first, because the first write to a page after a checkpoint logs
        the whole page.
        """
        database = self.ports.stores.database
        await database.fetch_all("CHECKPOINT", {})
        await self.take(len(BOOKING))
        before = await database.fetch_one(WAL, {})
        await self.take(turns)
        after = await database.fetch_one(WAL, {})
        assert before is not None
        assert after is not None
        return float(after[0] - before[0]) / (turns * self.sessions)


class Samples:
    """A sampling profiler driven by this process's CPU time."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.layers: Counter[tuple[str, str]] = Counter()
        self.places: Counter[str] = Counter()
        signal.signal(signal.SIGPROF, self._note)

    def begin(self) -> None:
        self._began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_EVERY_S, SAMPLE_EVERY_S)

    def end(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        self.cpu_s += time.process_time() - self._began

    def _note(self, _: int, frame: FrameType | None) -> None:
        library = ""
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            layer = _layer_of(module)
            if layer is not None:
                self.layers[layer, library] += 1
                self.places[f"{module}:{frame.f_code.co_qualname} {library}"] += 1
                return
            library = module.partition(".")[0]
            frame = frame.f_back
        self.layers[BENEATH, library] += 1


class Calls:
    """A counter of function calls, in total and for each label in `COUNTED`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def begin(self) -> None:
        sys.setprofile(self._note)

    def end(self) -> None:
        sys.setprofile(None)

    def of_one(self, turns: int) -> dict[str, float]:
        return {name: self.counts[name] / turns for name in (CALLS, *COUNTED.values())}

    def _note(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            place = frame.f_globals.get("__name__", ""), frame.f_code.co_name
            self.counts[CALLS] += place[0].partition(".")[0] not in EVENT_LOOP
        elif event == "c_call":
            place = called.__module__, called.__name__
        else:
            return
        if place in COUNTED:
            self.counts[COUNTED[place]] += 1


class Served:
    """A counter of SQL statements, and of the CPU time that PostgreSQL uses for them, by label in `SERVED`."""

    def __init__(self) -> None:
        self.cpu_ns: Counter[str] = Counter()
        self.statements: Counter[str] = Counter()
        self._run = HotConnection.fetch_all
        self._purposes = {
            statement(name).text[:BEGINNING]: purpose for purpose, names in SERVED.items() for name in names
        }

    def begin(self) -> None:
        counted = self

        async def fetch_all(
            self: HotConnection, query: Query, arguments: Mapping[str, Any]
        ) -> list[TupleRow]:
            text = query.text if isinstance(query, Statement) else query
            purpose = counted._purposes.get(text[:BEGINNING], "other")
            before = _spent_ns(self.connection.info.backend_pid)
            rows = await counted._run(self, query, arguments)
            counted.cpu_ns[purpose] += _spent_ns(self.connection.info.backend_pid) - before
            counted.statements[purpose] += 1
            return rows

        HotConnection.fetch_all = fetch_all

    def end(self) -> None:
        HotConnection.fetch_all = self._run

    def of_one(self, turns: int) -> list[dict[str, Any]]:
        return [
            {
                "statements": purpose,
                "a turn": self.statements[purpose] / turns,
                "CPU us per turn": ns / turns / 1e3,
            }
            for purpose, ns in self.cpu_ns.most_common()
        ]


def _spent_ns(pid: int) -> int:
    return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0])


def _layer_of(module: str) -> str | None:
    while module:
        if module in LAYERS:
            return LAYERS[module]
        module = module.rpartition(".")[0]
    return None


def _report(samples: Samples, turns: int, lines: int, report: Report) -> None:
    total = samples.layers.total()
    us = 1e6 * samples.cpu_s / turns / total
    by_layer: Counter[str] = Counter()
    for (layer, _), count in samples.layers.items():
        by_layer[layer] += count
    rows: list[dict[str, Any]] = []
    for layer, count in by_layer.most_common():
        beneath = Counter({one: n for (name, one), n in samples.layers.items() if name == layer and one})
        named = ", ".join(f"{one} {n * us:.0f}" for one, n in beneath.most_common(4))
        rows.append(
            {"layer": layer, "CPU us per turn": count * us, "share": count / total, "in libraries": named}
        )
    rows.append(
        {"layer": "total", "CPU us per turn": total * us, "share": 1.0, "in libraries": f"{turns} turns"}
    )
    report.rows("layers", rows)
    places = samples.places.most_common(lines)
    report.rows("places", [{"place": place, "CPU us per turn": count * us} for place, count in places])


if __name__ == "__main__":
    uvloop.run(main())
