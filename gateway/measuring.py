"""Measures requests by their route's template and status; never by their path, which names sessions."""

from __future__ import annotations

import time
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.telemetry.metrics import HTTP_SECONDS

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})
OTHER: Final = "other"
"""What no route of ours answers, and methods that we do not know."""


class Measured:
    """ASGI middleware: how long it took until an answer began; of a stream that is all that can be said."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()

        async def measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                _observe(scope, message["status"], began)
            await send(message)

        await self.app(scope, receive, measured)


def _observe(scope: Scope, status: int, began: float) -> None:
    method = scope["method"] if scope["method"] in METHODS else OTHER
    route = getattr(scope.get("route"), "path", OTHER)
    HTTP_SECONDS.labels(method, route, status).observe(time.perf_counter() - began)
