"""External services on one port: a warehouse, a webhook receiver and a trace collector.

Their errors quote the requests, including credentials.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Outside:
    """The services. `asked`: headers and body of each request, by the first part of its path."""

    def __init__(self, result: str) -> None:
        self.url = ""
        self.result = result
        self.asked: dict[str, list[tuple[str, dict[str, str], bytes]]] = defaultdict(list)

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        part = path.split("/")[1].partition("?")[0]
        self.asked[part].append((path, headers, body))
        quoted = {"error": f"not with {path} {headers} {body[:2000]!r}"}
        match part:
            case "track":
                return 200, {"place": f"{self.result} in the hall"}
            case "hooks" if len(self.asked["hooks"]) > 2:
                return 200, {}
            case "v1":  # traces
                return 200, {}
            case _:
                return 500, quoted


@contextmanager
def outside(result: str) -> Iterator[Outside]:
    place = Outside(result)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, told = place.answer(self.path, dict(self.headers), body)
            written = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    place.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
