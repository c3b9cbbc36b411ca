"""Compare Parley with other frameworks and a hand-written task on the same work: `make bench-peers`.

Each framework has a separate Python environment. Rounds are interleaved. Results are stored after each phase, so an
interrupted run keeps its finished rounds. ``--draw yes`` updates the tables in the documentation from stored results,
without measuring.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from benchmarks.candidates import Candidate
from benchmarks.environment import ROOT, open_stores, own_stores, parse, run_process, run_workers
from benchmarks.mailbox import PROCESSES, QUEUE
from benchmarks.measure import GROUPS
from benchmarks.peers.tables import KEPT, draw
from benchmarks.turns import DRAIN_SESSIONS, DRAIN_TURNS, SAID, Results, measure, run_candidates
from benchmarks.waiting import OURS, Opener, measure_waiting, rows_of
from benchmarks.waiting import Results as Waiting
from benchmarks.work import read_concurrency
from parley.embedded import Stores
from parley.output import progress
from parley.processes import log_says

WAITING_TURNS = 5
"""Number of turns per session in the waiting benchmark. With more turns, the slowest candidates take minutes."""

HERE = Path(__file__).parent
PEERS = {
    "LangGraph": ("langgraph", {"LANGGRAPH": "default"}),
    "LangGraph, leanest": ("langgraph", {"LANGGRAPH": "leanest"}),
    "procrastinate": ("procrastinate", {}),
    "DBOS": ("dbos", {}),
}
"""The module in `benchmarks.peers` and the environment variables of each framework, by candidate name."""


def install(module: str) -> str:
    """Return the Python executable from a framework's environment.

    Create the environment if it is missing or the pinned requirements have changed.
    """
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
    """A candidate whose client runs in a separate Python environment and receives orders, such as `submit`.

    `waiting`: futures with the results of orders, by order number.
    """

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
        """Read results from the client until it exits, and resolve the pending orders."""
        assert self.client.stdout is not None
        while line := await self.client.stdout.readline():
            number, result = json.loads(line)
            self.waiting[number].set_result(result)
        for one in self.waiting.values():
            if not one.done():
                one.set_exception(RuntimeError(f"The client of {self.name} has ended."))


@asynccontextmanager
async def _run_peer(name: str, stores: Stores, folder: Path) -> AsyncIterator[Peer]:
    """Run a framework's client, which creates the tables, and its workers.

    There are two worker processes, or one if `BENCH_CONCURRENCY` is set.
    """
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
"""Functions that run a candidate for the waiting benchmark, by candidate name."""


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
        rounds=(5, "rounds of the closed loop and of the drain"),
        turns=(60, "turns per session in the closed loop"),
        queued=(DRAIN_TURNS, f"waiting turns in each of {DRAIN_SESSIONS} sessions"),
        waiting=(2, "rounds of the waiting benchmark, in one worker process"),
        only=((*SAID, *PEERS), "candidates to run. Default: all"),
        draw=("no", "yes: only update the page from stored results"),
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
                # If only some candidates run, keep the stored results of the others.
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
