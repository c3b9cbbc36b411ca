"""Measure a gateway process with many listeners: memory per listener, and latency of events.

Each listener is an open stream of server-sent events. The latency is the time from just before the commit of a
stored event, or the publication of a token, until the client has read the event.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import orjson
import psutil

from benchmarks.environment import open_stores, parse, run_process, settings_of
from benchmarks.measure import cpu_s
from orchestrator.bootstrap import Ports, open_lane, open_ports
from orchestrator.ports.lane import Lane
from orchestrator.turns.event import Event
from orchestrator.turns.lease import TurnCommit
from orchestrator.turns.turn import Submission, TurnInput, TurnStatus
from orchestrator.types import DEFAULT_TENANT, SessionId, new_id
from parley.embedded.ports import free_port
from parley.stack import answers

HOST = "127.0.0.1"
OPENED_AT_ONCE = 50
IDLE_S = 3.0


@dataclass
class Deliveries:
    """Latencies of stored events (`durable`) and tokens (`live`), in milliseconds.

    `awaited`: number of pending deliveries.
    """

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
    arguments = parse(
        "benchmarks.listeners",
        __doc__,
        listeners=(1000, "open streams"),
        sessions=(200, "sessions of the listeners"),
        rounds=(200, "events per kind, one session at a time"),
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * arguments.listeners)), hard))
    port = free_port()
    ready = answers(f"http://{HOST}:{port}/health/ready")
    with open_stores() as (running, folder):
        async with AsyncExitStack() as stack:
            ports = await stack.enter_async_context(open_ports(settings_of(running)))
            lane = await stack.enter_async_context(open_lane(ports))
            gateway = stack.enter_context(
                run_process(
                    *("gateway", ("-m", "gateway"), running, folder, ready), {"PARLEY_PORT": str(port)}
                )
            )
            await _measure(arguments, ports, lane, port, gateway)


async def _measure(
    arguments: argparse.Namespace, ports: Ports, lane: Lane, port: int, gateway: psutil.Process
) -> None:
    sessions = [SessionId(new_id("session")) for _ in range(arguments.sessions)]
    for session in sessions:
        await ports.stores.sessions.create(DEFAULT_TENANT, "travel", session_id=session)
    deliveries = Deliveries()
    before = gateway.memory_info().rss
    began = time.monotonic()
    writers, tasks = await _listen(port, sessions, arguments.listeners, deliveries)
    opened_s = time.monotonic() - began
    grown = gateway.memory_info().rss - before
    idle_cpu_s = cpu_s(gateway)
    await asyncio.sleep(IDLE_S)
    idle_cpu_s = cpu_s(gateway) - idle_cpu_s
    for number in range(arguments.rounds):
        session = sessions[number % len(sessions)]
        share = len(range(number % len(sessions), arguments.listeners, len(sessions)))
        for publish in (_publish_durable(ports, lane, session), _publish_live(ports, session)):
            deliveries.awaited = share
            deliveries.complete.clear()
            await publish
            if share:
                await asyncio.wait_for(deliveries.complete.wait(), 30)
    for task in tasks:
        task.cancel()
    for writer in writers:
        writer.close()
    print(f"{arguments.listeners} listeners of {arguments.sessions} sessions, opened in {opened_s:.1f} s")
    print(f"memory of a listener    {grown / arguments.listeners / 1024:8.1f} KiB")
    print(f"CPU without events      {100 * idle_cpu_s / IDLE_S:8.1f} %")
    for name, latencies in (("durable, with its commit", deliveries.durable), ("token", deliveries.live)):
        cuts = statistics.quantiles(latencies, n=100)
        print(f"{name:24} p50 {cuts[49]:6.1f} ms   p95 {cuts[94]:6.1f} ms   of {len(latencies)} deliveries")


async def _listen(
    port: int, sessions: list[SessionId], listeners: int, deliveries: Deliveries
) -> tuple[list[asyncio.StreamWriter], list[asyncio.Task[None]]]:
    """Open all streams, wait until each is listening, and start a reader for each. Return writers and readers."""
    gate = asyncio.Semaphore(OPENED_AT_ONCE)

    async def open_one(session: SessionId) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with gate:
            reader, writer = await asyncio.open_connection(HOST, port)
            request = f"GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
            writer.write(request.encode())
            await reader.readuntil(b": listening")
            return reader, writer

    opened = await asyncio.gather(*(open_one(sessions[n % len(sessions)]) for n in range(listeners)))
    tasks = [asyncio.create_task(_read(reader, deliveries)) for reader, _ in opened]
    return [writer for _, writer in opened], tasks


async def _read(reader: asyncio.StreamReader, deliveries: Deliveries) -> None:
    while line := await reader.readline():
        if line.startswith(b"data: "):
            deliveries.take(orjson.loads(line[6:]))


async def _publish_durable(ports: Ports, lane: Lane, session: SessionId) -> None:
    await ports.stores.inbox.submit(Submission(session, TurnInput("hello"), DEFAULT_TENANT))
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
    await ports.shared.live.publish(session, committed.events)


async def _publish_live(ports: Ports, session: SessionId) -> None:
    payload = {"text": "hello ", "offset": 0, "sent": time.monotonic()}
    await ports.shared.live.publish(session, (Event(session, "token", None, payload),))


if __name__ == "__main__":
    asyncio.run(main())
