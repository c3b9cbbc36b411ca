"""A conversation with a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from orchestrator.models.breaker import BreakerPolicy
from orchestrator.telemetry import Signal, SignalType
from parley.simulator import Simulator
from parley.testing.scripted_model import (
    Reply,
    Rule,
    Script,
    ScriptedModel,
)
from tests.conversation import scripted
from tests.trained import trained


@dataclass
class Stage:
    """A domain with a scripted model. `calls`: signals of model calls."""

    model: ScriptedModel
    simulator: Simulator
    calls: list[Signal] = field(default_factory=list)

    def checks(self, name: str) -> list[Any]:
        found = (s.payload for s in self.simulator.signals if s.type is SignalType.CHECK)
        return [payload["why"] for payload in found if payload.get("check") == name]


@asynccontextmanager
async def staged(script: Script, domain: str = "travel", **sections: Any) -> AsyncIterator[Stage]:
    loaded, system1 = trained(domain)
    calls: list[Signal] = []
    breaker = BreakerPolicy(threshold=2, cooling_s=60)
    async with scripted(script, breaker=breaker, record=calls.append) as (model, pool):
        yield Stage(model, Simulator.of(loaded, sections=sections, models=pool, system1=system1), calls)


def rules(**replies: Reply | tuple[Reply, ...]) -> Script:
    """Return a script with the replies to each prompt."""
    told = {name: reply if isinstance(reply, tuple) else (reply,) for name, reply in replies.items()}
    return Script(rules=tuple(Rule(prompt=prompt, replies=each) for prompt, each in told.items()))
