"""Holds a plan's steps against the plan's own values (PL-1, IR-4). It finds out; nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.json_values import same_value
from orchestrator.plans.bindings import resolve
from orchestrator.types import Json


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The flow of `step` holds `held` in `slot`, and the plan binds `wanted` to it."""

    step: str
    slot: str
    held: Json
    wanted: Json

    def __str__(self) -> str:
        return f"{self.step}: {self.slot} is {self.held!r}, and the plan has {self.wanted!r}"


def find_disagreements(plan: PlanFlow, flows: Iterable[BaseFlow]) -> list[Disagreement]:
    """List the values of steps that are not what the plan says.

    A flow that was adopted brings values of its own; a value that is corrected leaves flows behind
    that were carried out with the old one. What one of both does not know is no disagreement.

    Args:
        plan: with its steps.
        flows: those on the stack, and completed ones that are to be looked at as well.
    """
    known = {flow.flow_id: flow for flow in flows}
    return [
        Disagreement(step.name, slot, held, wanted)
        for step in plan.steps
        if (flow := known.get(step.flow_id)) is not None
        for slot, wanted in resolve(plan, step).items()
        if (held := flow.value(slot)) is not None and not same_value(held, wanted)
    ]
