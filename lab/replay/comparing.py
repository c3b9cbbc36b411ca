"""Compare a replayed turn with its recording, ignoring generated IDs."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

import orjson

from lab.replay.recordings import RecordedTurn
from lab.replay.sandbox import Replayed
from orchestrator.runtime.journal import TOOL
from orchestrator.telemetry import SignalType
from orchestrator.types import Json, JsonObject, is_list, is_object

CALLS: Final = "calls"
ASPECTS: Final = ("kind", "flows", "slots", CALLS, "models", "answer", "display", "system")
"""Aspects of a turn: message kind and most likely flow, stack, slot values, tool calls, model calls, reply and
question, frames and actions, and results of system turns.
"""

_IDENTIFIER: Final = re.compile(rb"\b([a-z]+_)?[0-9a-f]{32}\b")
"""A pattern for IDs that a turn generates, and for fingerprints that depend on them."""
_DIGITS: Final = 32
_SHADOWS: Final = bytes(ord("x" if chr(one) in "0123456789abcdef" else " ") for one in range(256))
"""Translation table that marks hex digits, which is much faster than a regular expression."""


def compare(turn: RecordedTurn, replayed: Replayed) -> JsonObject:
    """Return the aspects of a replayed turn that differ, with the old and new values at each place."""
    then, now = _decided(turn.result, turn.signals), _decided(replayed.commit.result, replayed.commit.signals)
    tools = [request for key, request in replayed.missed if key.startswith(TOOL)]
    if CALLS in now:
        now[CALLS] += [{**request, "status": "not made"} for request in tools]
    then["models"], now["models"] = _models(turn, replayed)
    return find_changes(then, now)


def find_changes(then: JsonObject, now: JsonObject) -> JsonObject:
    """Return the aspects that differ, with the old and new values at each place. `then`, `now`: values by aspect."""
    one, other = orjson.dumps(then), orjson.dumps(now)
    if _number(one) == _number(other):  # usually equal, and faster to check than the aspects
        return {}
    found: JsonObject = {}
    for name in ASPECTS:
        written, rewritten = _write(then.get(name)), _write(now.get(name))
        if written == rewritten or (written := _number(written)) == (rewritten := _number(rewritten)):
            continue
        if places := [*_places(orjson.loads(written), orjson.loads(rewritten))]:
            found[name] = places
    return found


def _places(then: Json, now: Json, at: str = "") -> Iterator[JsonObject]:
    """Yield the innermost differences between two values, with their places."""
    if is_object(then) and is_object(now):
        for name in dict.fromkeys((*then, *now)):
            yield from _places(then.get(name), now.get(name), f"{at}.{name}".lstrip("."))
    elif is_list(then) and is_list(now):
        for place, (one, other) in enumerate(zip_longest(then, now), start=1):
            yield from _places(one, other, f"{at}.{place}".lstrip("."))
    elif then != now:
        yield {"at": at, "then": then, "now": now}


def _decided(result: JsonObject, signals: Sequence[JsonObject]) -> JsonObject:
    if "flows" not in result:
        return {"system": {name: one for name, one in result.items() if name not in {"seq", "epoch"}}}
    question = result["ambiguity"] or {}
    return {
        "kind": [
            [one["payload"]["kind"], *(flow["dact"] for flow in one["payload"]["flows"][:1])]
            for one in signals
            if one["type"] == SignalType.PREDICTION.value
        ],
        "flows": {
            "open": [[flow["dact"], flow["state"], flow["reason"]] for flow in result["flows"]],
            "completed": result["completed"],
        },
        "slots": [[flow["dact"], flow["slots"]] for flow in result["flows"]],
        CALLS: [*result["tools"]],
        "answer": {"reply": result["reply"], "asks": [question.get("level"), question.get("slot")]},
        "display": [result["frame"], result["earlier_frames"], result["actions"], result["interaction"]],
    }


def _models(turn: RecordedTurn, replayed: Replayed) -> tuple[list[Json], list[Json]]:
    """Return the model calls made only in the recording, and those made only in the replay.

    The second list omits calls that failed in the recording, because these have no recorded answer.
    """
    failed = Counter(
        one["payload"]["prompt_id"]
        for one in turn.signals
        if one["type"] == SignalType.MODEL_CALL.value and one["payload"]["outcome"] != "answered"
    )
    now: list[Json] = []
    for key, _ in replayed.missed:
        _, prompt_id, *_ = key.split(":")
        if key.startswith(TOOL):
            continue
        if failed[prompt_id]:
            failed[prompt_id] -= 1
        else:
            now.append(name_question(key))
    return [name_question(step.key) for step in replayed.unused if step.kind != TOOL], now


def name_question(key: str) -> str:
    """Return a model call's prompt ID and shortened digest, from the key of its journal step."""
    _, prompt_id, digest, *_ = key.split(":")
    return f"{prompt_id} {digest[:8]}"


def _write(decided: Json) -> bytes:
    return orjson.dumps(decided, option=orjson.OPT_SORT_KEYS)


def _number(written: bytes) -> bytes:
    """Replace IDs with numbers, in order of appearance."""
    names: dict[bytes, bytes] = {}
    shadow, parts, done = written.translate(_SHADOWS), list[bytes](), 0
    place = shadow.find(b"x" * _DIGITS)
    while place >= 0:
        begins = max(done, written.rfind(b'"', done, place))
        if found := _IDENTIFIER.search(written, begins, place + _DIGITS + 1):
            name = names.setdefault(found[0], b"%s%d" % (found[1] or b"", len(names) + 1))
            parts += (written[done : found.start()], name)
            done = found.end()
        place = shadow.find(b"x" * _DIGITS, place + _DIGITS)
    return b"".join((*parts, written[done:]))
