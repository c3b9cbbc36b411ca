"""The server's side of a connection, with a bound on the time in which a request's headers have to come."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_WITHIN_S = 20.0


class BoundedProtocol(H11Protocol):
    """Close a connection whose client has begun none, or only a part, of a request for too long."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._follow()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def _follow(self) -> None:
        """Start the clock where headers are awaited, and stop it once they are there."""
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADERS_WITHIN_S, self._end)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        self._deadline = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
