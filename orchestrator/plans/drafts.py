"""Validate a model's decompositions: fit them to the flow catalog, or reject them with reasons (PL-1)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from orchestrator.dialogue.flow import BaseFlow, FlowTypes, PlanFlow
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.slots import Rejected
from orchestrator.dialogue.specification import NO_STEPS, Binding
from orchestrator.nlu.answer_schemas import read_pairs
from orchestrator.plans.answer_schemas import ALTERNATIVE_KINDS, LONGEST_PURPOSE
from orchestrator.plans.bindings import look_up, resolve
from orchestrator.plans.changes import free_name
from orchestrator.types import Dact, FlowId, Json, JsonObject, is_list, is_object, new_id, same_value

# Families whose flows cannot be steps: plans are not nested, and conversation and background flows are not
# tasks.

# A function that converts a model's values for a flow at a local time (Unix seconds), omitting unusable values.
Ground: TypeAlias = Callable[[type[BaseFlow], Mapping[str, Json], float], JsonObject]


@dataclass(frozen=True, slots=True)
class Draft:
    """A usable decomposition. `problems`: faults that do not prevent its use, one sentence each.

    `is_open`: True if the model sees a reason to compare alternatives.
    """

    steps: tuple[PlanStep, ...]
    problems: tuple[str, ...] = ()
    is_open: bool = False

    def key(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return a key that is equal for decompositions with the same tasks and slot bindings in the same order."""
        return tuple((step.dact, tuple(sorted(map(str, step.slots.items())))) for step in self.steps)

    def show(self) -> list[JsonObject]:
        return [
            {"dact": step.dact, "purpose": step.purpose, "slots": step.slots, "needs": list(step.needs)}
            for step in self.steps
        ]


@dataclass(frozen=True, slots=True)
class Refused:
    """A decomposition that cannot become a plan. `reasons`: one sentence each."""

    reasons: tuple[str, ...]


def catalogue(flow_types: FlowTypes) -> dict[Dact, type[BaseFlow]]:
    """Return the flows that can be steps of a plan."""
    return {dact: flow for dact, flow in flow_types.items() if flow.spec.family not in NO_STEPS}


def check_draft(
    body: JsonObject,
    plan: PlanFlow,
    flow_types: FlowTypes,
    ground: Ground,
    room: int,
    now: float,
    done: Mapping[FlowId, JsonObject],
) -> Draft | Refused:
    """Validate a model's decomposition.

    `body`: the model's answer. `room`: maximum number of steps. `now`: local time in Unix seconds. `done`:
    slot values of completed flows, by flow ID.
    """
    check = _DraftCheck(plan, catalogue(flow_types), flow_types, ground, now, done)
    entries = body.get("steps")
    for entry in entries if is_list(entries) else []:
        if is_object(entry):
            check.take(entry)
    try:
        ordered = check.sort()
    except CycleError as error:
        circle = " → ".join(str(name) for name in error.args[1])
        return Refused((*check.problems, f"The steps depend on each other: {circle}."))
    if not ordered:
        return Refused((*check.problems, "No steps are left."))
    if len(ordered) > room:
        check.problems.append(
            f"There are {len(ordered)} steps, but only {room} are allowed; the last ones are dropped."
        )
        ordered = ordered[:room]
    kept = {step.name for step in ordered}
    for step in ordered:
        step.need(name for name in step.needs if name in kept)
    is_open = body.get("alternatives", "none") in ALTERNATIVE_KINDS[1:]
    return Draft(tuple(ordered), tuple(check.problems), is_open)


