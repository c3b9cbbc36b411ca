"""The class hierarchy of flows: BaseFlow → one parent per family → one class per dact (FS-1).

What every flow can do is in `base_flow`; here are the families, and how classes and instances are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from orchestrator.dialogue.base_flow import BaseFlow
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.slots import EVERY_TYPE, SlotTypes
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.storage.serialization import dump
from orchestrator.types import Dact, JsonObject


@dataclass(eq=False, repr=False)
class PlanFlow(BaseFlow):
    """Decomposes a request into sub-flows; `revision` grows with every change of the plan.

    `goal`: the request in the user's words. `rounds`: how often sub-flows were stacked.
    `noted`: how many revisions are on record.
    """

    steps: list[PlanStep] = field(default_factory=list[PlanStep])
    revision: int = 0
    goal: str = ""
    rounds: int = 0
    noted: int = 0

    def needs_to_think(self) -> bool:
        """A request that has no steps yet has to be decomposed first."""
        return not self.steps or super().needs_to_think()

    def pursue(self, goal: str) -> None:
        """Keep the request, in the user's words."""
        self.goal = goal

    def take_up(self, ended: PlanFlow) -> None:
        """Go on from where a plan has ended: with its goal, its steps and what they have found."""
        self.goal, self.rounds = ended.goal, 1
        self.steps = [replace(step, slots={**step.slots}) for step in ended.steps]
        self.notes = {**ended.notes, **self.notes}

    def begin_round(self) -> None:
        """Count another stacking of sub-flows."""
        self.rounds += 1

    def note_revision(self) -> int:
        """Count a revision that goes on record."""
        self.noted += 1
        return self.noted

    def step_of(self, flow_id: str) -> PlanStep | None:
        """The step that this flow carries out."""
        return next((step for step in self.steps if step.flow_id == flow_id), None)

    def step_named(self, name: str) -> PlanStep | None:
        """The latest step of this name."""
        return next((step for step in reversed(self.steps) if step.name == name), None)

    def serialize(self) -> JsonObject:
        """As any flow, with each step's state."""
        body = super().serialize() | {"revision": self.revision}
        return body | {"steps": [{**dump(step, brief=True), **_status_of(step)} for step in self.steps]}


def _status_of(step: PlanStep) -> JsonObject:
    return {"state": step.state.value, "reason": step.reason.value if step.reason else None}


class ConverseFlow(BaseFlow):
    """Talk: its results go to the scratchpad (PX-12)."""


class InternalFlow(BaseFlow):
    """Housekeeping: never predicted from a user's words, never shown (PX-12)."""

    def needs_to_think(self) -> bool:
        """Its inputs are given by the system; there is nobody to ask."""
        return False


class ReadFlow(BaseFlow):
    """Finds and shows."""


class PrepareFlow(BaseFlow):
    """Gets something ready: books, collects, sets up."""


class TransformFlow(BaseFlow):
    """Changes what is there."""


class ScheduleFlow(BaseFlow):
    """Arranges for later."""


PARENTS: Mapping[Family, type[BaseFlow]] = {
    Family.PLAN: PlanFlow,
    Family.CONVERSE: ConverseFlow,
    Family.INTERNAL: InternalFlow,
    Family.READ: ReadFlow,
    Family.PREPARE: PrepareFlow,
    Family.TRANSFORM: TransformFlow,
    Family.SCHEDULE: ScheduleFlow,
}

FlowTypes: TypeAlias = Mapping[Dact, type[BaseFlow]]


def make_flow_class(spec: FlowSpec, slot_types: SlotTypes = EVERY_TYPE) -> type[BaseFlow]:
    """The class of one dact, a child of its family's parent; ``book_flight`` → ``BookFlightFlow``."""
    name = "".join(part.capitalize() for part in spec.dact.split("_")) + "Flow"
    body = {"spec": spec, "slot_types": slot_types, "__doc__": spec.description}
    return type(name, (PARENTS[spec.family],), body)


@lru_cache(maxsize=256)
def _make_retired(dact: Dact, is_plan: bool) -> type[BaseFlow]:
    family = Family.PLAN if is_plan else Family.CONVERSE
    return make_flow_class(FlowSpec(dact=dact, dax="000", intent=RETIRED, family=family))


RETIRED = "retired"
"""The intent of flows whose type the domain no longer has; they load, and no policy carries them out."""


def load_flow(body: JsonObject, flow_types: FlowTypes) -> BaseFlow:
    """A flow from its JSON. One whose dact has left the domain is loaded as retired, nothing lost."""
    cls = flow_types.get(body["dact"])
    if cls is None:
        cls = _make_retired(body["dact"], "steps" in body)
    return cls.from_dict(body)
