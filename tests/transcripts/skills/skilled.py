"""Conversations in which a scripted model runs skills, with answers from each test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.adapters.sandbox import PythonSandbox
from orchestrator.domain.services import ServiceContext
from orchestrator.nlu.system1 import System1
from orchestrator.ports.memory.context import ContextGathering
from orchestrator.telemetry import SignalType
from orchestrator.tools.guardrails.apply import GuardedPython
from parley.simulator import Conversation, Simulator
from parley.testing.memory import MemoryRecords
from parley.testing.scripted_model import Answer, Reply, Request, Rule, Script, ScriptedModel, ToolUse
from tests.conversation import scripted
from tests.trained import trained

SKILL = "pex_skill"
QUERY = "SELECT name FROM parts WHERE stock = 0"


def call(tool: str, /, **arguments: Any) -> ToolUse:
    return ToolUse(calls=((tool, arguments),))


def finish(outcome: str = "success", **more: Any) -> ToolUse:
    return call("finish", outcome=outcome, **more)


def answer(**data: Any) -> ToolUse:
    return finish(data=data)


def judged(*faults: str) -> Answer:
    return Answer(json={"good": not faults, "faults": list(faults)})


def judge(*verdicts: Reply) -> tuple[Rule, ...]:
    return (Rule(prompt="pex_reflect", replies=verdicts),)


DRAFT = answer(report="There are parts.")
REVISED = answer(report="There are a bolt and a lens.")


@dataclass
class Talk:
    """A conversation with all externally visible parts."""

    conversation: Conversation
    simulator: Simulator
    model: ScriptedModel
    lab: Any

    async def say(self, text: str) -> Any:
        return await self.conversation.say(text)

    @property
    def asked(self) -> list[Request]:
        """Return the model requests of the skill."""
        return self.model.requests_for(SKILL)

    def told(self, number: int = -1) -> str:
        """Return the last tool result before one of the model's answers."""
        return str(self.asked[number].messages[-1]["content"])

    @property
    def rungs(self) -> list[str]:
        return [
            s.payload["rung"]
            for s in self.simulator.signals
            if s.type is SignalType.RECOVERY and s.source == "agent"
        ]

    @property
    def failed_checks(self) -> list[tuple[str, str]]:
        checks = [s.payload for s in self.simulator.signals if s.type is SignalType.CHECK]
        return [(check["check"], check.get("why", "")) for check in checks if not check["ok"]]


@asynccontextmanager
async def talk(
    *replies: Reply,
    rules: tuple[Rule, ...] = (),
    domain: str = "lab",
    gather: ContextGathering | None = None,
    loaded: LoadedDomain | None = None,
    system1: System1 | None = None,
    stand_ins: Mapping[str, object] | None = None,
    **sections: Any,
) -> AsyncGenerator[Talk]:
    """Start a conversation in which the skill's model gives these replies in order.

    `loaded`: another or modified domain. `system1`: its trained classifier. `stand_ins`: replacements for its
    services.
    """
    original, own_system1 = trained(domain)
    loaded, system1 = loaded or original, system1 or own_system1
    script = Script(rules=(*rules, Rule(prompt=SKILL, replies=replies or (finish("failure"),))))
    own = loaded.services.get("Lab")
    python = GuardedPython(PythonSandbox(), loaded.domain.config.guardrails.allowed_imports)
    lab = own(ServiceContext(MemoryRecords(), {}, python)) if own is not None else None
    async with scripted(script) as (model, pool):
        services = stand_ins or ({"Lab": lab} if lab is not None else {})
        simulator = Simulator.of(
            loaded, sections=sections, models=pool, system1=system1, services=services, gather=gather
        )
        conversation = simulator.converse()
        yield Talk(conversation, simulator, model, lab)
