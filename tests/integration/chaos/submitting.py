"""Submissions like those of an API, and checks of the results."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from orchestrator.bootstrap import Ports, open_ports
from orchestrator.settings import Settings
from orchestrator.turns.turn import IfBusy, Receipt, Submission, TurnInput, TurnRecord
from orchestrator.types import DEFAULT_TENANT, SessionId, TurnId, new_id
from tests.integration.chaos.fleet import times_as_long
from tests.processes.rows import read_rows


@dataclass
class Submitter:
    """A submitter that records accepted turns. `hint`: selects the submissions that wake a worker."""

    ports: Ports
    accepted: set[str] = field(default_factory=set)
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(16))
    """Number of concurrent submissions that the connection pool handles in time on a busy machine."""

    async def submit(
        self,
        session: str,
        text: str,
        *,
        hint: bool = True,
        key: str | None = None,
        sequence: int | None = None,
        if_busy: IfBusy | None = None,
    ) -> Receipt:
        submission = Submission(
            SessionId(session),
            TurnInput(text=text),
            DEFAULT_TENANT,
            idempotency_key=key,
            sequence=sequence,
            if_busy=if_busy,
            create_session=True,
            domain="counting",
        )
        async with self.at_once:
            receipt = await self.ports.stores.inbox.submit(submission)
        self.accepted.add(receipt.turn_id)
        if hint:
            await self.ports.shared.wakeup.offer(SessionId(session))
        return receipt

    async def submit_all(
        self, sessions: Iterable[str], turns: int, text: Callable[[int], str], *, hint: bool = True
    ) -> None:
        """Submit the same number of turns for each session: sessions concurrently, turns in order."""

        async def one(session: str) -> None:
            for number in range(turns):
                await self.submit(session, f"{number} {text(number)}", hint=hint)

        # If one fails, the others are canceled, because they would use closed ports.
        async with asyncio.TaskGroup() as group:
            for session in sessions:
                group.create_task(one(session))

    async def finished(self, receipt: Receipt, *, within_s: float = 30) -> TurnRecord:
        return await self.ports.waiter(
            DEFAULT_TENANT, receipt.session_id, TurnId(receipt.turn_id), within_s * times_as_long()
        )


class Sender:
    """A thread that submits a turn to a new session at an interval."""

    def __init__(self, every_s: float) -> None:
        self.prefix = new_id("sent")
        self.stopped = threading.Event()
        self._every_s = every_s
        self._thread = threading.Thread(target=self._send_all)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._thread.join()

    def send(self, number: int, session: str) -> None:
        raise NotImplementedError

    def _send_all(self) -> None:
        for number in itertools.count():
            if self.stopped.wait(self._every_s):
                return
            self.send(number, f"{self.prefix}-{number}")


@asynccontextmanager
async def submitter(database_url: str, redis_url: str) -> AsyncIterator[Submitter]:
    settings = Settings.model_validate({"DATABASE_URL": database_url, "REDIS_URL": redis_url})
    async with open_ports(settings) as ports:
        yield Submitter(ports)


def count_unfinished(database_url: str) -> int:
    ((left,),) = read_rows(database_url, "SELECT count(*) FROM turns WHERE finished_at IS NULL")
    return left


async def all_finished(database_url: str, *, within_s: float) -> None:
    """Wait until all turns are finished. Fail with the remaining number after a time without progress.

    The time is longer on a busy machine.
    """
    loop = asyncio.get_running_loop()
    fewest, ends_at = sys.maxsize, 0.0
    while left := await asyncio.to_thread(count_unfinished, database_url):
        if left < fewest:
            fewest, ends_at = left, loop.time() + within_s * times_as_long()
        assert loop.time() < ends_at, f"{left} turns are unfinished, and none has ended for {within_s} s"
        await asyncio.sleep(0.1)
