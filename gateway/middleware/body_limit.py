"""The bounds on a request's body: its type, its size while it is read, its depth, and how long it takes to come."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.problems import problem, problem_of
from orchestrator.errors import InvalidInput
from orchestrator.turns.submission import MAX_INPUT_BYTES, require_bounded, too_large

BODY_WITHIN_S = 20.0
JSON = "application/json"
PLAIN_TYPES = frozenset({"text/plain", "text/markdown"})
TAKEN = {"/v1/documents": PLAIN_TYPES | {JSON}}  # by path; JSON everywhere else


class BodyLimit:
    """Answer a body of too many bytes with 413, one of another type with 415, and one too deeply nested with 422.

    A body that does not come within `BODY_WITHIN_S` is answered with 408, so that slow senders hold no place.
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
            require_bounded(body)
        except InvalidInput as error:
            await problem_of(error)(scope, receive, send)
            return
        except TimeoutError:
            detail = f"The body has to come within {BODY_WITHIN_S:g} seconds."
            headers = {"Connection": "close"}
            await problem(408, "timeout", detail, headers=headers)(scope, receive, send)
            return
        kind = Headers(scope=scope).get("content-type", JSON).partition(";")[0].strip().lower()
        if body and kind not in TAKEN.get(scope["path"], {JSON}):
            detail = f"A body of the type {kind[:60]} is not taken here; send {JSON}."
            await problem(415, "unsupported_media_type", detail, field="content-type")(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        headers = dict(scope["headers"])
        if b"transfer-encoding" in headers and b"content-length" in headers:
            raise InvalidInput(
                "A request has one length: leave Content-Length or Transfer-Encoding out.", field="headers"
            )
        declared = headers.get(b"content-length", b"0")
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
