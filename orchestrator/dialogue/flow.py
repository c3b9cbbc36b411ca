"""The class hierarchy of flows: BaseFlow → one parent per family → one class per flow name (FS-1).

This module defines the families and creates classes and instances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from orchestrator.dialogue.base_flow import SELDOM, STATUSES, BaseFlow
from orchestrator.dialogue.progress import NO_CONSENT, Consent, Progress
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.slots import EVERY_TYPE, SlotSource, SlotTypes, SlotValue
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.storage.serialization import dump, load
from orchestrator.dialogue.validation import Rejected
from orchestrator.types import Dact, FlowId, JsonObject, copy_json


@dataclass(eq=False, repr=False)
class PlanFlow(BaseFlow):
    """A plan, which decomposes a request into sub-flows. `revision`: increases with every change.

    `goal`: the request in the user's words. `rounds`: number of times that sub-flows were stacked. `noted`:
    number of recorded revisions. `by_model`: True if a model chose the steps, so that declared steps are not
    added. `settled`: the plan's values for steps whose side effects stay, by flow ID. `beyond`: words in the
    request that fit no slot, for the planner.
    """

    steps: list[PlanStep] = field(default_factory=list[PlanStep])
    revision: int = 0
    goal: str = ""
    rounds: int = 0
    noted: int = 0
    by_model: bool = False
    settled: dict[FlowId, JsonObject] = field(default_factory=dict[FlowId, JsonObject])
    beyond: list[str] = field(default_factory=list[str])

    def needs_to_think(self) -> bool:
        """Return whether the plan has no steps yet, or lacks required values."""
        return not self.steps or super().needs_to_think()

    def pursue(self, goal: str, beyond: Sequence[str] = ()) -> None:
        self.goal, self.beyond = goal, [*beyond]

    def take_up(self, ended: PlanFlow) -> None:
        """Copy the goal, steps and results of an ended plan, to continue that plan."""
        self.goal, self.rounds = ended.goal, 1
        self.steps = [replace(step, slots={**step.slots}) for step in ended.steps]
        self.by_model, self.settled = ended.by_model, ended.settled
        if ended.progress.doubted:
            self.progress.doubt()

    def follow_model(self) -> None:
        self.by_model = True

    def settle(self, flow_id: FlowId, values: JsonObject) -> None:
        self.settled = {**self.settled, flow_id: values}

    def begin_round(self) -> None:
        self.rounds += 1

    def note_revision(self) -> int:
        self.noted += 1
        return self.noted

    @property
    def unfinished(self) -> list[PlanStep]:
        return [step for step in self.steps if not step.is_finished]

    @property
    def done_labels(self) -> list[str]:
        """Return the distinct labels of the completed steps."""
        return list(dict.fromkeys(step.label for step in self.steps if step.is_done))

    def step_of(self, flow_id: str) -> PlanStep | None:
        return next((step for step in self.steps if step.flow_id == flow_id), None)

    def step_named(self, name: str) -> PlanStep | None:
        """Return the latest step with this name, or None."""
        return next((step for step in reversed(self.steps) if step.name == name), None)

    def serialize(self) -> JsonObject:
        kept = {name: value for name in _OF_PLANS if (value := getattr(self, name))}
        steps = [_write_step(step) for step in self.steps]
        return super().serialize() | {"revision": self.revision, **kept, "steps": steps}


_SOURCES = {source.value: source for source in SlotSource}
_OF_PLANS = ("goal", "rounds", "noted", "by_model", "settled", "beyond")
"""Plan fields that are serialized as they are, unless empty."""


def _write_step(step: PlanStep) -> JsonObject:
    kept = {name: value for name, value in dump(step).items() if value}
    return kept | step.status.serialize()


class ConverseFlow(BaseFlow):
    """A conversation flow, whose results go to the scratchpad (PX-12)."""


class InternalFlow(BaseFlow):
    """A background flow, which is never predicted from user messages and never displayed (PX-12)."""

    def needs_to_think(self) -> bool:
        """Return False, because the system provides the inputs and there is no user to ask."""
        return False


class ReadFlow(BaseFlow):
    """A flow that finds and displays data, without side effects."""


class PrepareFlow(BaseFlow):
    """A flow that prepares something, for example by booking or collecting."""


class TransformFlow(BaseFlow):
    """A flow that changes existing data."""


class ScheduleFlow(BaseFlow):
    """A flow that schedules something for later."""


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
    """Create a flow's class from its family's base class: ``book_flight`` → ``BookFlightFlow``."""
    name = "".join(part.capitalize() for part in spec.dact.split("_")) + "Flow"
    body = {"spec": spec, "slot_types": slot_types, "__doc__": spec.description}
    return type(name, (PARENTS[spec.family],), body)


@lru_cache(maxsize=256)
def _make_retired(dact: Dact, is_plan: bool) -> type[BaseFlow]:
    family = Family.PLAN if is_plan else Family.CONVERSE
    return make_flow_class(FlowSpec(dact=dact, dax="", intent=RETIRED, family=family))


RETIRED = "retired"
"""The intent of flows whose type was removed from the domain. These flows load, but no policy runs them."""


def load_flow(body: JsonObject, flow_types: FlowTypes) -> BaseFlow:
    """Create a flow from the output of `serialize`. The flow shares nothing with the JSON.

    A flow whose type was removed from the domain is loaded as retired, with all its data. An unfinished flow
    loses the values that its slot types no longer accept, so that the user is asked for them again.
    """
    cls = flow_types.get(body["dact"])
    if cls is None:
        cls = _make_retired(body["dact"], "steps" in body)
    flow = cls(
        body["started_at"],
        flow_id=body["flow_id"],
        status=STATUSES[body["state"], body.get("reason")],
        slots={
            name: SlotValue(
                copy_json(held["value"]),
                _SOURCES[held["source"]],
                held.get("turn_id"),
                held.get("confirmed", False),
                held.get("text", ""),
            )
            for name, held in body["slots"].items()
        },
        consent=load(Consent, body["consent"]) if "consent" in body else NO_CONSENT,
        progress=load(Progress, body["progress"]) if "progress" in body else Progress(),
    )
    kept = SELDOM
    if isinstance(flow, PlanFlow):
        flow.steps, flow.revision = load(list[PlanStep], body.get("steps", [])), body.get("revision", 0)
        kept += _OF_PLANS
    for name in kept:
        if name in body:
            setattr(flow, name, copy_json(body[name]))
    for name in () if flow.is_finished else [name for name in flow.slots if name in flow.spec.slots]:
        if isinstance(flow.judge(name, flow.slots[name].value), Rejected):
            del flow.slots[name]
    return flow
