"""A gateway over real stores on its own port, with a simulated worker."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
import websockets

from gateway.app import create_app
from gateway.auth.authentication import RECHECK_EVERY_S
from gateway.wiring import open_dependencies
from orchestrator.adapters.postgres.events import PostgresEventLog
from orchestrator.adapters.postgres.lanes.lane import PostgresLane
from orchestrator.bootstrap import Ports, open_lane, open_ports
from orchestrator.settings import Settings
from orchestrator.turns.event import Event
from orchestrator.turns.lease import Lease
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.contract.factories import commit_for, submission


@dataclass
class House:
    """A gateway. `ports`: the simulated worker's ports, separate like in another process."""

    url: str
    ports: Ports
    lane: PostgresLane
    http: httpx.AsyncClient

    async def session(self) -> SessionId:
        answer = await self.http.post("/v1/sessions", json={"domain": "travel"})
        assert answer.status_code == 201, answer.text
        return SessionId(answer.json()["session_id"])

    async def submit(self, session_id: SessionId, text: str = "hello") -> str:
        receipt = await self.ports.stores.inbox.submit(submission(DEFAULT_TENANT, session_id, text))
        return receipt.turn_id

    async def claim(self, session_id: SessionId) -> Lease:
        lease = await self.lane.claim(session_id)
        assert lease is not None
        return lease

    async def answer(self, session_id: SessionId, **more: Any) -> list[Event]:
        """Run the session's next turn, and return the events of its commit."""
        lease = await self.claim(session_id)
        committed = await self.lane.commit(lease, commit_for(lease, **more))
        await self.ports.shared.live.publish(session_id, committed.events)
        return list(committed.events)

    def socket(self, session_id: str, query: str = "", **more: Any) -> websockets.connect:
        """Connect to the session's socket."""
        address = self.url.replace("http", "ws", 1)
        return websockets.connect(f"{address}/v1/sessions/{session_id}/ws{query}", **more)

    async def logged(self, session_id: SessionId) -> list[Event]:
        return await PostgresEventLog(self.ports.stores.database).read(
            DEFAULT_TENANT, session_id, limit=100_000
        )


@asynccontextmanager
async def open_house(
    database_url: str,
    redis_url: str,
    *,
    port: int = 0,
    recheck_every_s: float = RECHECK_EVERY_S,
    **more: Any,
) -> AsyncIterator[House]:
    settings = Settings(database_url=database_url, redis_url=redis_url, **more)
    app = create_app(lambda: open_dependencies(settings))
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serve(app, port))
        app.state.dependencies.access.recheck_every_s = recheck_every_s
        ports = await stack.enter_async_context(open_ports(settings))
        lane = await stack.enter_async_context(open_lane(ports))
        http = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=10))
        yield House(url, ports, lane, http)


@asynccontextmanager
async def serve(app: Any, port: int = 0) -> AsyncIterator[str]:
    # Explicitly TCP: otherwise asyncio keeps Nagle's algorithm, which delays each answer by 40 ms.
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, lifespan="on")
        async with run_server(config, [listening]):
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@asynccontextmanager
async def run_server(
    config: uvicorn.Config, sockets: list[socket.socket] | None = None
) -> AsyncIterator[int]:
    """Yield the port of a server in this event loop."""
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets))
    while not server.started:
        assert not serving.done(), "the gateway did not start"
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving
