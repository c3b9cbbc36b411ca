"""The scripted model's application: reads a request, asks for the reply, says it over HTTP."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

import orjson
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from orchestrator.testing.scripted_model import wire
from orchestrator.testing.scripted_model.script import (
    Answer,
    Drop,
    Fail,
    Hang,
    Raw,
    Request,
    Said,
    Script,
    ToolUse,
)
from orchestrator.types import JsonObject

Client: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Served:
    """The part of the server that the application needs."""

    reply_to: Callable[[Request], Said]
    script: Callable[[], Script]
    break_connection: Callable[[Client], None]


def application(served: Served) -> Starlette:
    """Make the application with the three paths that are served."""

    async def models(_: HttpRequest) -> Response:
        return JSONResponse(wire.model_list(served.script().models))

    async def embeddings(http: HttpRequest) -> Response:
        request = await _read(http)
        if request is None:
            return _failure(Fail(400, message="the body is not a JSON object"))
        return JSONResponse(wire.embeddings(request.body, served.script().embedding_dimensions))

    async def chat(http: HttpRequest) -> Response:
        request = await _read(http)
        if request is None:
            return _failure(Fail(400, message="the body is not a JSON object"))
        return await _say(served.reply_to(request), request, http, served)

    return Starlette(
        routes=[
            Route("/v1/models", models),
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/chat/completions", chat, methods=["POST"]),
        ]
    )


async def _read(http: HttpRequest) -> Request | None:
    try:
        body = orjson.loads(await http.body())
    except orjson.JSONDecodeError:
        return None
    if not isinstance(body, dict):
        return None
    return Request(http.url.path, cast("JsonObject", body), dict(http.headers))


async def _say(reply: Said, request: Request, http: HttpRequest, served: Served) -> Response:
    match reply:
        case Hang():
            await _gone(http)
            return Response()
        case Drop():
            return StreamingResponse(_broken(http, served), media_type="application/json")
        case Raw():
            return Response(reply.body, media_type=reply.media_type)
        case Fail():
            await _gone(http, reply.delay_s)
            return _failure(reply)
        case Answer() | ToolUse():
            await _gone(http, reply.delay_s)
            if request.body.get("stream"):
                return StreamingResponse(
                    _events(reply, request, http, served), media_type="text/event-stream"
                )
            return JSONResponse(wire.completion(request, reply))


def _failure(fail: Fail) -> Response:
    headers = {} if fail.retry_after_s is None else {"Retry-After": f"{fail.retry_after_s:g}"}
    return JSONResponse(wire.failure(fail), fail.status, headers)


async def _events(
    reply: Answer | ToolUse, request: Request, http: HttpRequest, served: Served
) -> AsyncGenerator[str, None]:
    pause = reply.piece_delay_s if isinstance(reply, Answer) else 0.0
    break_after = reply.break_after if isinstance(reply, Answer) else None
    for number, chunk in enumerate(wire.chunks(request, reply)):
        if number and await _gone(http, pause):
            return
        # The first chunk carries only the role.
        if break_after is not None and number > break_after:
            await _break(http, served)
            return
        yield f"data: {wire.to_json(chunk)}\n\n"
    yield "data: [DONE]\n\n"


async def _broken(http: HttpRequest, served: Served) -> AsyncGenerator[str, None]:
    yield '{"id": "chatcmpl'
    await _break(http, served)


async def _break(http: HttpRequest, served: Served) -> None:
    if http.client is not None:
        served.break_connection((http.client.host, http.client.port))
        await _gone(http)


async def _gone(http: HttpRequest, within_s: float | None = None) -> bool:
    """Wait until the caller is gone, or for some seconds; say whether it is gone."""
    if within_s == 0:
        return False
    try:
        async with asyncio.timeout(within_s):
            while (await http.receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True
