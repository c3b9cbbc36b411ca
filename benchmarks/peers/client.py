"""A framework's client, which reads orders from standard input and writes their results as JSON lines.

It runs in the framework's Python environment: ``python -m benchmarks.peers.client langgraph`` in the project folder.
All frameworks return replies through Redis.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from typing import Any

import redis.asyncio

from benchmarks.mailbox import DONE, keys

LONGEST_S = 900
"""Time limit for one answer or for all answers, in seconds. Failed turns are never answered."""


class Client:
    """A client with one method per order. `peer`: creates sessions and submits turns in the framework."""

    def __init__(self, peer: Any) -> None:
        self._peer = peer
        self._redis = redis.asyncio.from_url(
            os.environ["REDIS_URL"], max_connections=1000, socket_timeout=2 * LONGEST_S
        )
        self._expected = 0

    async def prepare(self, sessions: list[str]) -> None:
        await self._peer.prepare(sessions)

    async def submit(self, session: str, texts: list[str]) -> None:
        for text in texts:
            self._expected += 1
            await self._peer.submit(self._redis, session, text)

    async def converse(self, session: str, texts: list[str]) -> list[float]:
        times: list[float] = []
        for text in texts:
            began = time.perf_counter()
            await self.submit(session, [text])
            if await self._redis.brpop([keys(session)[2]], timeout=LONGEST_S) is None:
                raise RuntimeError(
                    f"No answer to {session} within {LONGEST_S} s: its worker's log may say why."
                )
            times.append(time.perf_counter() - began)
        return times

    async def drained(self) -> None:
        async with asyncio.timeout(LONGEST_S):
            await self._wait_for_all()

    async def _wait_for_all(self) -> None:
        while int(await self._redis.get(DONE) or 0) < self._expected:
            await asyncio.sleep(0.01)


async def main(name: str) -> None:
    client = Client(await importlib.import_module(f"benchmarks.peers.{name}").open_client())

    async def answer(number: int, order: str, arguments: list[Any]) -> None:
        result = await getattr(client, order)(*arguments)
        print(json.dumps([number, result]), flush=True)

    orders = asyncio.StreamReader(limit=2**26)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    print("[]", flush=True)
    async with asyncio.TaskGroup() as group:
        while line := await orders.readline():
            group.create_task(answer(*json.loads(line)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
