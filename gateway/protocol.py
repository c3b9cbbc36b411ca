"""Server protocols with a timeout for request headers, and with a check of the peer's account."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from gateway.middleware.security_headers import SecurityHeaders
from gateway.problems import problem_of
from orchestrator.adapters.local_peers import is_stranger
from orchestrator.errors import Forbidden

HEADERS_WITHIN_S = 20.0
STRANGER = (
    "This gateway only serves the account that started it. Set PARLEY_AUTH=required and create keys for "
    "others, or set PARLEY_OWNER_ONLY=false to serve all accounts on this machine."
)


class BoundedProtocol(H11Protocol):
    """A protocol that closes a connection if the headers don't arrive within `HEADERS_WITHIN_S` seconds."""

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
        """Start the timer when waiting for headers, and stop it when they have arrived."""
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


class OwnersProtocol(BoundedProtocol):
    """A protocol that rejects requests from accounts other than root and the gateway's account."""

    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_refused = is_stranger(
            transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        )
        if self._is_refused:
            self.app = SecurityHeaders(problem_of(Forbidden(STRANGER)))

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        if self._is_refused:
            self.send_400_response(STRANGER)
        else:
            super().handle_websocket_upgrade(event)
