"""Limits on request bodies: type, size, nesting and duration."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.problems import problem, problem_of
from orchestrator.errors import InvalidInput
from orchestrator.turns.submission import MAX_INPUT_BYTES, require_bounded, too_large

BODY_WITHIN_S = 20.0
JSON = "application/json"
PLAIN_TYPES = frozenset({"text/plain", "text/markdown"})
LARGER = {
    "/v1/agui": 1024 * 1024
}  # maximum size in bytes by path; AG-UI clients send the whole conversation with each request
TAKEN = {"/v1/documents": PLAIN_TYPES | {JSON}}  # content types by path; all other paths accept only JSON


class BodyLimit:
    """Middleware that rejects bodies beyond the limits.

    The response is 413 for a body that is too large, 415 for a wrong type, and 422 for a body that is nested
    too deeply. It is 408 if the body takes longer than `BODY_WITHIN_S` seconds, so that slow senders don't
    occupy connections.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_WITHIN_S):
                body = await self._read(scope, receive)
            require_bounded(body, _most(scope))
        except InvalidInput as error:
            await problem_of(error)(scope, receive, send)
            return
        except TimeoutError:
            detail = f"The body must arrive within {BODY_WITHIN_S:g} seconds."
            headers = {"Connection": "close"}
            await problem(408, "timeout", detail, headers=headers)(scope, receive, send)
            return
        kind = Headers(scope=scope).get("content-type", JSON).partition(";")[0].strip().lower()
        if body and kind not in TAKEN.get(scope["path"], {JSON}):
            detail = f"Content type {kind[:60]} is not supported; send {JSON}."
            await problem(415, "unsupported_media_type", detail, field="content-type")(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        headers = dict(scope["headers"])
        if b"transfer-encoding" in headers and b"content-length" in headers:
            raise InvalidInput("Send either Content-Length or Transfer-Encoding, not both.", field="headers")
        declared = headers.get(b"content-length", b"0")
        most = _most(scope)
        if declared.isdigit() and int(declared) > most:
            raise too_large(most)
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return body
            body += message.get("body", b"")
            if len(body) > most:
                raise too_large(most)
            if not message.get("more_body", False):
                return body


def _most(scope: Scope) -> int:
    return LARGER.get(scope["path"], MAX_INPUT_BYTES)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
