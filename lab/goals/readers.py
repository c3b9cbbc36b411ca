"""NLU for simulated conversations: the local classifier, a scripted model, or both as in production.

The scripted models answer over HTTP. They are correct, randomly wrong, or interpret messages as confirmations. The
simulated user provides the meaning of each message.
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
from orchestrator.dialogue.understanding import Digression, MessageKind
from orchestrator.nlu.system1 import System1
from parley.simulator import Simulator
from parley.testing.scripted_model import Answer, Computed, Reply, Request, Rule, Script, ScriptedModel

MISUNDERSTOOD = 0.35
"""Probability that `Reader.WRONG` misinterprets any message, or `Reader.YES` one with a purpose in `REQUESTS`."""
MEMBERS = (
    *("kind", "yes", "task", "flows", "digression", "target", "intent", "not_understood"),
    *("swap", "value", "forget", "invent"),
)
"""Ways that `Reader.WRONG` changes the interpretation of a message."""
REQUESTS = frozenset({"ask for", "answer", "choose"})
"""Purposes of messages that `Reader.YES` usually understands, so that conversations reach offers."""


class Reader(StrEnum):
    SYSTEM1 = "system1"
    RIGHT = "right"
    WRONG = "wrong"
    YES = "yes"
    """A model that interprets messages as confirmations, except most messages with a purpose in `REQUESTS`."""
    AUTO = "auto"
    """The local classifier, and the correct model for messages that the classifier is unsure about."""


@dataclass
class Listener:
    """A scripted model that knows the meaning of each message, and misinterprets messages as `reader` requires."""

    world: World
    dacts: tuple[str, ...]
    reader: Reader
    chance: Random = field(default_factory=Random)
    _meant: Mapping[str, Any] | None = None
    _purpose: str = ""

    def expect(self, move: Move) -> None:
        self._meant, self._purpose = move.meaning, move.purpose

    def script(self) -> Script:
        understand = Rule(prompt="nlu_think", replies=(Computed(self._answer),))
        replan = Rule(prompt="plan_replan", replies=(Answer(json={"decision": "keep"}),))
        met = {"complete": True, "missing": [], "summary": ""}
        complete = Rule(prompt="plan_complete", replies=(Answer(json=met),))
        no_more = Rule(prompt="plan_decompose", replies=(Answer(json={"steps": []}),))
        return Script(rules=(understand, replan, complete, no_more))

    def _answer(self, request: Request) -> Reply:
        meant = dict(self._meant or {"kind": "unknown", "flows": [], "slots": {}})
        if self.reader is Reader.YES and (
            self._purpose not in REQUESTS or self.chance.random() < MISUNDERSTOOD
        ):
            meant["kind"] = MessageKind.CONFIRMATION
        if self.reader is Reader.WRONG and self.chance.random() < MISUNDERSTOOD:
            meant = self._distort(meant)
        return Answer(json=meant)

    def _distort(self, meant: dict[str, Any]) -> dict[str, Any]:
        wrong = dict(meant)
        for member in self.chance.sample(MEMBERS, self.chance.choice([1, 1, 1, 2, len(MEMBERS)])):
            wrong |= self._distort_member(member, wrong)
        return wrong

    def _distort_member(self, member: str, meant: Mapping[str, Any]) -> dict[str, Any]:
        chance, slots = self.chance, dict(meant["slots"])
        match member:
            case "kind":
                return {"kind": chance.choice(list(MessageKind))}
            case "yes":
                return {"kind": MessageKind.CONFIRMATION}
            case "task":
                return {"kind": MessageKind.TASK, "flows": self._choose_flows(1)}
            case "flows":
                return {"flows": self._choose_flows(chance.randrange(4))}
            case "digression":
                return {"digression": chance.choice([*Digression, None])}
            case "target" | "intent":
                return {member: chance.choice([*self.dacts, *self.world.invented, None])}
            case "not_understood":
                return {member: chance.choice([[], ["everything"], ["please", "the"]])}
        return {"slots": self._distort_slots(member, slots)}

    def _distort_slots(self, member: str, slots: dict[str, Any]) -> dict[str, Any]:
        chance = self.chance
        match member:
            case "swap" if len(slots) > 1:
                one, other = chance.sample(sorted(slots), 2)
                slots[one], slots[other] = slots[other], slots[one]
            case "value" if slots:
                slot = chance.choice(sorted(slots))
                slots |= self.world.model_slots({slot: self.world.invent(slot, chance)})
            case "forget" if slots:
                slots.pop(chance.choice(sorted(slots)))
            case _:
                slot = chance.choice(self.world.invented)
                slots |= self.world.model_slots({slot: self.world.invent(slot, chance)})
        return slots

    def _choose_flows(self, count: int) -> list[dict[str, Any]]:
        drawn = self.chance.sample(self.dacts, min(count, len(self.dacts)))
        return [{"dact": dact, "score": round(self.chance.uniform(0.5, 1), 2)} for dact in drawn]


@asynccontextmanager
async def simulate(
    loaded: LoadedDomain, system1: System1, reader: Reader, world: World
) -> AsyncIterator[tuple[Simulator, Listener | None]]:
    """Yield a simulator whose NLU is `reader`, and its scripted model, or None for `Reader.SYSTEM1`."""
    if reader is Reader.SYSTEM1:
        yield Simulator.of(loaded, system1=system1), None
        return
    dacts = tuple(str(dact) for dact in loaded.domain.flows)
    listener = Listener(world, dacts, reader)
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
"""Configuration that uses the model only for interpretation. Skills have no model."""
