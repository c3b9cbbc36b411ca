"""A proxy between workers and PostgreSQL that breaks a connection during a commit."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

COMMITTED = b'"digest"'
"""Bytes that a client sends only with a commit: the new state of a counting agent."""
SOCKET = ".s.PGSQL.5432"
AT_ONCE = 1 << 16
CLOSED_WITHIN_S = 5.0
"""True after the clients have ended."""


class Cutter:
    """The proxy. Each `cut` breaks one commit, before the server receives it or before the answer arrives."""

    def __init__(self, server: str) -> None:
        self.cuts: Counter[str] = Counter()
        self._server = f"{server}/{SOCKET}"
        self._asked: list[str] = []

    def cut(self, moment: str) -> None:
        """Break the next commit: ``before`` the server receives it, or ``after``."""
        self._asked.append(moment)

    def withdraw(self) -> None:
        """Cancel pending cuts."""
        self._asked.clear()

    async def serve(self, client_reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """Forward a connection in both directions until either side closes."""
        with closing(client), suppress(OSError):
            server_reader, server = await asyncio.open_unix_connection(self._server)
            silent = asyncio.Event()
            with closing(server):
                back = asyncio.create_task(_pass_back(server_reader, client, silent))
                await self._pass_on(client_reader, server, silent)
                if not silent.is_set():
                    back.cancel()
                await asyncio.wait([back])

    async def _pass_on(
        self, client: asyncio.StreamReader, server: asyncio.StreamWriter, silent: asyncio.Event
    ) -> None:
        while data := await client.read(AT_ONCE):
            moment = self._asked.pop() if self._asked and COMMITTED in data else None
            if moment is not None:
                self.cuts[moment] += 1
            if moment == "before":
                return
            server.write(data)
            if moment == "after":
                silent.set()
                return
            await server.drain()


async def _pass_back(
    server: asyncio.StreamReader, client: asyncio.StreamWriter, silent: asyncio.Event
) -> None:
    """Forward the server's answers, except for the answer to break."""
    with closing(client), suppress(OSError):
        while (data := await server.read(AT_ONCE)) and not silent.is_set():
            client.write(data)
            await client.drain()


@contextmanager
def cutter(database_url: str, folder: Path) -> Iterator[tuple[Cutter, str]]:
    """Run a proxy in its own thread, and yield the database address of the proxy.

    `folder`: folder for the socket.
    """
    server = unquote(urlsplit(database_url).netloc.rpartition("@")[2].rpartition(":")[0])
    between, loop, stopped = Cutter(server), asyncio.new_event_loop(), asyncio.Event()

    async def run() -> None:
        listening = await asyncio.start_unix_server(between.serve, folder / SOCKET)
        ready.set()
        await stopped.wait()
        listening.close()
        if connections := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(connections, timeout=CLOSED_WITHIN_S)

    ready = threading.Event()

    def run_loop() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(run())

    thread = threading.Thread(target=run_loop)
    thread.start()
    ready.wait()
    try:
        yield between, database_url.replace(quote(server, safe=""), quote(str(folder), safe=""))
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
