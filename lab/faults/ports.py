"""Ports that inject faults into tools, records, session lanes and models, without changes to Parley's code."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import orjson

from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.domain.configuration import DomainConfig
from orchestrator.domain.evaluations import FaultKind
from orchestrator.domain.model import Implementation, ToolSpec
from orchestrator.domain.services import Records, ServiceContext, ToolCall
from orchestrator.errors import ModelUnavailable, Unavailable
from orchestrator.models.breaker import BreakerBoard, BreakerPolicy
from orchestrator.models.config import ModelChoice, read_model_config
from orchestrator.models.engineer import PromptEngineer
from orchestrator.models.templates import load_prompts
from orchestrator.nlu.model_calls import CONTEMPLATE, SLOT_FILL, THINK
from orchestrator.ports.language_model import ChatDelta, ChatReply, ChatRequest, FinishReason, Usage
from orchestrator.ports.tools import ToolTransport
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.lease import Committed, Lease, TurnCommit
from orchestrator.turns.step import Step
from orchestrator.types import Json, JsonObject, TurnId
from parley.testing.lane import MemoryLane

T = TypeVar("T")
YES, HALF_A_YES, NO_JSON, EVERY = "a yes", "half a yes", "no JSON", "every "
BY_ITS_KEY, HELP = "by its key", "help"
_ASKED_FOR = frozenset({THINK, CONTEMPLATE, SLOT_FILL})


class WorkerDied(BaseException):
    """Raised to simulate the death of a worker process, which loses its pending work."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a turn.

    `turn`: the turn's number in the script, from 1. `at`: the place or content of the fault; `FaultKind` describes
    the format.
    """

    kind: FaultKind
    turn: int
    at: str

    @property
    def is_invisible(self) -> bool:
        """True if the fault must not change the replies."""
        match self.kind:
            case FaultKind.OTHER_WORKER:
                return True
            case FaultKind.DOUBLED:
                return self.at == BY_ITS_KEY
            case FaultKind.INTERJECTED:
                return self.at.endswith(f": {HELP}")
            case _:
                return False


@dataclass(frozen=True, slots=True)
class Call:
    """An executed tool call. `turn`: number of the script's turn, or 0 after the script.

    `has_effect`: True if the manifest declares a side effect. `wrote`: True if the call wrote records. `is_whole`:
    True if the call finished, even if its answer was lost.
    """

    turn: int
    tool: str
    arguments: JsonObject
    has_effect: bool
    wrote: bool
    is_whole: bool = True

    @property
    def lasting(self) -> bool:
        return self.has_effect or self.wrote


async def _nobody(_fault: Fault) -> None:
    return None


@dataclass(slots=True)
class Outside:
    """The outside world of a run, which injects faults into calls and records the calls.

    `turn`: number of the current turn, or 0 after the script. `places`: places reached, by turn. `done`: executed
    calls. `break_in`: sends the fault's message while a turn is running. `written`: number of record writes.
    """

    faults: Sequence[Fault] = ()
    turn: int = 0
    places: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    done: list[Call] = field(default_factory=list[Call])
    break_in: Callable[[Fault], Awaitable[None]] = _nobody
    written: int = 0
    _fired: set[Fault] = field(default_factory=set[Fault])

    def happens(self, kind: FaultKind, at: str) -> bool:
        """Return True if a fault of this kind occurs at this place in the current turn. Each fault occurs once."""
        for fault in self.faults:
            if (fault.kind, fault.turn, fault.at) == (kind, self.turn, at) and fault not in self._fired:
                self._fired.add(fault)
                return True
        return False

    async def reach(self, place: str, do: Callable[[], Awaitable[T]], silence: type[Exception]) -> T:
        """Run the action `do` with the faults for its place, and return its result.

        `silence`: the error to raise if no answer arrives. Raises WorkerDied if the worker dies there.
        """
        reached = self.places.setdefault(self.turn, [])
        number = 1 + sum(one.split(" ")[0] == place for one in reached)
        name = place if number == 1 else f"{place} {number}"
        reached.append(name)
        every = any(
            (one.kind, one.turn, one.at) == (FaultKind.TIME_OUT, self.turn, EVERY + place)
            for one in self.faults
        )
        await self._pass(f"before {name}")
        if every or self.happens(FaultKind.TIME_OUT, name):
            raise silence("No response was received.")
        result = await do()
        await self._pass(f"after {name}")
        if self.happens(FaultKind.LOST_ANSWER, name):
            raise silence("The response was lost.")
        return result

    async def _pass(self, moment: str) -> None:
        if self.happens(FaultKind.WORKER_DEATH, moment):
            raise WorkerDied
        for fault in self.faults:
            if (
                fault.kind in {FaultKind.INTERRUPTED, FaultKind.INTERJECTED}
                and fault.at.partition(": ")[0] == moment
                and self.happens(fault.kind, fault.at)
            ):
                await self.break_in(fault)
                for _ in range(3):  # lets the running turn notice that it was stopped
                    await asyncio.sleep(0)

    async def call(
        self, tool: str, arguments: JsonObject, do: Callable[[], Awaitable[T]], *, has_effect: bool
    ) -> T:
        """Run a tool call with its faults, and record the call if it finished or wrote records."""

        async def carry_out() -> T:
            turn, before, is_whole = self.turn, self.written, False
            try:
                result = await do()
                is_whole = True
            finally:
                wrote = self.written > before
                if is_whole or wrote:
                    self.done.append(Call(turn, tool, arguments, has_effect, wrote, is_whole))
            return result

        return await self.reach(tool, carry_out, TimeoutError)


@dataclass(slots=True)
class Ports:
    """A reference to the current run's outside world, shared by a domain's workers."""

    outside: Outside = field(default_factory=Outside)

    def wrap(self, loaded: LoadedDomain) -> LoadedDomain:
        """Return the domain with services whose tools and records are called through `outside`."""
        tools = {
            tool.target: tool
            for tool in loaded.domain.tools.values()
            if tool.implementation is Implementation.SERVICE
        }
        classes = {target.partition(".")[0] for target in tools}
        services = {
            name: cast("type", functools.partial(_Service, self, service, name, tools))
            if name in classes
            else service
            for name, service in loaded.services.items()
        }
        return replace(loaded, services=services)


class _Service:
    """A service whose tools and record writes can fail."""

    def __init__(
        self, ports: Ports, service: type, name: str, tools: Mapping[str, ToolSpec], context: ServiceContext
    ) -> None:
        self._ports, self._name, self._tools = ports, name, tools
        self._inner = service(replace(context, records=_Records(ports, context.records)))

    def __getattr__(self, attribute: str) -> object:
        found = getattr(self._inner, attribute)
        tool = self._tools.get(f"{self._name}.{attribute}")
        if tool is None:
            return found
        ports = self._ports

        @functools.wraps(found)
        async def carry_out(**given: Any) -> Json:
            async def run() -> Json:
                answer = found(**given)
                return await answer if hasattr(answer, "__await__") else answer

            arguments = {name: value for name, value in given.items() if name != "call"}
            return await ports.outside.call(tool.tool_id, arguments, run, has_effect=tool.has_effect)

        return carry_out


@dataclass(frozen=True, slots=True)
class _Records:
    ports: Ports
    inner: Records

    async def get(self, collection: str, key: str) -> JsonObject | None:
        return await self.inner.get(collection, key)

    async def find(
        self, collection: str, where: JsonObject | None = None, *, limit: int = 100
    ) -> list[JsonObject]:
        return await self.inner.find(collection, where, limit=limit)

    async def create(self, collection: str, key: str, document: JsonObject) -> JsonObject:
        return await self._write(f"{collection}.create", lambda: self.inner.create(collection, key, document))

    async def update(
        self, collection: str, key: str, changes: JsonObject, *, where: JsonObject | None = None
    ) -> JsonObject | None:
        return await self._write(
            f"{collection}.update", lambda: self.inner.update(collection, key, changes, where=where)
        )

    async def _write(self, place: str, write: Callable[[], Awaitable[T]]) -> T:
        outside = self.ports.outside

        async def note() -> T:
            outside.written += 1
            return await write()

        return await outside.reach(place, note, Unavailable)


@dataclass(frozen=True, slots=True)
class FaultyTransport:
    ports: Ports
    inner: ToolTransport

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        return await self.ports.outside.call(
            tool.tool_id,
            arguments,
            lambda: self.inner.send(tool, arguments, call),
            has_effect=tool.has_effect,
        )


class MortalLane(MemoryLane):
    """The session lanes of a worker that can die at any journal write or commit. A dead worker writes nothing."""

    ports: Ports
    is_dead = False

    def die(self) -> None:
        self.is_dead = True
        super().die()

    async def record(
        self,
        lease: Lease,
        turn_id: TurnId,
        step: Step,
        entry: LedgerEntry | None = None,
        heard: int | None = None,
    ) -> bool:
        write = super().record
        return await self._write("journal", lambda: write(lease, turn_id, step, entry, heard))

    async def commit(self, lease: Lease, commit: TurnCommit) -> Committed:
        write = super().commit
        return await self._write("commit", lambda: write(lease, commit))

    async def _write(self, place: str, write: Callable[[], Awaitable[T]]) -> T:
        if self.is_dead:
            raise WorkerDied
        return await self.ports.outside.reach(place, write, Unavailable)


def _babble(said: str) -> str:
    """Return a wrong model response: invalid JSON, a confirmation, or a flow with slot values.

    `said`: the kind of response, or the flow with its values.
    """
    if said == NO_JSON:
        return "Certainly! {{"
    is_yes = said in {YES, HALF_A_YES}
    dact, _, values = said.partition(" ")
    meant = {
        "kind": "confirmation" if is_yes else "task",
        "flows": [] if is_yes else [{"dact": dact, "score": 0.95}],
        "slots": orjson.loads(values) if values and not is_yes else {},
        "intent": None,
        "target": None,
        "digression": None,
    }
    text = orjson.dumps(meant).decode()
    return text[: len(text) // 2] if said == HALF_A_YES else text


@dataclass(frozen=True, slots=True)
class _Babbler:
    """A model client that returns wrong interpretations for the fault NONSENSE. Other calls raise ModelUnavailable."""

    ports: Ports
    endpoint: str = "nonsense"

    def list_price(self, model: str, usage: Usage) -> float:
        return 0.0

    async def complete(self, request: ChatRequest) -> ChatReply:
        outside = self.ports.outside
        said = next(
            (one.at for one in outside.faults if (one.kind, one.turn) == (FaultKind.NONSENSE, outside.turn)),
            None,
        )
        if said is None or request.metadata.prompt_id not in _ASKED_FOR:
            raise ModelUnavailable("The model is unavailable.")
        return ChatReply(_babble(said), FinishReason.STOP, request.model)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        raise ModelUnavailable("The model is unavailable.")
        yield ChatDelta()


class NonsensePool(ModelPool):
    def __init__(self, ports: Ports) -> None:
        super().__init__({}, model="nonsense")
        self._ports = ports

    def engineer(self, config: DomainConfig) -> PromptEngineer | None:
        wanted = read_model_config(config, ModelChoice("nonsense"), None)
        board = BreakerBoard(BreakerPolicy(threshold=1_000_000), lambda: 0.0, lambda _view: None)
        return PromptEngineer({"default": _Babbler(self._ports)}, load_prompts(config.prompts), wanted, board)
