"""Take annotated dialogues through the real Agent, and compare the calls that it makes with those annotated."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.openai import Endpoint
from orchestrator.nlu.readers.system1 import System1
from orchestrator.simulator import Simulator
from orchestrator.testing.scripted_model import Answer, Computed, Reply, Request, Rule, Script, ScriptedModel
from orchestrator.types import Json, JsonObject
from parley.evaluation.dialogues.annotated import Annotated, Mistaken
from parley.evaluation.dialogues.as_domain import SERVICE_CLASS, dact_of
from parley.evaluation.dialogues.dataset import Dialogue, Service
from parley.evaluation.dialogues.recorded import Parameters, Recorded
from parley.evaluation.dialogues.telling import By, Telling

BEGIN = datetime(2019, 3, 1, 9, 0, tzinfo=UTC)
"""The day on which the dataset's conversations take place."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a service. `turn`: the number of the user's turn in which it was made, or is annotated."""

    turn: int
    service: str
    method: str
    parameters: Parameters

    def equals(self, other: Call) -> bool:
        return (self.service, self.method, self.parameters) == (other.service, other.method, other.parameters)


@dataclass(slots=True)
class Taken:
    """What came of one dialogue. `talk`: what was said, meant, and answered, by turn."""

    dialogue: Dialogue
    wanted: list[Call]
    made: list[Call] = field(default_factory=list[Call])
    talk: list[tuple[str, JsonObject, str]] = field(default_factory=list[tuple[str, JsonObject, str]])
    asked: int = 0
    """How often the annotations were asked."""


@dataclass(slots=True)
class Reader:
    """Who understands. `mistaken`: the share of annotations that are replaced by wrong ones. `model`: for a model."""

    by: By = By.ANNOTATIONS
    telling: Telling = Telling.NEW
    mistaken: float = 0.0
    model: ModelPool | None = None


class Drive:
    """Takes dialogues through one domain."""

    def __init__(
        self,
        loaded: LoadedDomain,
        services: Mapping[str, Service],
        dialogues: Sequence[Dialogue],
        reader: Reader,
        seed: int = 0,
    ) -> None:
        self._loaded = loaded
        self._services = services
        self._dialogues = dialogues
        self._reader = reader
        self._chance = Random(seed)
        self._system1 = System1.for_domain(loaded.domain)
        self._methods = {
            str(dact_of(service.name, intent)): (service.name, intent)
            for service in services.values()
            for intent in service.intents
        }
        self._recorded = Recorded(services, dialogues)
        self._meaning: JsonObject = {}
        self._asked = 0

    async def run(self, notice: Callable[[str], None] = lambda _line: None) -> list[Taken]:
        """Take every dialogue, over stores of its own."""
        taken: list[Taken] = []
        async with self._models() as models:
            for dialogue in self._dialogues:
                taken.append(await self._take(dialogue, models))
                if len(taken) % 50 == 0:
                    notice(f"{len(taken)} of {len(self._dialogues)} dialogues")
        return taken

    async def _take(self, dialogue: Dialogue, models: ModelPool | None) -> Taken:
        recorded = Recorded(self._services, [dialogue], self._recorded)
        simulator = Simulator.of(
            self._loaded,
            system1=self._system1,
            models=models,
            sections={"nlu": {"mode": self._mode}} if models is not None else None,
            services={SERVICE_CLASS: _Service(recorded, self._methods)},
            at=BEGIN,
        )
        taken = Taken(dialogue, list(self._annotated_calls(dialogue, recorded)))
        try:
            await self._talk(dialogue, simulator, taken, recorded)
        finally:
            await simulator.close()
        return taken

    async def _talk(self, dialogue: Dialogue, simulator: Simulator, taken: Taken, recorded: Recorded) -> None:
        conversation = simulator.converse()
        annotated = Annotated(self._services, self._reader.telling)
        mistaken = Mistaken(self._reader.mistaken, self._dialogues, self._services, self._chance)
        number = self._asked = 0
        for turn in dialogue.turns:
            if not turn.user:
                annotated.hear(turn)
                continue
            number += 1
            self._meaning = mistaken.distort(annotated.understand(turn))
            told = await conversation.say(turn.text)
            taken.talk.append((turn.text, self._meaning, str(told["reply"])))
            for tool in told["tools"]:
                if tool["tool_id"] in self._methods:
                    service, method = self._methods[tool["tool_id"]]
                    parameters = recorded.normalize(service, method, tool["arguments"])
                    taken.made.append(Call(number, service, method, parameters))
        taken.asked = self._asked

    def _annotated_calls(self, dialogue: Dialogue, recorded: Recorded) -> Iterator[Call]:
        number = 0
        for turn in dialogue.turns:
            number += turn.user
            for frame in turn.frames:
                if frame.call is not None:
                    parameters = recorded.normalize(frame.service, frame.call.method, frame.call.parameters)
                    yield Call(number, frame.service, frame.call.method, parameters)

    @property
    def _mode(self) -> str:
        return "auto" if self._reader.by is By.AUTO else "system2"

    @asynccontextmanager
    async def _models(self) -> AsyncGenerator[ModelPool | None]:
        if self._reader.by not in {By.ANNOTATIONS, By.AUTO}:
            yield self._reader.model
            return
        rule = Rule(prompt="nlu_think", replies=(Computed(self._answer),))
        with ScriptedModel(Script(rules=(rule,))) as endpoint:
            pool = ModelPool({"default": Endpoint(base_url=endpoint.base_url)}, model="annotations")
            try:
                yield pool
            finally:
                await pool.aclose()

    def _answer(self, request: Request) -> Reply:
        del request
        self._asked += 1
        return Answer(json=self._meaning)


class _Service:
    """Stands in for the domain's own class: the present dialogue's answers go before those of the others."""

    def __init__(self, recorded: Recorded, methods: Mapping[str, tuple[str, str]]) -> None:
        self._recorded = recorded
        self._methods = methods

    def __getattr__(self, name: str) -> Callable[..., Json]:
        if name not in self._methods:
            raise AttributeError(name)
        service, method = self._methods[name]
        return lambda **given: self._recorded.call(service, method, given)
