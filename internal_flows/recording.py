"""What a stage of a run asked of its tools and models, and what it came to: recorded, and answered from a record.

A record is JSON and is kept with the run; `parley.replay` decides by it once more. Live, a tool is called as ever;
in a replay none is there.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import cache
from hashlib import blake2b
from typing import Any, Final, Protocol, runtime_checkable

import orjson
from pydantic import TypeAdapter

from internal_flows.execution import AfterAllResult, BeforeAllResult, ItemResult, Proceed
from internal_flows.stages import InternalFlow, RunContext
from orchestrator import errors
from orchestrator.errors import ModelUnavailable, ParleyError, Unavailable
from orchestrator.models.journal import KIND as MODEL
from orchestrator.models.journal import StepCaller
from orchestrator.ports.housekeeping import SessionRows, SessionState
from orchestrator.ports.material import Conversation, History, SlotUse
from orchestrator.ports.memory.context import Finding
from orchestrator.ports.memory.documents import Added, Candidate, Document, DocumentRecord, Passage
from orchestrator.ports.memory.preferences import Preference
from orchestrator.ports.memory.scratchpad import Entry
from orchestrator.types import Json, JsonObject, drop_nul, is_list, is_object

TOOL: Final = "tool"
TOO_LARGE: Final = "whose record is too large"
NO_JSON: Final = "whose tools gave what is no JSON"
MOST_BYTES: Final = 1_000_000
"""Of the answers of one stage; one that was given more keeps no record."""
_RECORD: Final = "_record_"
RECORDS: Final = {
    kind.__name__: TypeAdapter[Any](kind)
    for kind in (
        Added,
        Candidate,
        Conversation,
        Document,
        DocumentRecord,
        Entry,
        Finding,
        History,
        Passage,
        Preference,
        SessionRows,
        SessionState,
        SlotUse,
    )
}
"""The records that tools and material are made of; they are recorded by name."""


@runtime_checkable
class AsksModels(Protocol):
    """A tool that asks models: their answers are recorded, and what it makes of them is made anew."""

    def recorded_in(self, steps: StepCaller) -> Any:
        """Make the same, with each question to a model as a step."""
        ...


@dataclass(slots=True)
class StageRecord:
    """Takes down one stage of a run, or the stages of one item. `now`: see `RunContext`."""

    now: float
    lost: str = ""
    """Why there is no record after all."""
    steps: list[JsonObject] = field(default_factory=list[JsonObject])
    about: set[str] = field(default_factory=set[str])
    bytes: int = 0

    async def call(
        self, key: str, kind: str, request: Json, run: Callable[[str], Awaitable[Json]], *, idempotent: bool
    ) -> Json:
        """Make a call and take it down; what failed as well. Raises what `run` raises."""
        del idempotent
        step: JsonObject = {"key": key, "kind": kind, "request": request}
        if not self.lost:
            self.steps.append(step)  # one that is cut off has neither answer nor error
        try:
            answer = await run(key)
        except Exception as error:
            step["error"] = [type(error).__name__, str(error)]
            raise
        self.answer(step, answer)
        return answer

    def write(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Json:
        """Write what a call is given."""
        try:
            return _write_arguments(arguments, named)
        except TypeError:
            self.lost = NO_JSON
            return None

    def answer(self, step: JsonObject, answer: Any) -> None:
        """Take down what a call gave, and which sessions that tells of."""
        if self.lost:
            return
        for one in answer if is_list(answer) else (answer,):
            if (session_id := getattr(one, "session_id", None)) is not None:
                self.about.add(session_id)
        try:
            written = orjson.dumps(_encode(answer), default=_list_set)
        except TypeError:
            self.lost = NO_JSON
            return
        self.bytes += len(written)
        step["answer"] = orjson.Fragment(written)
        if self.bytes > MOST_BYTES:
            self.lost = TOO_LARGE
            self.steps.clear()

    def close(
        self, flow: InternalFlow, context: RunContext, result: BeforeAllResult | ItemResult | AfterAllResult
    ) -> Json:
        """Write the whole record of a stage that came to this result; None where none is kept."""
        if not keeps_record(flow, context):
            return None
        body = (
            {"lost": self.lost}
            if self.lost
            else {
                "version": version_of(type(flow)),
                "now": self.now,
                "material": _encode(dict(context.material)),
                "steps": self.steps,
                "about": sorted(self.about) if context.session_id is None else [],
                "outcome": describe(result),
            }
        )
        return orjson.Fragment(drop_nul(orjson.dumps(body, default=_list_set).decode()))


def keeps_record(flow: InternalFlow, context: RunContext) -> bool:
    """Whether a run of this flow is recorded: where it says nothing, when it has a session."""
    return context.session_id is not None if flow.recorded is None else flow.recorded


def record(flow: InternalFlow, context: RunContext) -> tuple[RunContext, StageRecord]:
    """Make what takes a stage down, and the context whose tools are overheard by it."""
    kept = StageRecord(context.now)
    if not keeps_record(flow, context):
        return context, kept
    tools = {
        name: tool.recorded_in(kept) if isinstance(tool, AsksModels) else _Overheard(tool, kept, name)
        for name, tool in context.tools.items()
    }
    return replace(context, tools=tools), kept


def describe(result: BeforeAllResult | ItemResult | AfterAllResult) -> JsonObject:
    """Say in JSON what a stage came to: what it passes on, what it found, or which way the run takes."""
    if isinstance(result, Proceed):
        run = result.run
        return {"inputs": [*result.inputs], "data": run.data, "options": run.options.to_json()}
    return {type(result).__name__: asdict(result)}


@cache
def version_of(flow: type[InternalFlow]) -> str:
    """Give a digest of the file that a flow is written in; empty where there is none."""
    try:
        source = inspect.getsource(sys.modules[flow.__module__])
    except (OSError, TypeError, KeyError):
        return ""
    return blake2b(source.encode(), digest_size=6).hexdigest()


class _Overheard:
    """A tool, or what one hands out, of which each call is taken down."""

    def __init__(self, target: Any, kept: StageRecord, path: str) -> None:
        self._target, self._kept, self._path = target, kept, path

    def __getattr__(self, name: str) -> Any:
        found, path = getattr(self._target, name), f"{self._path}.{name}"
        if isinstance(found, str | int | float | None):
            self._kept.answer(_step(self._kept.steps, path), found)
            return found
        if not callable(found):
            return _Overheard(found, self._kept, path)

        def call(*arguments: Any, **named: Any) -> Any:
            begun = found(*arguments, **named)
            given = self._kept.write(arguments, named)
            if not inspect.isawaitable(begun):
                return _Overheard(begun, self._kept, _reach(path, given))
            return self._kept.call(path, TOOL, given, lambda _key: _wait(begun), idempotent=True)

        return call


async def _wait(begun: Awaitable[Any]) -> Any:
    return await begun


def _step(steps: list[JsonObject], path: str) -> JsonObject:
    step: JsonObject = {"key": path, "kind": TOOL, "request": None}
    steps.append(step)
    return step


class RecordedCalls:
    """Answers the calls of a stage from its record. `missed`: those that are not in it; `unused`: what is left of it.

    A call with other arguments gets the answer of that tool's call that is left, so that the stage goes on.

    Args:
        asks: models are really asked.
    """

    def __init__(self, steps: list[JsonObject], *, asks: bool = False) -> None:
        self.unused = list(steps)
        self.missed: list[JsonObject] = []
        self._asks = asks
        self._left = list(steps)

    async def call(
        self, key: str, kind: str, request: Json, run: Callable[[str], Awaitable[Json]], *, idempotent: bool
    ) -> Json:
        """Give a model's recorded answer; see `StepCaller`. Raises ModelUnavailable where there is none."""
        del idempotent
        if self._asks:
            return await run(key)
        return self.answer(key, kind, request)

    def answer(self, key: str, kind: str, request: Json) -> Any:
        """Give what was answered then. Raises what was raised then, Unavailable where nothing answers."""
        fitting = [one for one in self.unused if (one["kind"], one["request"]) == (kind, request)]
        if kind == TOOL:
            fitting = [one for one in fitting if one["key"] == key]
        known = fitting[0] if fitting else None
        if known is not None:
            self.unused.remove(known)
        else:
            self.missed.append({"key": key, "kind": kind, "request": request})
            if kind == MODEL:
                raise ModelUnavailable("No recording answers this question.")
            known = next((one for one in self._left if one["key"] == key), None)
            if known is None:
                raise Unavailable(f"No recording answers {key}.")
        if known in self._left:
            self._left.remove(known)
        if "error" in known:
            raise _remake(*known["error"])
        return _decode(known["answer"])

    def value(self, path: str) -> tuple[bool, Any]:
        """Look for what a tool had under this name; whether it was read then, and what it was."""
        found = next((one for one in self._left if one["key"] == path and one["request"] is None), None)
        if found is None:
            return False, None
        for left in (self.unused, self._left):
            left.remove(found)
        return True, found["answer"]

    def tool(self, name: str) -> Any:
        """Stand in for the tool of this name."""
        return _Answered(self, name)


