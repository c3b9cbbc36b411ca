"""The work of one turn, which is the same for every candidate: change a state of about 8 KB."""

import os
from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import Any, TypeVar

import orjson

KEPT_MESSAGES = 20
PLAIN = ["say something", "say something else"]
"""Messages for candidates without NLU."""
MODEL_S, CONCURRENCY = "BENCH_MODEL_S", "BENCH_CONCURRENCY"
"""Environment variables: simulated model latency in seconds, and number of concurrent turns per worker process."""


_Made = TypeVar("_Made")


def made_once(make: Callable[[], _Made]) -> Callable[[], _Made]:
    """Return a thread-safe function that calls `make` once per process and then returns the same object."""
    made, making = cache(make), Lock()

    @wraps(make)
    def get() -> _Made:
        with making:
            return made()

    return get


def read_model_s() -> float:
    return float(os.environ.get(MODEL_S, "0"))


def read_concurrency(default: int) -> int:
    return int(os.environ.get(CONCURRENCY, default))


def first_state() -> dict[str, Any]:
    """Return about 8 KB of state: 4 flows with 11 slots each, and 20 messages."""
    flows = [
        {
            "flow_id": f"flow_{place:032x}",
            "dact": f"task_{place}",
            "state": "pending",
            "slots": {
                f"slot_{n}": {"value": f"value {n} of {place}", "turn": n, "confirmed": True}
                for n in range(11)
            },
        }
        for place in range(4)
    ]
    return {"turn": 0, "stack": flows, "messages": [_message(n) for n in range(KEPT_MESSAGES)]}


def advance(state: dict[str, Any], text: str) -> str:
    """Apply a turn to the state: add two messages, set a slot and rotate the stack. Return the reply."""
    state["turn"] += 1
    turn = state["turn"]
    reply = f"answer {turn} to {text}"
    messages = state["messages"]
    messages.append({"role": "user", "form": "text", "content": text})
    messages.append({"role": "agent", "form": "text", "content": reply})
    del messages[:-KEPT_MESSAGES]
    top = state["stack"][0]
    top["slots"][f"slot_{turn % 11}"] = {"value": text, "turn": turn, "confirmed": False}
    state["stack"].append(state["stack"].pop(0))
    return reply


def _message(number: int) -> dict[str, str]:
    return {"role": "user", "form": "text", "content": f"message {number}: " + "words and words " * 10}


@cache
def state_of(kilobytes: int) -> bytes:
    """Return an initial state of about `kilobytes` KB as JSON. All states have the same 8 KB that turns use."""
    state = first_state()
    older = _message(0)
    state["older"] = [older] * max(0, (1024 * kilobytes - len(FIRST)) // (len(orjson.dumps(older)) + 1))
    return orjson.dumps(state)


FIRST = orjson.dumps(first_state())
