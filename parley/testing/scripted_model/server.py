"""The HTTP server of the scripted model. It runs in a thread and listens on the loopback interface."""

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, cast

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from orchestrator.types import JsonObject
from parley.testing.scripted_model import wire
from parley.testing.scripted_model.script import (
    Answer,
    Drop,
    Fail,
    Hang,
    Playback,
    Raw,
    Request,
    Said,
    Script,
    ToolUse,
)

HOST = "127.0.0.1"
START_S = 10.0

Client: TypeAlias = tuple[str, int]


class ScriptedModel:
    """A server that plays a script and records requests. It can be stopped and restarted on the same port."""

    def __init__(self, script: Script, *, port: int = 0) -> None:
        """Create a server, but don't start it. `port`: 0 to select a free port at the first start."""
        self._playback = Playback(script)
        self._port = port
        self._running: _Running | None = None
        self.requests: list[Request] = []

    @property
    def port(self) -> int:
        return self._port

    @property
    def base_url(self) -> str:
        """The value for OPENAI_BASE_URL."""
        return f"http://{HOST}:{self._port}/v1"

    def requests_for(self, prompt_id: str) -> list[Request]:
        return [request for request in self.requests if request.prompt_id == prompt_id]

    def follow(self, script: Script) -> None:
        """Continue with another script, but keep the recorded requests."""
        self._playback = Playback(script)

    def start(self) -> None:
        """Start the server and return when it accepts connections. Raises OSError if the port is in use."""
        # Without the explicit protocol, asyncio leaves Nagle's algorithm on, which delays each answer by 40
        # ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, self._port))
        except OSError:
            listener.close()
            raise
        self._port = listener.getsockname()[1]
        self._running = _Running(self._reply, lambda: self._playback.script, listener)
        self._running.start()

    def stop(self) -> None:
        """Abort all connections and free the port, as if the process had been killed. Safe to repeat."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def wait(self) -> None:
        if self._running is not None:
            self._running.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _reply(self, request: Request) -> Said:
        self.requests.append(request)
        return self._playback.next_reply(request)


class _Running(threading.Thread):
    def __init__(
        self,
        reply_to: Callable[[Request], Said],
        script: Callable[[], Script],
        listener: socket.socket,
    ) -> None:
        super().__init__(name="scripted-model", daemon=True)
        served = application(Served(reply_to, script, self._break_connection))
        self._server = uvicorn.Server(
            uvicorn.Config(served, log_config=None, access_log=False, lifespan="off", ws="none")
        )
        self._listener = listener
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: asyncio.Task[None] | None = None
        self._accepting = threading.Event()

    def start(self) -> None:
        super().start()
        if not self._accepting.wait(START_S):
            raise TimeoutError("The scripted model did not start.")

    def stop(self) -> None:
        if self._loop is not None and self.is_alive():
            self._loop.call_soon_threadsafe(self._break_off)
        self.join()

    def run(self) -> None:
        with suppress(asyncio.CancelledError), self._listener:
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._serving = asyncio.current_task()
        self._listener.listen(128)  # From here on, the socket accepts connections.
        self._accepting.set()
        await self._server.serve(sockets=[self._listener])

    def _break_off(self) -> None:
        """Stop immediately. Uvicorn's own shutdown would wait for its next check, up to 0.1 seconds."""
        for connection in self._connections():
            connection.transport.abort()
        if self._serving is not None:
            self._serving.cancel()

    def _break_connection(self, client: Client) -> None:
        for connection in self._connections():
            if connection.client == client:
                connection.transport.abort()

    def _connections(self) -> list[Any]:
        # uvicorn's protocols have a transport and a client, but their common type doesn't declare these.
        return cast("list[Any]", list(self._server.server_state.connections))


@dataclass(frozen=True, slots=True)
class Served:
    reply_to: Callable[[Request], Said]
    script: Callable[[], Script]
    break_connection: Callable[[Client], None]


def application(served: Served) -> Starlette:
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
            return Response(reply.body, reply.status, reply.headers, reply.media_type)
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
    pause = reply.piece_delay_s
    break_after = reply.break_after if isinstance(reply, Answer) else None
    for number, chunk in enumerate(wire.chunks(request, reply)):
        if number and await _gone(http, pause):
            return
        # The first chunk, with number 0, contains only the role.
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
    """Wait up to `within_s` seconds until the client disconnects. Default: no time limit.

    Return True if the client has disconnected.
    """
    if within_s == 0:
        return False
    try:
        async with asyncio.timeout(within_s):
            while (await http.receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True
