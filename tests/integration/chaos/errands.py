"""External services for the exactly-once tests: count effects over HTTP, and kill workers on demand.

The model is external as well: it leads a skill from tool to tool, over HTTP. Each errand has a list of points
at which a worker dies, each used once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import psutil

from parley.testing.scripted_model import Drop, Reply, Request, ToolUse
from tests.processes.http import Asked, answering

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
"""Points: before anything; after recording the start; while the service works, with the effect done; with the
answer but unrecorded; after recording the end.
"""
COMMIT = "commit/before"
POINTS = (*(f"{step}/{moment}" for step in STEPS for moment in MOMENTS), COMMIT)
SENDING = tuple(f"tool:errand_send:1/{moment}" for moment in MOMENTS[:-1])
"""From the first of these points until the end of the step, the message may have been sent."""
BROKEN_OFF = ("recorded", "in flight", "answered")
"""Points after which a killed process has not recorded the end of the step."""
NEXT_TOOL = {1: "errand_look", 2: "errand_pay", 3: "errand_send"}
SERVED = {
    "look": "tool:errand_look:1",
    "pay": "tool:errand_pay:1",
    "send": "tool:errand_send:1",
}


class Outside:
    """Observations of the external services. Thread-safe.

    `undecidable`: errands whose message was being sent by a killed process, possibly for another errand, so
    that the outcome is unknown. `broken_off`: number of times that a killed process began a step without
    recording its end. A process may continue between the decision to kill it and its death, and dies at the
    next point.
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
        """Schedule the points at which workers with this errand die, in this order."""
        self._plans[code] = list(points)

    def effects(self, kind: str, code: str) -> int:
        """Return how many times an effect happened."""
        return self.calls[kind, code]

    def meets(self, code: str, point: str, pid: int) -> bool:
        """Return whether a worker must die here. Each point is used once."""
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
        """Return the model's next message, based on the tools with known results in this or earlier turns."""
        code = request.data["slots"]["code"]
        number = 1 + sum(message.get("role") == "assistant" for message in request.messages)
        with self._lock:
            self.calls[f"model:{number}", code] += 1
            pid, place = self._places.get(code, (0, ""))
        is_planned = place == f"model:{number}/recorded"  # otherwise a later turn or a dead process asks
        if is_planned and self.meets(code, f"model:{number}/in flight", pid):
            _kill(pid)
            return Drop()
        if request.data["done"] or number not in NEXT_TOOL:
            end = {"outcome": "success", "data": {"receipt": f"R-{code}"}}
            return ToolUse(calls=(("finish", end),))
        return ToolUse(calls=((NEXT_TOOL[number], {"code": code}),))

    def serve(self, path: str, body: dict[str, Any]) -> Any:
        """Answer a request, or return None if the caller is dead."""
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
    """Return the start time of a process, to detect reused process IDs, or None if it has ended."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it died meanwhile, for another errand
        os.kill(pid, signal.SIGKILL)


class World(Protocol):
    """The external services at `url`."""

    url: str

    def serve(self, path: str, body: dict[str, Any]) -> Any:
        """Answer a request, or return None if the caller is dead."""
        ...


@contextmanager
def outside() -> Iterator[Outside]:
    """Run the service on a free loopback port."""
    world = Outside()
    with served(world):
        yield world


@contextmanager
def served(world: World) -> Iterator[None]:
    """Serve requests of workers on a free loopback port."""

    def answer(asked: Asked) -> tuple[int, Any] | None:
        told = world.serve(asked.path.strip("/"), asked.json())
        return None if told is None else (200, told)

    with answering(answer) as world.url:
        yield