class _Answered:
    """What a call or a member of a tool is in a replay: it is awaited, called, or has further members."""

    def __init__(self, calls: RecordedCalls, path: str, given: Json = None) -> None:
        self._calls, self._path, self._given = calls, path, given

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path if self._given is None else _reach(self._path, self._given)}.{name}"
        known, value = self._calls.value(path)
        return value if known else _Answered(self._calls, path)

    def __call__(self, *arguments: Any, **named: Any) -> _Answered:
        return _Answered(self._calls, self._path, _write_arguments(arguments, named))

    def __await__(self) -> Generator[Any, None, Any]:
        return self._ask().__await__()

    async def _ask(self) -> Any:
        return self._calls.answer(self._path, TOOL, self._given)


def read_material(body: JsonObject) -> Mapping[str, Any]:
    """Read a stage's recorded material."""
    return {name: _decode(value) for name, value in body["material"].items()}


def _write_arguments(arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Json:
    written = orjson.dumps([arguments, named], default=_list_set_or_name, option=orjson.OPT_NON_STR_KEYS)
    return orjson.loads(written)


def _reach(path: str, given: Json) -> str:
    return f"{path}({orjson.dumps(given[0]).decode()[1:-1]})"


def _encode(value: Any) -> Any:
    """Mark records by name, wherever lists and objects hold them."""
    if is_dataclass(value) and not isinstance(value, type):
        return {_RECORD: type(value).__name__, "is": value}
    if isinstance(value, tuple) or is_list(value):
        return [_encode(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if is_object(value):
        return {name: _encode(one) for name, one in value.items()}
    return value


def _decode(body: Json) -> Any:
    if is_list(body):
        return [_decode(one) for one in body]
    if not is_object(body):
        return body
    if _RECORD in body:
        return RECORDS[body[_RECORD]].validate_python(body["is"])
    return {name: _decode(one) for name, one in body.items()}


def _list_set(value: Any) -> Any:
    if isinstance(value, frozenset | set):
        return sorted(value)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    raise TypeError(f"{type(value).__name__} is no JSON")


def _list_set_or_name(value: Any) -> Any:
    return _list_set(value) if isinstance(value, frozenset | set) else type(value).__name__


def _remake(name: str, message: str) -> Exception:
    """Make an error of then: of the same name, with the same words."""
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, ParleyError):
        error = kind.__new__(kind)
        error.args = (message,)
        return error
    return type(name, (Exception,), {})(message)
