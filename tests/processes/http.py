"""HTTP servers in a thread, for services outside of Parley."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import uvicorn


@dataclass(frozen=True)
class Asked:
    """A received request."""

    path: str
    headers: Message
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Asked], tuple[int, Any] | None]
"""Maps a GET or POST request to the status and the JSON of the response, or to None for a lost connection."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 100

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connection errors of killed callers."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def answering(answer: Answer, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve requests until the block ends, each in its own thread, and yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            told = answer(Asked(self.path, self.headers, body))
            if told is None:
                return
            status, content = told
            written = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        do_GET = do_POST  # noqa: N815 - the name that the parent calls

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with _Server((host, port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://{host}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serve(application: Any, *, port: int = 0) -> Iterator[str]:
    """Serve in a thread on a free port, and yield the URL."""
    config = uvicorn.Config(application, port=port, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    started = threading.Event()
    original = server.startup

    async def startup(*arguments: Any, **named: Any) -> None:
        await original(*arguments, **named)
        started.set()

    server.startup = startup  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, name="test server", daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()
