"""Measure requests by method, route template and status, but not by path, which can contain session IDs."""

import time
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.telemetry.metrics import HTTP_SECONDS

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})
OTHER: Final = "other"  # label of unknown URLs and methods


class RequestMetrics:
    """Middleware that measures the time until a response starts. The duration of a stream depends on its client."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()

        async def observe_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in METHODS else OTHER
                route = getattr(scope.get("route"), "path", OTHER)
                HTTP_SECONDS.labels(method, route, message["status"]).observe(time.perf_counter() - began)
            await send(message)

        await self.app(scope, receive, observe_and_send)
