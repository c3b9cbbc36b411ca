"""The bound on a request's body, kept while it is read, so that no large body is ever held."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.problems import problem
from orchestrator.errors import InputTooLarge, InvalidInput
from orchestrator.turns.request import MAX_DEPTH, MAX_INPUT_BYTES, is_too_deep


class BodyTooLarge(Exception):
    """The body read so far is over the bound."""


class BodyLimit:
    """ASGI middleware: a body over `MAX_INPUT_BYTES` is answered with 413."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
        except BodyTooLarge:
            response = problem(
                413,
                InputTooLarge.code,
                f"A request may have at most {MAX_INPUT_BYTES} bytes; send a shorter text.",
                field="body",
            )
            await response(scope, receive, send)
            return
        if is_too_deep(body):
            response = problem(
                422,
                InvalidInput.code,
                f"Lists and objects may be nested {MAX_DEPTH} deep; send a flatter body.",
                field="body",
            )
            await response(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > MAX_INPUT_BYTES:
            raise BodyTooLarge
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return body
            body += message.get("body", b"")
            if len(body) > MAX_INPUT_BYTES:
                raise BodyTooLarge
            if not message.get("more_body", False):
                return body


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
