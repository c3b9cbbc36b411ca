"""A real HTTP receiver of webhooks on a loopback port, which can be unavailable, slow or wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from orchestrator.types import JsonObject
from parley.embedded.ports import free_port
from parley_client import verify_webhook

Answer = Callable[[int], Awaitable[bytes]]
"""Maps the number of a request to the head of the response."""


async def fine(_: int) -> bytes:
    return b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"


@dataclass
class Receiver:
    """A webhook receiver. `deliveries`: headers (in lower case) and body of each request, in order."""

    port: int = field(default_factory=free_port)
    answer: Answer = fine
    deliveries: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    _server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/events"

    async def up(self) -> None:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", self.port)

    async def down(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def wait_for(self, count: int, *, timeout_s: float = 30.0) -> None:
        async with asyncio.timeout(timeout_s), self.arrived:
            await self.arrived.wait_for(lambda: len(self.deliveries) >= count)

    def events(self, secret: str | list[str]) -> list[JsonObject]:
        """Return all delivered events, verified and without repetitions."""
        known = {}
        for headers, body in self.deliveries:
            event = verify_webhook(secret, headers, body)
            assert headers["webhook-id"] == event["id"]
            known.setdefault(event["id"], event)
        return list(known.values())

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = [line.partition(":") for line in head[1:] if line]
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            body = await reader.readexactly(int(headers["content-length"]))
            async with self.arrived:
                self.deliveries.append((headers, body))
                number = len(self.deliveries)
                self.arrived.notify_all()
            writer.write(await self.answer(number))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    place = Receiver()
    await place.up()
    try:
        yield place
    finally:
        await place.down()
