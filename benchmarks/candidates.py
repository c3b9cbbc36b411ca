"""The candidates: how each is started, how a turn is submitted, and how its end is seen."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil
import psycopg
from redis.asyncio import Redis

from benchmarks.work import FIRST
from orchestrator.adapters.postgres.statements import parse
from orchestrator.adapters.redis.client import connect
from orchestrator.bootstrap import Ports, open_ports
from orchestrator.settings import Settings
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.embedded import Stores

ROOT = Path(__file__).resolve().parents[1]
READY_WITHIN_S = 60
WAITING = parse("SELECT 1 FROM lanes WHERE pending > 0 LIMIT 1")


class Candidate(Protocol):
    name: str
    workers: list[psutil.Process]

    async def prepare(self, sessions: list[str]) -> None:
        """Make the sessions."""
        ...

    async def converse(self, session: str, texts: list[str]) -> list[float]:
        """Submit one turn after the other, each after the answer to the last; seconds for each."""
        ...

    async def enqueue(self, session: str, texts: list[str]) -> None:
        """Submit without waiting."""
        ...

    async def drained(self) -> None:
        """Wait until everything that was enqueued is answered."""
        ...


@dataclass
class ByHand:
    """See `benchmarks.by_hand`."""

    database_url: str
    redis: Redis
    workers: list[psutil.Process]
    name: str = "by hand"
    expected: int = 0

    async def prepare(self, sessions: list[str]) -> None:
        with psycopg.connect(self.database_url) as connection, connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO by_hand_sessions VALUES (%s, 0, %s)",
                [(name, FIRST.decode()) for name in sessions],
            )

    async def converse(self, session: str, texts: list[str]) -> list[float]:
        from benchmarks import by_hand  # noqa: PLC0415 - it reads the environment

        times = []
        for text in texts:
            began = time.perf_counter()
            await self.submit(session, text)
            await self.redis.brpop([by_hand.keys(session)[2]], timeout=0)
            times.append(time.perf_counter() - began)
        return times

    async def enqueue(self, session: str, texts: list[str]) -> None:
        for text in texts:
            await self.submit(session, text)

    async def drained(self) -> None:
        while int(await self.redis.get("hand:done") or 0) < self.expected:
            await asyncio.sleep(0.01)

    async def submit(self, session: str, text: str) -> None:
        from benchmarks import by_hand  # noqa: PLC0415

        self.expected += 1
        keys = by_hand.keys(session)
        if await self.redis.eval(by_hand.SUBMIT, 2, keys[0], keys[1], text):
            by_hand.run.delay(session)


@dataclass
class Ours:
    """The real path: inbox, wake-up, lane, live events."""

    ports: Ports
    workers: list[psutil.Process]
    name: str
    domain: str

    async def prepare(self, sessions: list[str]) -> None:
        for session in sessions:
            await self.ports.sessions.create(DEFAULT_TENANT, self.domain, session_id=SessionId(session))

    async def converse(self, session: str, texts: list[str]) -> list[float]:
        times = []
        async with self.ports.live.listen(SessionId(session)) as events:
            for text in texts:
                began = time.perf_counter()
                turn_id = await self.submit(session, text)
                async for event in events:
                    if event.type in {"answer", "failed"} and event.turn_id == turn_id:
                        break
                times.append(time.perf_counter() - began)
        return times

    async def enqueue(self, session: str, texts: list[str]) -> None:
        for text in texts:
            await self.submit(session, text)

    async def drained(self) -> None:
        while await self.ports.database.fetch_one(WAITING, {}):
            await asyncio.sleep(0.01)

    async def submit(self, session: str, text: str) -> str:
        submission = Submission(SessionId(session), TurnInput(text=text), DEFAULT_TENANT)
        receipt = await self.ports.inbox.submit(submission)
        await self.ports.wakeup.offer(SessionId(session))
        return receipt.turn_id


@asynccontextmanager
async def run_by_hand(stores: Stores, logs: Path) -> AsyncIterator[Candidate]:
    """Two processes of the prefork pool, which was the best of the pools for it."""
    from benchmarks import by_hand  # noqa: PLC0415

    with psycopg.connect(stores.database_url) as connection:
        for table in by_hand.TABLES.split(";"):
            connection.execute(table)
    arguments = ["-P", "prefork", "-c", "2", "-Q", by_hand.QUEUE]
    async with AsyncExitStack() as stack:
        worker = stack.enter_context(_worker("benchmarks.by_hand", "hand", arguments, stores, logs))
        redis = await stack.enter_async_context(
            connect(stores.redis_url, reply_timeout_s=60, max_connections=1000)
        )
        yield ByHand(stores.database_url, redis, [worker])


@asynccontextmanager
async def run_ours(
    stores: Stores, logs: Path, *, name: str, application: str, domain: str, processes: int = 2
) -> AsyncIterator[Candidate]:
    """Worker processes of our own, as `parley up` starts them."""
    arguments = ["-P", "threads", "-c", "16", "-Q", "turns"]
    async with AsyncExitStack() as stack:
        workers = [
            stack.enter_context(_worker(application, f"{name}-{n}".replace(" ", ""), arguments, stores, logs))
            for n in range(processes)
        ]
        settings = Settings(DATABASE_URL=stores.database_url, REDIS_URL=stores.redis_url)
        ports = await stack.enter_async_context(open_ports(settings))
        yield Ours(ports, workers, name, domain)


class _worker:  # noqa: N801 - used as a function
    """Run a worker until the block ends; gives its process once it is ready."""

    def __init__(self, application: str, name: str, arguments: list[str], stores: Stores, logs: Path) -> None:
        self._log = logs / f"{name}.log"
        self._command = [
            *(sys.executable, "-m", "celery", "-A", application, "worker", *arguments),
            *("-n", f"{name}@bench", "--without-gossip", "--without-mingle", "-l", "INFO"),
        ]
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DATABASE_URL": stores.database_url,
            "REDIS_URL": stores.redis_url,
        }

    def __enter__(self) -> psutil.Process:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )
        ends_at = time.monotonic() + READY_WITHIN_S
        while b" ready." not in self._log.read_bytes():
            if self._process.poll() is not None or time.monotonic() > ends_at:
                self._process.kill()
                raise RuntimeError(f"a worker did not start: {self._log.read_text()[-2000:]}")
            time.sleep(0.05)
        return psutil.Process(self._process.pid)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
