"""The candidates that benchmarks compare: Parley and a hand-written Celery task."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil
import psycopg
from celery import Celery  # pyright: ignore[reportMissingTypeStubs]
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from benchmarks import mailbox
from benchmarks.environment import run_workers, settings_of
from benchmarks.measure import Measurement, Phase
from benchmarks.work import FIRST, read_concurrency
from orchestrator.adapters.postgres.statements import parse
from orchestrator.adapters.redis.address import for_celery
from orchestrator.bootstrap import Ports, open_ports
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.embedded import Stores

WAITING = parse("SELECT 1 FROM lanes WHERE pending > 0 LIMIT 1")


PATIENCE_S = 120.0
"""Timeout of Redis calls, in seconds. It is long, because a late reply on a busy machine is not a failure."""


class Candidate(Protocol):
    name: str
    workers: list[psutil.Process]

    async def prepare(self, sessions: Iterable[str]) -> None: ...

    async def submit(self, session: str, text: str) -> object: ...

    async def converse(self, session: str, texts: list[str]) -> list[float]:
        """Submit each text as a turn after the previous answer. Return the latencies in seconds."""
        ...

    async def drained(self) -> None:
        """Wait until all submitted turns are answered."""
        ...


async def enqueue(candidate: Candidate, sessions: Iterable[str], texts: list[str]) -> None:
    """Submit each text to each session as a turn, without waiting for answers. Sessions are served concurrently."""

    async def one(session: str) -> None:
        for text in texts:
            await candidate.submit(session, text)

    await asyncio.gather(*map(one, sessions))


async def drain(candidate: Candidate, sessions: list[str], texts: list[str]) -> Measurement:
    """Queue turns while the workers are suspended. Then measure the time and CPU that the workers need to run them.

    `texts`: the turns for each session.
    """
    await candidate.prepare(sessions)
    _send(candidate, signal.SIGSTOP)
    try:
        await enqueue(candidate, sessions, texts)
        phase = Phase(candidate.workers)
    finally:
        _send(candidate, signal.SIGCONT)
    await candidate.drained()
    return phase.end(len(sessions) * len(texts))


def _send(candidate: Candidate, number: signal.Signals) -> None:
    for worker in candidate.workers:
        for process in (worker, *worker.children(recursive=True)):
            process.send_signal(number)


@dataclass
class ByHand:
    database_url: str
    redis: Redis
    celery: Celery
    workers: list[psutil.Process]
    name: str = "by hand"
    expected: int = 0
    first: bytes = FIRST

    async def prepare(self, sessions: Iterable[str]) -> None:
        with psycopg.connect(self.database_url) as connection, connection.cursor() as cursor:
            cursor.executemany(mailbox.BEGIN, [(name, self.first.decode()) for name in sessions])

    async def submit(self, session: str, text: str) -> None:
        self.expected += 1
        keys = mailbox.keys(session)
        if await self.redis.eval(mailbox.SUBMIT, 2, keys[0], keys[1], text):
            self.celery.send_task(mailbox.TASK, args=[session], queue=mailbox.QUEUE)

    async def converse(self, session: str, texts: list[str]) -> list[float]:
        times = []
        for text in texts:
            began = time.perf_counter()
            await self.submit(session, text)
            await self.redis.brpop([mailbox.keys(session)[2]], timeout=0)
            times.append(time.perf_counter() - began)
        return times

    async def drained(self) -> None:
        while int(await self.redis.get(mailbox.DONE) or 0) < self.expected:
            await asyncio.sleep(0.01)


@dataclass
class Ours:
    """Parley's production path: inbox, wake-ups, session lanes and live events."""

    ports: Ports
    workers: list[psutil.Process]
    name: str
    domain: str

    async def prepare(self, sessions: Iterable[str]) -> None:
        for session in sessions:
            await self.ports.stores.sessions.create(
                DEFAULT_TENANT, self.domain, session_id=SessionId(session)
            )

    async def submit(self, session: str, text: str) -> str:
        submission = Submission(SessionId(session), TurnInput(text=text), DEFAULT_TENANT)
        receipt = await self.ports.stores.inbox.submit(submission)
        await self.ports.shared.wakeup.offer(SessionId(session))
        return receipt.turn_id

    async def converse(self, session: str, texts: list[str]) -> list[float]:
        times = []
        async with self.ports.shared.live.listen(SessionId(session)) as events:
            for text in texts:
                began = time.perf_counter()
                turn_id = await self.submit(session, text)
                async for event in events:
                    if event.type in {"answer", "failed"} and event.turn_id == turn_id:
                        break
                times.append(time.perf_counter() - began)
        return times

    async def drained(self) -> None:
        while await self.ports.stores.database.fetch_one(WAITING, {}):
            await asyncio.sleep(0.01)


@asynccontextmanager
async def run_by_hand(stores: Stores, folder: Path) -> AsyncIterator[Candidate]:
    """Run the hand-written task in two prefork processes. If `BENCH_CONCURRENCY` is set, run it in threads instead."""
    slots = read_concurrency(mailbox.PROCESSES)
    with psycopg.connect(stores.database_url) as connection:
        for table in mailbox.TABLES:
            connection.execute(table)
    async with AsyncExitStack() as stack:
        workers = run_workers(
            *(stores, folder),
            name="hand",
            application="benchmarks.by_hand",
            queues=mailbox.QUEUE,
            pool="prefork" if slots == mailbox.PROCESSES else "threads",
            threads=slots,
        )
        processes = stack.enter_context(workers)
        redis: Redis = Redis.from_url(  # pyright: ignore[reportUnknownMemberType]  # untyped arguments
            stores.redis_url,
            socket_connect_timeout=PATIENCE_S,
            socket_timeout=PATIENCE_S,
            retry=Retry(NoBackoff(), 0),
            max_connections=1000,
        )
        sender = stack.enter_context(Celery("by_hand", broker=for_celery(stores.redis_url)))
        yield ByHand(stores.database_url, await stack.enter_async_context(redis), sender, processes)


@asynccontextmanager
async def run_ours(
    stores: Stores, folder: Path, *, name: str, application: str, domain: str, processes: int = 2
) -> AsyncIterator[Ours]:
    """Run Parley's worker processes for a domain. `application`: the module of their Celery application."""
    with run_workers(stores, folder, name=name, application=application, count=processes) as workers:
        async with open_ports(settings_of(stores)) as ports:
            yield Ours(ports, workers, name, domain)
