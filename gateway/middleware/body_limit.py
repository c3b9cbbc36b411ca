"""The bounds on a request's body, kept while it is read, so that no large body is ever held."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.problems import problem_of
from orchestrator.errors import InvalidInput
from orchestrator.turns.submission import MAX_INPUT_BYTES, require_bounded, too_large


class BodyLimit:
    """Answer a body of too many bytes with 413, and one that is nested too deeply with 422."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
            require_bounded(body)
        except InvalidInput as error:
            await problem_of(error)(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > MAX_INPUT_BYTES:
            raise too_large()
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return body
            body += message.get("body", b"")
            if len(body) > MAX_INPUT_BYTES:
                raise too_large()
            if not message.get("more_body", False):
                return body


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
