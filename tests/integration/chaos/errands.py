"""The world outside, of the once-only tests: an HTTP service that counts effects, and kills workers on demand.

The model is outside as well: it leads a skill from tool to tool, over HTTP. Where a worker is to die is
planned per errand, as a list of points; each is met once.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

import psutil

from parley.testing.scripted_model import Drop, Reply, Request, ToolUse

STEPS = (
    "model:1",
    "tool:errand_look:1",
    "model:2",
    "tool:errand_pay:1",
    "model:3",
    "tool:errand_send:1",
    "model:4",
)
MOMENTS = ("before", "recorded", "in flight", "answered", "after")
"""Before anything; once its start is recorded; while the service works on it, the effect had; with the
answer at hand and not recorded; once its end is recorded."""
COMMIT = "commit/before"
POINTS = (*(f"{step}/{moment}" for step in STEPS for moment in MOMENTS), COMMIT)
SENDING = tuple(f"tool:errand_send:1/{moment}" for moment in MOMENTS[:-1])
"""From the first of these places until the step is over the sending may have begun."""
BROKEN_OFF = ("recorded", "in flight", "answered")
"""A step whose process is killed at one of these has no end on record."""
NEXT_TOOL = {1: "errand_look", 2: "errand_pay", 3: "errand_send"}
SERVED = {
    "look": "tool:errand_look:1",
    "pay": "tool:errand_pay:1",
    "send": "tool:errand_send:1",
}


class Outside:
    """What the outside has seen. Thread-safe.

    `undecidable`: errands whose messenger was being sent by a process that was killed, be it for
    another errand: nobody can know whether he left. `broken_off`: how often a step of an errand was
    begun by a process that was killed before its end was on record. Between the decision that a process
    dies and its death it may run on: it dies at whatever place it comes to next.
    """

    def __init__(self) -> None:
        self.url = ""
        self.kills: Counter[str] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.paid: dict[str, str] = {}
        self.broken_off: Counter[tuple[str, str]] = Counter()
        self.undecidable: set[str] = set()
        self._doomed: dict[int, float | None] = {}
        self._places: dict[str, tuple[int, str]] = {}
        self._plans: dict[str, list[str]] = defaultdict(list)
        self._lock = threading.Lock()

    def plan(self, code: str, points: list[str]) -> None:
        """Let the workers that run this errand die at these points, in this order."""
        self._plans[code] = list(points)

    def effects(self, kind: str, code: str) -> int:
        """How often an effect was had."""
        return self.calls[kind, code]

    def meets(self, code: str, point: str, pid: int) -> bool:
        """Whether a worker is to die here; that point is then over."""
        with self._lock:
            if pid in self._doomed and _born(pid) in {None, self._doomed[pid]}:
                return True
            self._places[code] = (pid, point)
            wanted = self._plans[code]
            if not wanted or wanted[0] != point:
                return False
            wanted.pop(0)
            self.kills[point] += 1
            self._doomed[pid] = _born(pid)
            for other, (where, place) in self._places.items():
                step, _, moment = place.partition("/")
                if where == pid and moment in BROKEN_OFF:
                    self.broken_off[other, step] += 1
            self.undecidable |= {
                other
                for other, (where, place) in self._places.items()
                if where == pid and place in SENDING and (other, place) != (code, SENDING[0])
            }
            return True

    def answer_skill(self, request: Request) -> Reply:
        """What the model says next: by the tools whose results it has been told, in this turn or before."""
        code = request.data["slots"]["code"]
        number = 1 + sum(message.get("role") == "assistant" for message in request.messages)
        with self._lock:
            self.calls[f"model:{number}", code] += 1
            pid, place = self._places.get(code, (0, ""))
        is_planned = place == f"model:{number}/recorded"  # else a later turn asks, or a process that is dead
        if is_planned and self.meets(code, f"model:{number}/in flight", pid):
            _kill(pid)
            return Drop()
        if request.data["done"] or number not in NEXT_TOOL:
            end = {"outcome": "success", "data": {"receipt": f"R-{code}"}}
            return ToolUse(calls=(("finish", end),))
        return ToolUse(calls=((NEXT_TOOL[number], {"code": code}),))

    def serve(self, path: str, body: dict[str, Any]) -> Any:
        """Answer one request; None: the caller is dead by now."""
        if path == "point":
            return {"die": self.meets(body["code"], body["point"], body["pid"])}
        if path == "paid":
            with self._lock:
                code = self.paid.get(body["key"])
            if code is None:
                return {"status": "not_done"}
            return {"status": "done", "data": {"receipt": f"R-{code}"}}
        code = body["code"]
        with self._lock:
            self.calls[path, code] += 1
            if path == "pay":
                self.paid[body["key"]] = code
        if self.meets(code, f"{SERVED[path]}/in flight", body["pid"]):
            _kill(body["pid"])
            return None
        return {"found": "a parcel", "receipt": f"R-{code}", "sent": "yes", "text": "thought"}


def _born(pid: int) -> float | None:
    """When a process began, by which it is told from another that gets its number later; None when it has ended."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it died meanwhile, for another errand
        os.kill(pid, signal.SIGKILL)


class World(Protocol):
    """What is outside of the workers; `url` says where it is served."""

    url: str

    def serve(self, path: str, body: dict[str, Any]) -> Any:
        """Answer one request; None: there is nobody to answer."""
        ...


@contextmanager
def outside() -> Iterator[Outside]:
    """The service on a free port of the loopback."""
    world = Outside()
    with served(world):
        yield world


@contextmanager
def served(world: World) -> Iterator[None]:
    """Answer the requests of workers on a free port of the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = world.serve(self.path.strip("/"), body)
            if answer is None:
                return
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the parent's
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 100

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A worker that was killed hears no answer."""

    server = Server(("127.0.0.1", 0), Handler)
    world.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