@dataclass(slots=True)
class _DraftCheck:
    plan: PlanFlow
    usable: Mapping[Dact, type[BaseFlow]]
    all_flows: FlowTypes
    ground: Ground
    now: float
    done: Mapping[FlowId, JsonObject]
    steps: list[PlanStep] = field(default_factory=list[PlanStep])
    problems: list[str] = field(default_factory=list[str])

    def take(self, entry: JsonObject) -> None:
        dact = _clean(entry.get("dact"))
        flow = self.usable.get(dact)
        if flow is None:
            known = dact in self.all_flows
            self.problems.append(f"{dact!r} cannot be a step." if known else f"Unknown task {dact!r}.")
            return
        written = entry.get("slots")
        given = dict(read_pairs(written, {}))
        read = dict(read_pairs(written, dict(flow.spec.slots)))
        taken = {name: made for name, value in given.items() if (made := self._find_giver(flow, name, value))}
        stated = {name: value for name, value in given.items() if name not in taken}
        plain = {name: read[name] for name, value in stated.items() if not self._names_a_step(value)}
        values = self.ground(flow, plain, self.now)
        slots: JsonObject = {
            name: {"value": value} for name, value in values.items() if _fits(flow, name, value)
        }
        self.problems += [
            f"{dact!r} does not accept {value!r} for {name!r}."
            for name, value in stated.items()
            if value is not None and name not in slots
        ]
        slots |= {name: binding.serialize() for name, binding in taken.items()}
        if any(step.dact == dact and step.slots == slots for step in self.steps):
            self.problems.append(f"{dact!r} appears twice.")
            return
        if self._is_done(dact, slots):
            self.problems.append(f"{dact!r} is already done.")
            return
        needs = entry.get("needs")
        named = [
            *map(_clean, needs if is_list(needs) else ()),
            *(one.step for one in taken.values() if one.step),
        ]
        self.steps.append(
            PlanStep(
                flow_id=FlowId(new_id("flow")),
                dact=dact,
                name=free_name(dact, (*self.plan.steps, *self.steps)),
                purpose=str(entry.get("purpose") or flow.spec.description)[:LONGEST_PURPOSE],
                slots=slots,
                needs=tuple(dict.fromkeys(named)),
            )
        )

    def _is_done(self, dact: Dact, slots: JsonObject) -> bool:
        """Return whether a step in the plan has already done this task with the same values (PL-2)."""
        wanted = {name: look_up(self.plan, Binding.read(bound)) for name, bound in slots.items()}
        return any(
            all(value is not None and same_value(held.get(name), value) for name, value in wanted.items())
            for step in self.plan.steps
            if step.dact == dact and step.is_done
            for held in ({**resolve(self.plan, step), **self.done.get(step.flow_id, {})},)
        )

    def _names_a_step(self, value: Json) -> bool:
        step, dot, _ = str(value).partition(".")
        return bool(dot) and _clean(step) in self.all_flows

    def _find_giver(self, flow: type[BaseFlow], name: str, value: Json) -> Binding | None:
        """Parse a reference to an earlier step's output, ``step.output``. Return None for other values."""
        step, _, output = str(value).partition(".")
        giver = next((one for one in (*self.plan.steps, *self.steps) if one.name == _clean(step)), None)
        known = giver is not None and output in self.all_flows[Dact(giver.dact)].spec.outputs
        return (
            Binding(output, giver.name)
            if giver is not None and known and flow.slot(name) is not None
            else None
        )

    def sort(self) -> list[PlanStep]:
        """Return the steps sorted by need, in the model's order where possible. Raises CycleError for cyclic needs."""
        done = {step.name for step in self.plan.steps if step.is_done}
        for step in self.steps:
            self._check_needs(step, done)
            self._bind_inputs(step)
        places = {step.name: place for place, step in enumerate(self.steps)}
        sorter = TopologicalSorter({s.name: [n for n in s.needs if n in places] for s in self.steps})
        sorter.prepare()
        ordered: list[PlanStep] = []
        ready = sorted(sorter.get_ready(), key=places.__getitem__)
        while ready:
            name = ready.pop(0)
            ordered.append(self.steps[places[name]])
            sorter.done(name)
            ready = sorted([*ready, *sorter.get_ready()], key=places.__getitem__)
        return ordered

    def _check_needs(self, step: PlanStep, done: set[str]) -> None:
        known = {other.name for other in self.steps} | done
        for name in step.needs:
            if name not in known:
                self.problems.append(f"{step.name!r} needs {name!r}, which is not a step.")
        step.need(name for name in step.needs if name in known and name != step.name)

    def _bind_inputs(self, step: PlanStep) -> None:
        """Bind a step's missing inputs to outputs of earlier steps, or to the plan's slots with the same names."""
        spec = self.usable[step.dact].spec
        before = self.steps[: self.steps.index(step)]
        for name in dict.fromkeys([*spec.inputs, *spec.slots]):
            if name in step.slots:
                continue
            givers = [
                other
                for other in (*self.plan.steps, *before)
                if other.dact in self.usable and name in self.usable[other.dact].spec.outputs
            ]
            needed = [other for other in givers if other.name in step.needs] or givers
            if name in spec.inputs and needed:
                giver = ([other for other in needed if _agree(step, other)] or needed)[-1]
                step.bind(name, Binding(name, giver.name).serialize())
                step.need([*step.needs, giver.name])
            elif name in self.plan.spec.slots:
                step.bind(name, Binding(name).serialize())


def _agree(step: PlanStep, giver: PlanStep) -> bool:
    """Return whether all slots that `step` binds to constants and `giver` also binds have equal bindings."""
    shared = step.slots.keys() & giver.slots.keys()
    stated = [(step.slots[name], giver.slots[name]) for name in shared]
    return all(one == other for one, other in stated if is_object(one) and "value" in one)


def _fits(flow: type[BaseFlow], name: str, value: Json) -> bool:
    return flow.slot(name) is not None and not isinstance(flow.judge(name, value), Rejected)


def _clean(name: Json) -> Dact:
    """Normalize a name: ``Search Flights`` becomes ``search_flights``."""
    return Dact(re.sub(r"[\s\-]+", "_", str(name or "").strip().lower())[:60])
