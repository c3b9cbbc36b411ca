"""A local HTTP server with a provider's rules and answer formats.

The scripted model determines the contents. `ways` replaces the next answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Self

import orjson
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from parley.testing.scripted_model import Answer, Script, ToolUse
from parley.testing.scripted_model.script import Playback
from tests.processes.http import serve
from tests.providers.dialect import Dialect, Reply, Turn


@dataclass(frozen=True)
class Failing:
    """An error response in the provider's format. `code`: the provider's error code."""

    status: int
    message: str
    code: str | None = None


@dataclass(frozen=True)
class Verbatim:
    """A complete response, sent unchanged."""

    body: str
    media_type: str = "application/json"


Way = Reply | Failing | Verbatim


class StrictProvider:
    """A strict provider. `refused`: refused requests with reasons. `asked`: prompts of accepted requests.

    `url`: without the provider's own paths.
    """

    def __init__(self, dialect: Dialect, script: Script, *ways: Way) -> None:
        self.dialect = dialect
        self.ways: deque[Way] = deque(ways)
        self.refused: list[str] = []
        self.asked: list[str | None] = []
        self.bodies: list[Any] = []
        self._playback = Playback(script)

    def __enter__(self) -> Self:
        app = Starlette(routes=[Route("/{path:path}", self._respond, methods=["POST"])])
        self._serving = serve(app)
        self.url = self._serving.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.__exit__(None, None, None)

    async def _respond(self, request: HttpRequest) -> Response:
        path = request.url.path
        body: Any = orjson.loads(await request.body())
        if not self.dialect.takes(path):
            return JSONResponse(self.dialect.error(404, f"Not found: {path}"), 404)
        self.bodies.append(body)
        reason = self.dialect.refuse(body, request.headers)
        if reason is not None:
            self.refused.append(reason)
            return JSONResponse(self.dialect.error(400, reason), 400)
        turn = self.dialect.read(body, path)
        way = self._choose(turn, path)
        if isinstance(way, Failing):
            return JSONResponse(self.dialect.error(way.status, way.message, way.code), way.status)
        if isinstance(way, Verbatim):
            return Response(way.body, media_type=way.media_type)
        if self.dialect.wants_stream(body, path):
            return StreamingResponse(self._stream(body, way), media_type="text/event-stream")
        return JSONResponse(self.dialect.answer(body, way))

    async def _stream(self, body: Any, reply: Reply) -> AsyncIterator[str]:
        for chunk in self.dialect.chunks(body, reply):
            yield chunk

    def _choose(self, turn: Turn, path: str) -> Way:
        asked = turn.as_request(path)
        self.asked.append(asked.prompt_id)
        if self.ways:
            return self.ways.popleft()
        said = self._playback.next_reply(asked)
        match said:
            case Answer():
                text = said.text if said.json is None else orjson.dumps(fit(said.json, turn.schema)).decode()
                return Reply(text)
            case ToolUse():
                return Reply(calls=said.calls)
            case _:
                return Failing(500, f"the script says nothing to {asked.prompt_id}")


def fit(answer: Any, schema: Any) -> Any:
    """Write slots like a model whose provider enforces the schema: as pairs of texts."""
    slots = answer.get("slots") if isinstance(answer, dict) else None
    wanted = ((schema or {}).get("properties") or {}).get("slots") or {}
    if not isinstance(slots, dict) or wanted.get("type") != "array":
        return answer
    pairs = [{"name": name, "value": _as_text(value)} for name, value in slots.items() if value is not None]
    return {
        "intent": None,
        "target": "",
        "digression": None,
        "not_understood": [],
        **answer,
        "slots": pairs,
    }


def _as_text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case {"amount": amount, "currency": currency}:
            return f"{amount} {currency}"
        case [int() | float() | None as low, int() | float() | None as high]:
            return f"{'' if low is None else low}..{'' if high is None else high}"
        case list():
            return ", ".join(map(_as_text, value))
        case dict():
            return orjson.dumps(value).decode()
        case _:
            return str(value)
