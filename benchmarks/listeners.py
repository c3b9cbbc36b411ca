"""Listeners of one gateway process: memory of each, and how long an event takes to all of them.

Every listener is an open stream of server-sent events. Durable events are timed from before the commit, tokens
from before they are published, both to when the client has read them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import orjson
import psutil

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.bootstrap import Ports, open_lane, open_ports
from orchestrator.ports.lane import Lane
from orchestrator.settings import Settings
from orchestrator.turns.event import Event
from orchestrator.turns.lease import TurnCommit
from orchestrator.turns.turn import Submission, TurnInput, TurnStatus
from orchestrator.types import DEFAULT_TENANT, SessionId, new_id
from parley.embedded import Stores, stores

OPENED_AT_ONCE = 50


@dataclass
class Heard:
    """Latencies in ms, and how many events are still to come."""

    durable: list[float] = field(default_factory=list)
    live: list[float] = field(default_factory=list)
    awaited: int = 0
    complete: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, event: dict) -> None:
        sent = event["payload"].get("sent")
        if sent is None:
            return
        (self.live if event["number"] is None else self.durable).append(1000 * (time.monotonic() - sent))
        self.awaited -= 1
        if self.awaited == 0:
            self.complete.set()


async def main() -> None:
    arguments = _parse()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * arguments.listeners)), hard))
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as folder, stores(Path(folder)) as running:
        migrate(running.database_url)
        settings = Settings(database_url=running.database_url, redis_url=running.redis_url)
        async with AsyncExitStack() as stack:
            ports = await stack.enter_async_context(open_ports(settings))
            lane = await stack.enter_async_context(open_lane(ports))
            url, gateway = await stack.enter_async_context(_gateway(running))
            await _measure(arguments, ports, lane, url, gateway)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.listeners")
    parser.add_argument("--listeners", type=int, default=1000)
    parser.add_argument("--sessions", type=int, default=200, help="that the listeners are spread over")
    parser.add_argument("--rounds", type=int, default=200, help="events of each kind, one session at a time")
    return parser.parse_args()


async def _measure(
    arguments: argparse.Namespace, ports: Ports, lane: Lane, url: str, gateway: psutil.Process
) -> None:
    sessions = [SessionId(new_id("session")) for _ in range(arguments.sessions)]
    for session in sessions:
        await ports.sessions.create(DEFAULT_TENANT, "travel", session_id=session)
    heard = Heard()
    before = gateway.memory_info().rss
    began = time.monotonic()
    writers, tasks = await _listen(url, sessions, arguments.listeners, heard)
    opened_s = time.monotonic() - began
    grown = gateway.memory_info().rss - before
    idle_s = await _cpu_of_a_while(gateway)
    for number in range(arguments.rounds):
        session = sessions[number % len(sessions)]
        share = len(range(number % len(sessions), arguments.listeners, len(sessions)))
        for tell in (_tell_durable(ports, lane, session), _tell_live(ports, session)):
            heard.awaited = share
            heard.complete.clear()
            await tell
            if share:
                await asyncio.wait_for(heard.complete.wait(), 30)
    for task in tasks:
        task.cancel()
    for writer in writers:
        writer.close()
    print(f"{arguments.listeners} listeners of {arguments.sessions} sessions, opened in {opened_s:.1f} s")
    print(f"memory of a listener    {grown / arguments.listeners / 1024:8.1f} KiB")
    print(f"CPU while nothing comes {100 * idle_s:8.1f} %")
    for name, latencies in (("durable, with its commit", heard.durable), ("token", heard.live)):
        cuts = statistics.quantiles(latencies, n=100)
        print(f"{name:24} p50 {cuts[49]:6.1f} ms   p95 {cuts[94]:6.1f} ms   of {len(latencies)} deliveries")


async def _listen(
    url: str, sessions: list[SessionId], listeners: int, heard: Heard
) -> tuple[list[asyncio.StreamWriter], list[asyncio.Task[None]]]:
    """Open all streams; each has said that it is listening."""
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    gate = asyncio.Semaphore(OPENED_AT_ONCE)

    async def open_one(session: SessionId) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with gate:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            request = f"GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: gateway\r\n\r\n"
            writer.write(request.encode())
            await reader.readuntil(b": listening")
            return reader, writer

    opened = await asyncio.gather(*(open_one(sessions[n % len(sessions)]) for n in range(listeners)))
    tasks = [asyncio.create_task(_read(reader, heard)) for reader, _ in opened]
    return [writer for _, writer in opened], tasks


async def _read(reader: asyncio.StreamReader, heard: Heard) -> None:
    while line := await reader.readline():
        if line.startswith(b"data: "):
            heard.take(orjson.loads(line[6:]))


async def _tell_durable(ports: Ports, lane: Lane, session: SessionId) -> None:
    """What a worker does with a turn, the rest of it left out."""
    await ports.inbox.submit(Submission(session, TurnInput("hello"), DEFAULT_TENANT))
    lease = await lane.claim(session)
    assert lease is not None
    payload = {"reply": "hello", "sent": time.monotonic()}
    commit = TurnCommit(
        status=TurnStatus.DONE,
        state=b"{}",
        diff=b"{}",
        snapshot=False,
        result={"reply": "hello"},
        events=(Event(session, "answer", lease.work.turn_id, payload),),
    )
    committed = await lane.commit(lease, commit)
    await ports.live.publish(session, committed.events)


async def _tell_live(ports: Ports, session: SessionId) -> None:
    payload = {"text": "hello ", "offset": 0, "sent": time.monotonic()}
    await ports.live.publish(session, (Event(session, "token", None, payload),))


async def _cpu_of_a_while(gateway: psutil.Process, seconds: float = 3.0) -> float:
    """CPU seconds per second."""
    before = gateway.cpu_times()
    await asyncio.sleep(seconds)
    after = gateway.cpu_times()
    return (after.user + after.system - before.user - before.system) / seconds


@asynccontextmanager
async def _gateway(running: Stores) -> AsyncIterator[tuple[str, psutil.Process]]:
    """One gateway process, ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DATABASE_URL": running.database_url,
        "REDIS_URL": running.redis_url,
        "PARLEY_PORT": str(port),
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "gateway", env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=url) as http:
            while True:
                try:
                    if (await http.get("/health/ready")).is_success:
                        break
                except httpx.TransportError:
                    await asyncio.sleep(0.1)
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main())
