"""Which hosts a request may name, where callers do not authenticate.

Such a gateway listens on loopback, where any web page can reach it: there the `Host` header has to be this
machine's own name, and a page's `Origin` one that is allowed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.problems import problem_of
from orchestrator.errors import Forbidden

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Let in only requests to these hosts, from pages of these hosts or of allowed origins."""

    app: ASGIApp
    hosts: Collection[str]
    origins: Collection[str] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._allows(Headers(scope=scope)):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            refusal = Forbidden(
                "This gateway does not authenticate callers, so it answers only to this machine's own names."
            )
            await problem_of(refusal)(scope, receive, send)

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
