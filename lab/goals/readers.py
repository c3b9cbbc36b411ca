"""NLU for simulated users: the local classifier, a correct or a randomly wrong model, or both as in production.

The models answer the real client over HTTP. The simulated user provides the meaning of each message.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any

from lab.goals.goal import Move, World
from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.nlu.system1 import System1
from orchestrator.simulator import Simulator
from orchestrator.testing.scripted_model import Answer, Computed, Reply, Request, Rule, Script, ScriptedModel

MISUNDERSTOOD = 0.35
"""Share of messages that the wrong model misinterprets."""


class Reader(StrEnum):
    SYSTEM1 = "system1"
    RIGHT = "right"
    WRONG = "wrong"
    AUTO = "auto"
    """The local classifier, with the correct model for uncertain messages."""


@dataclass
class Listener:
    """A model that knows what each message means. `distorts`: some answers are wrong."""

    world: World
    dacts: tuple[str, ...]
    distorts: bool
    chance: Random = field(default_factory=Random)
    _meant: Mapping[str, Any] | None = None

    def expect(self, move: Move) -> None:
        self._meant = move.meaning

    def script(self) -> Script:
        understand = Rule(prompt="nlu_think", replies=(Computed(self._answer),))
        replan = Rule(prompt="plan_replan", replies=(Answer(json={"decision": "keep"}),))
        met = {"complete": True, "missing": [], "summary": ""}
        complete = Rule(prompt="plan_complete", replies=(Answer(json=met),))
        no_more = Rule(prompt="plan_decompose", replies=(Answer(json={"steps": []}),))
        return Script(rules=(understand, replan, complete, no_more))

    def _answer(self, request: Request) -> Reply:
        meant = dict(self._meant or {"kind": "unknown", "flows": [], "slots": {}})
        if self.distorts and self.chance.random() < MISUNDERSTOOD:
            meant = self._distort(meant)
        return Answer(json=meant)

    def _distort(self, meant: dict[str, Any]) -> dict[str, Any]:
        slots = dict(meant["slots"])
        match self.chance.choice(["flow", "swap", "value", "invent", "yes", "kind"]):
            case "flow":
                return {
                    **meant,
                    "kind": "task",
                    "flows": [{"dact": self.chance.choice(self.dacts), "score": 0.95}],
                }
            case "swap" if len(slots) > 1:
                one, other = self.chance.sample(sorted(slots), 2)
                slots[one], slots[other] = slots[other], slots[one]
            case "value" if slots:
                slot = self.chance.choice(sorted(slots))
                slots |= self.world.model_slots({slot: self.world.invent(slot, self.chance)})
            case "invent":
                slot = self.chance.choice(self.world.invented)
                slots |= self.world.model_slots({slot: self.world.invent(slot, self.chance)})
            case "kind":
                kinds = [
                    "task",
                    "slot_value",
                    "correction",
                    "cancellation",
                    "denial",
                    "resumption",
                    "chitchat",
                ]
                return {**meant, "kind": self.chance.choice(kinds)}
            case _:
                return {**meant, "kind": "confirmation"}
        return {**meant, "slots": slots}


@asynccontextmanager
async def simulate(
    loaded: LoadedDomain, system1: System1, reader: Reader, world: World
) -> AsyncIterator[tuple[Simulator, Listener | None]]:
    """Yield a simulator that reads messages with `reader`."""
    if reader is Reader.SYSTEM1:
        yield Simulator.of(loaded, system1=system1), None
        return
    dacts = tuple(str(dact) for dact in loaded.domain.flows)
    listener = Listener(world, dacts, distorts=reader is Reader.WRONG)
    with ScriptedModel(listener.script()) as model:
        pool = ModelPool({"default": Endpoint(base_url=model.base_url)}, model="scripted")
        sections = _ONLY_UNDERSTANDING if reader is Reader.AUTO else _ONLY_UNDERSTANDING | _ALWAYS_ASKED
        try:
            yield Simulator.of(loaded, system1=system1, models=pool, sections=sections), listener
        finally:
            await pool.aclose()


_ALWAYS_ASKED: dict[str, Any] = {"nlu": {"mode": "system2"}}
_ONLY_UNDERSTANDING: dict[str, Any] = {
    "models": {"per_prompt": {"pex_skill": {"model": "scripted", "provider": "nowhere"}}}
}
"""Models only interpret messages here. Skills run without a model."""
