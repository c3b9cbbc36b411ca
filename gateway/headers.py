"""What every answer says to browsers, and which hosts and headers a request may name.

A gateway that asks nobody who he is listens on loopback, where any web page can reach it: there the
`Host` header has to be this machine's own name, and a page's `Origin` one that is allowed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.problems import problem
from orchestrator.errors import Forbidden, InputTooLarge

MAX_HEADERS = 100
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})

ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OF_DATA = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class SafeHeaders:
    """ASGI middleware: security headers on all answers; a route's own go before them."""

    def __init__(self, app: ASGIApp, *, shared: bool = False) -> None:
        """Args: `shared`: pages of other origins are allowed to read."""
        self.app = app
        self._always = {**ALWAYS, **({"Cross-Origin-Resource-Policy": "cross-origin"} if shared else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                kind = headers.get("content-type", "")
                data = kind.startswith(("application/json", "application/problem+json", "text/event-stream"))
                for name, value in {**self._always, **(OF_DATA if data else {})}.items():
                    headers.setdefault(name, value)
            await send(message)

        if len(scope["headers"]) > MAX_HEADERS:
            await problem(
                431, InputTooLarge.code, f"A request may have at most {MAX_HEADERS} headers.", field="headers"
            )(scope, receive, send_safely)
            return
        await self.app(scope, receive, send_safely)


@dataclass(frozen=True, slots=True)
class OwnHosts:
    """ASGI middleware: only requests to these hosts, from pages of these hosts or of allowed origins."""

    app: ASGIApp
    hosts: Collection[str]
    origins: Collection[str] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._allows(Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        refusal = problem(
            403,
            Forbidden.code,
            "This gateway asks nobody who he is, so it answers only to this machine's own names.",
        )
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        await refusal(scope, receive, send)

    def _allows(self, headers: Headers) -> bool:
        origin = headers.get("origin")
        if _host(f"//{headers.get('host', '')}") not in self.hosts:
            return False
        return origin is None or origin in self.origins or _host(origin) in self.hosts


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
