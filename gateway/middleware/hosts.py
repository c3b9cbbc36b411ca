"""Host and origin checks for a gateway without authentication.

Such a gateway listens on loopback, where any web page can reach it. Therefore, `Host` must be a name of this
machine, and `Origin`, if sent, must be the gateway's origin or an allowed origin.
"""

from collections.abc import Collection
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.problems import problem_of
from orchestrator.adapters.local_names import host_of
from orchestrator.errors import Forbidden

REFUSAL = "This gateway does not authenticate callers, so it only serves requests addressed to localhost."
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Middleware that only permits requests to `hosts`, and none from origins other than its own and `origins`."""

    app: ASGIApp
    hosts: Collection[str]
    origins: Collection[str] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._allows(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await problem_of(Forbidden(REFUSAL))(scope, receive, send)

    def _allows(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if host_of(host) not in self.hosts:
            return False
        if origin is not None:
            scheme = "https" if scope["scheme"] in {"https", "wss"} else "http"
            return origin in self.origins or origin == f"{scheme}://{host}"
        # Browsers that don't send Origin still send Sec-Fetch-Site.
        changes = scope["type"] == "websocket" or scope["method"] not in {"GET", "HEAD", "OPTIONS"}
        return not changes or headers.get("sec-fetch-site", "none") in {"same-origin", "none"}
