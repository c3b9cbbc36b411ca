"""`make bench-peers`: the same work on other tools, each in an environment of its own, beside the hand-written task.

Rounds are interleaved; what has been measured is kept after each phase, so that a run that is stopped has its
rounds. The page in `docs/performance.md` is drawn from what is kept: ``--draw yes`` draws it without measuring.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.candidates import Candidate
from benchmarks.environment import ROOT, open_stores, own_stores, parse, run_process, run_workers
from benchmarks.mailbox import PROCESSES, QUEUE
from benchmarks.measure import GROUPS
from benchmarks.turns import DRAIN_SESSIONS, DRAIN_TURNS, SAID, Results, measure, run_candidates
from benchmarks.waiting import OURS, SESSIONS, WAIT_S, Opener, measure_waiting, rows_of
from benchmarks.waiting import Results as Waiting
from benchmarks.work import read_concurrency
from parley.embedded import Stores
from parley.output import progress
from parley.processes import log_says

PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->"
YARDSTICK = "by hand"
WAITING_TURNS = 5
"""Of each session: the slowest take minutes for more."""
_SPREAD = """Other programs used the machine, and
rounds of one row differed by up to {spread:.1f} times: differences below twice are not shown by these tables."""


def draw(kept: dict[str, Any]) -> None:
    """Write the table of medians; ratios are of the same round's hand-written task."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{_tables(kept)}{END}{after}")


