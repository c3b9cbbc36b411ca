"""A small real HTTP server. The path selects the response, and requests are recorded."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

JSON = "application/json"
UNUSABLE: dict[str, tuple[bytes, str]] = {
    "no_utf8": (b'{"text": "\xff\xfe"}', JSON),
    "other_charset": ('{"text": "ä"}'.encode("latin-1"), JSON + "; charset=latin-1"),
    "wide_charset": ('{"text": "x"}'.encode("utf-16"), JSON + "; charset=utf-16"),
    "image": (b"\x89PNG\r\n\x1a\n", "image/png"),
    "hidden_gzip": (gzip.compress(b'{"text": "' + b"x" * 1_000_000 + b'"}'), JSON),
    "half": (b'{"text": "x', JSON),
    "two": (b'{"text": "x"}{"text": "y"}', JSON),
    "no_number": (b'{"n": NaN}', JSON),
    "nul": (b'{"text": "a\\u0000b"}', JSON),
    "half_character": (b'{"text": "\\ud800"}', JSON),
    "deep": (b'{"a":' * 500 + b"1" + b"}" * 500, JSON),
    "very_deep": (b"[" * 50_000, JSON),
}
"""Unusable answers by problem: body and declared type."""


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: bytes


@dataclass
class Web:
    """The server. `statuses`: status codes of the next requests of /flaky and /order, then 200.

    `disconnected`: set when the client of /hang has disconnected.
    """

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    effects: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    sent_bytes: int = 0
    elsewhere: str = ""
    disconnected: threading.Event = field(default_factory=threading.Event)

    def forget(self) -> None:
        Web.__init__(self, self.url)

    @property
    def last(self) -> Asked:
        return self.asked[-1]

    def application(self) -> Starlette:
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        return Starlette(
            routes=[
                Route("/echo/{rest:path}", self._echo, methods=methods),
                Route("/status/{status:int}", self._status, methods=methods),
                Route("/tokens/{tenant}/{user}", self._token),
                Route("/flaky", self._flaky, methods=methods),
                Route("/order", self._order, methods=methods),
                Route("/order_status", self._order_status),
                Route("/booking", self._booking, methods=methods),
                Route("/huge", self._huge),
                Route("/flood", self._flood),
                Route("/trickle", self._trickle),
                Route("/bytes/{kind}", self._bytes),
                Route("/compressed", self._compressed),
                Route("/list", self._list),
                Route("/words", self._words),
                Route("/hang", self._hang, methods=methods),
                Route("/away", self._redirect_away, methods=methods),
                Route("/moved", self._redirect_here, methods=methods),
                Route("/round", self._redirect_round),
            ]
        )

    async def _note(self, request: Request) -> None:
        self.asked.append(
            Asked(
                request.method,
                request.scope["raw_path"].decode(),
                request.query_params.multi_items(),
                dict(request.headers),
                await request.body(),
            )
        )

    async def _echo(self, request: Request) -> Response:
        await self._note(request)
        return JSONResponse({"ok": True}, headers={"Set-Cookie": "user=ada; Path=/"})

    async def _token(self, request: Request) -> Response:
        await self._note(request)
        token = self.tokens.get(request.path_params["user"])
        if token is None:
            return JSONResponse({}, 404)
        return JSONResponse({"access_token": token, "expires_in": 3600})

    async def _status(self, request: Request) -> Response:
        await self._note(request)
        headers = {key: value for key, value in request.query_params.items() if key == "Retry-After"}
        return JSONResponse({"detail": "secret detail"}, request.path_params["status"], headers=headers)

    async def _flaky(self, request: Request) -> Response:
        await self._note(request)
        return JSONResponse({"ok": True}, self.statuses.pop(0) if self.statuses else 200)

    async def _order(self, request: Request) -> Response:
        """Have the effect once per key, regardless of the response."""
        await self._note(request)
        key = request.headers["idempotency-key"]
        self.effects[key] = self.effects.get(key, 0) + 1
        return JSONResponse({"order": key}, self.statuses.pop(0) if self.statuses else 200)

    async def _booking(self, request: Request) -> Response:
        """Book once per key, and redirect to the result, like pages after a form (303)."""
        await self._note(request)
        key = request.headers["idempotency-key"]
        if key in self.effects:
            return JSONResponse({"detail": "The first call is at work."}, 409)
        self.effects[key] = self.effects.get(key, 0) + 1
        if self.statuses:
            return JSONResponse({"order": key}, self.statuses.pop(0))
        return Response(status_code=303, headers={"Location": "/echo/made"})

    async def _order_status(self, request: Request) -> Response:
        await self._note(request)
        key = request.query_params["idempotency_key"]
        return JSONResponse({"status": "done" if key in self.effects else "not_done", "data": {"order": key}})

    async def _huge(self, request: Request) -> Response:
        await self._note(request)

        async def chunks() -> AsyncIterator[bytes]:
            yield b'{"text": "'
            for _ in range(10_000):
                self.sent_bytes += 1000
                yield b"x" * 1000
            yield b'"}'

        return StreamingResponse(chunks(), media_type="application/json")

    async def _flood(self, request: Request) -> Response:
        """Send a huge response that claims to be an event stream."""
        return StreamingResponse(self._endless(b"x" * 1000), media_type="text/event-stream")

    async def _trickle(self, request: Request) -> Response:
        """Send a byte now and then, so that no single read is late."""
        return StreamingResponse(self._endless(b" ", every_s=0.02), media_type="application/json")

    async def _endless(self, piece: bytes, *, every_s: float = 0.0) -> AsyncIterator[bytes]:
        while self.sent_bytes < 50_000_000:
            self.sent_bytes += len(piece)
            yield piece
            await asyncio.sleep(every_s)

    async def _bytes(self, request: Request) -> Response:
        body, media_type = UNUSABLE[request.path_params["kind"]]
        return Response(body, media_type=media_type)

    async def _compressed(self, request: Request) -> Response:
        await self._note(request)
        body = gzip.compress(b'{"text": "' + b"x" * 1_000_000 + b'"}')
        return Response(body, headers={"Content-Encoding": "gzip"}, media_type="application/json")

    async def _list(self, request: Request) -> Response:
        return JSONResponse([1, 2, 3])

    async def _words(self, request: Request) -> Response:
        return Response("<html>hello</html>", media_type="text/html")

    async def _hang(self, request: Request) -> Response:
        await self._note(request)
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self.disconnected.set()
        return Response("")

    async def _redirect_away(self, request: Request) -> Response:
        await self._note(request)
        return Response(status_code=307, headers={"Location": self.elsewhere})

    async def _redirect_here(self, request: Request) -> Response:
        await self._note(request)
        return Response(status_code=307, headers={"Location": "/echo/moved"})

    async def _redirect_round(self, request: Request) -> Response:
        await self._note(request)
        return Response(status_code=302, headers={"Location": "/round"})