def _tables(kept: dict[str, Any]) -> str:
    about = kept["environment"]
    machine = f"{about['cores']} cores, {about['system']}, Python {about['python']}, load {about['load']}"
    spread = max(max(row["turns_per_s"]) / min(row["turns_per_s"]) for row in kept["rounds"])
    lines = [f"Measured on {kept['measured']}: {machine}. {_SPREAD.format(spread=spread)}", ""]
    rows = {(row["phase"], row["name"]): row for row in kept["rounds"]}
    for phase in dict.fromkeys(row["phase"] for row in kept["rounds"]):
        lines += [
            f"| {phase} | turns/s | × by hand | worker CPU, µs a turn | × by hand | PostgreSQL CPU | rounds |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        hand = rows[phase, YARDSTICK]
        for (_, name), row in ((key, row) for key, row in rows.items() if key[0] == phase):
            cpu = row["cpu_us"]
            lines.append(
                f"| {name} | {median(row['turns_per_s']):.0f} | {_ratio(row['turns_per_s'], hand['turns_per_s'])} "
                f"| {median(cpu['worker']):.0f} | {_ratio(cpu['worker'], hand['cpu_us']['worker'])} "
                f"| {median(cpu['postgres']):.0f} | {len(row['turns_per_s'])} |"
            )
        lines.append("")
    if kept["waiting"]:
        what = f"{SESSIONS} sessions, a model that takes {WAIT_S:.0f} s, one worker process"
        lines += [
            f"| {what} | turns/s | of the ideal | p50, ms | p99, ms | worker CPU, µs a turn | MB more |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
    for row in kept["waiting"]:
        lines.append(
            f"| {row['candidate']} | {row['turns/s']:.0f} | {row['share of the ideal']:.0%} | {row['p50 ms']:.0f} "
            f"| {row['p99 ms']:.0f} | {row['worker CPU us']:.0f} | {row['MB more']:.0f} |"
        )
    return "\n".join([*lines, ""]) + "\n"


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    return f"{median(one / other for one, other in zip(ours, theirs, strict=False)):.2f}"


HERE = Path(__file__).parent
KEPT = HERE / "results.json"
PEERS = {
    "LangGraph": ("langgraph", {"LANGGRAPH": "default"}),
    "LangGraph, leanest": ("langgraph", {"LANGGRAPH": "leanest"}),
    "procrastinate": ("procrastinate", {}),
    "DBOS": ("dbos", {}),
}
"""Module and environment by name."""


def install(module: str) -> str:
    """The Python of a peer's environment, made of its pinned file when that is new."""
    folder, pinned = ROOT / f".venv-{module}", HERE / f"{module}.txt"
    python, done = folder / "bin/python", folder / ".installed"
    if not done.exists() or done.read_text() != pinned.read_text():
        print(f"Installing {module}.", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qq", "-r", str(pinned)], check=True)
        done.write_text(pinned.read_text())
    return str(python)


@dataclass
class Peer:
    """A candidate whose client is a process in an environment of its own."""

    name: str
    client: asyncio.subprocess.Process
    workers: list[psutil.Process] = field(default_factory=list[psutil.Process])
    waiting: dict[int, asyncio.Future[Any]] = field(default_factory=dict[int, "asyncio.Future[Any]"])

    async def prepare(self, sessions: Iterable[str]) -> None:
        await self._order("prepare", list(sessions))

    async def submit(self, session: str, text: str) -> None:
        await self._order("submit", session, [text])

    async def converse(self, session: str, texts: list[str]) -> list[float]:
        return await self._order("converse", session, texts)

    async def drained(self) -> None:
        await self._order("drained")

    async def _order(self, name: str, *arguments: object) -> Any:
        number = len(self.waiting)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        assert self.client.stdin is not None
        self.client.stdin.write(json.dumps([number, name, arguments]).encode() + b"\n")
        return await self.waiting[number]

    async def listen(self) -> None:
        """Hand answers to those who wait for them."""
        assert self.client.stdout is not None
        while line := await self.client.stdout.readline():
            number, result = json.loads(line)
            self.waiting[number].set_result(result)
        for one in self.waiting.values():
            if not one.done():
                one.set_exception(RuntimeError(f"The client of {self.name} has ended."))


@asynccontextmanager
async def _run_peer(name: str, stores: Stores, folder: Path) -> AsyncIterator[Peer]:
    """Two worker processes, or one for many turns at once, and a client; the client makes the tables first."""
    module, environment = PEERS[name]
    slots = read_concurrency(PROCESSES)
    processes = PROCESSES if slots == PROCESSES else 1
    python, label = install(module), name.replace(", ", "-")
    addresses = {"DATABASE_URL": stores.database_url, "REDIS_URL": stores.redis_url, "PYTHONPATH": str(ROOT)}
    client = await asyncio.create_subprocess_exec(
        *(python, "-m", "benchmarks.peers.client", module),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**26,
        env={**os.environ, **environment, **addresses},
    )
    assert client.stdout is not None
    assert client.stdin is not None
    peer = Peer(name, client)
    listening = None
    try:
        await client.stdout.readline()
        with ExitStack() as stack:
            if module == "langgraph":
                celery = run_workers(
                    stores,
                    folder,
                    name=label,
                    application="benchmarks.peers.langgraph",
                    queues=QUEUE,
                    pool="prefork" if slots == PROCESSES else "threads",
                    threads=slots,
                    environment=environment,
                    python=python,
                )
                peer.workers += stack.enter_context(celery)
            else:
                program = ("-m", f"benchmarks.peers.{module}")
                for number in range(processes):
                    worker = run_process(
                        f"{label}-{number}", program, stores, folder, log_says(" ready."), environment, python
                    )
                    peer.workers.append(stack.enter_context(worker))
            listening = asyncio.create_task(peer.listen())
            yield peer
    finally:
        client.stdin.close()
        await asyncio.wait_for(client.wait(), 30)
        if listening is not None:
            await listening


OPENERS: dict[str, Opener] = {**OURS, **{name: partial(_run_peer, name) for name in PEERS}}
"""Those of which one worker process is asked to hold many turns; `travel` asks no model here."""


def _keep(results: Results, waiting: Waiting) -> None:
    KEPT.write_text(
        json.dumps(
            {
                "measured": datetime.now(UTC).date().isoformat(),
                "environment": {
                    "python": platform.python_version(),
                    "cores": psutil.cpu_count(),
                    "load": round(psutil.getloadavg()[2], 1),
                    "system": f"{platform.system()} {platform.machine()}",
                },
                "rounds": [
                    {
                        "phase": phase,
                        "name": name,
                        "turns_per_s": [round(one.rate, 1) for one in rounds],
                        "p50_ms": [round(one.p50_ms, 2) if one.latencies_s else None for one in rounds],
                        "cpu_us": {group: [round(one.cpu_us(group)) for one in rounds] for group in GROUPS},
                    }
                    for (phase, name), rounds in sorted(results.items())
                ],
                "waiting": rows_of(waiting),
            },
            indent=1,
        )
        + "\n"
    )


async def main() -> None:
    arguments = parse(
        "benchmarks.peers",
        __doc__,
        rounds=(5, "each of a closed loop and a drain"),
        turns=(60, "turns of each session in the closed loop"),
        queued=(DRAIN_TURNS, f"turns that wait in each of {DRAIN_SESSIONS} sessions"),
        waiting=(2, "rounds of many sessions that wait for a model, in one worker process"),
        only=((*SAID, *PEERS), "names of candidates; all of them by default"),
        draw=("no", "yes: draw the page from what is kept, and measure nothing"),
    )
    if arguments.draw == "no":
        with open_stores() as (running, folder):
            async with AsyncExitStack() as stack:
                candidates: list[Candidate] = []
                candidates += await stack.enter_async_context(run_candidates(running, folder, arguments.only))
                for number, name in enumerate(PEERS, start=len(SAID)):
                    if name in arguments.only:
                        opened = _run_peer(name, own_stores(running, number), folder)
                        candidates.append(await stack.enter_async_context(opened))
                # A page of some candidates alone would lose the others.
                keep = _keep if {*arguments.only} == {*SAID, *PEERS} else lambda *_: None
                with progress("turns, phases") as counted:
                    rounds = (arguments.rounds, arguments.turns, arguments.queued)
                    results = await measure(candidates, *rounds, lambda some: keep(some, {}), counted)
            openers = {name: one for name, one in OPENERS.items() if name in arguments.only}
            with progress("waiting, rounds") as counted:
                waiting = await measure_waiting(
                    openers, running, folder, rounds=arguments.waiting, turns=WAITING_TURNS, counted=counted
                )
            keep(results, waiting)
    draw(json.loads(KEPT.read_text()))


if __name__ == "__main__":
    asyncio.run(main())
