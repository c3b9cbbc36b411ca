"""Compile a Plan flow's declared steps into its recipe: names, references, and data between steps (PL-1).

A step can refer only to earlier steps, so that plans have no cycles.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.dialogue.specification import NO_STEPS, Binding, Condition, Family, RecipeStep
from orchestrator.domain.compile.problems import Place, suggest
from orchestrator.domain.schema import FlowEntry, StepEntry
from orchestrator.types import Dact, Json

_NO_STEPS = NO_STEPS - {Family.CONVERSE}
_NOT = "not "


@dataclass(slots=True)
class RecipeCheck:
    """A check of one Plan flow's steps.

    `families`: flow families by intent name. `place`: the steps in the file. `seen`: flows of the steps checked so
    far, by step name.
    """

    entry: FlowEntry
    flows: Mapping[str, FlowEntry]
    families: Mapping[str, Family]
    place: Place
    seen: dict[str, FlowEntry] = field(default_factory=dict[str, FlowEntry])

    def compile(self) -> tuple[RecipeStep, ...]:
        if self.entry.plan and self.families.get(self.entry.intent or "") is not Family.PLAN:
            self.place.add("only flows with the intent Plan can have steps")
        return tuple(self._step(self.place.at(at), step) for at, step in enumerate(self.entry.plan))

    def _step(self, place: Place, step: StepEntry) -> RecipeStep:
        flow = self._flow(place, step)
        if step.name in self.seen:
            place.add(f"duplicate step {step.name!r}", "name")
        for slot in step.slots:
            if flow is not None and slot not in flow.slots and slot not in flow.inputs:
                known = [*flow.slots, *flow.inputs]
                place.add(f"{step.flow} has no slot {slot!r}{suggest(slot, known)}", "slots", slot)
        for index, name in enumerate(step.needs):
            if name not in self.seen:
                place.add(f"{name!r} is not an earlier step{suggest(name, self.seen)}", "needs", index)
        compiled = step.fill(
            RecipeStep,
            dact=Dact(step.flow or ""),
            slots={name: self._bind(place.at("slots", name), body) for name, body in step.slots.items()},
            when=self._conditions(place.at("when"), step.when),
        )
        if flow is not None:
            self.seen[step.name] = flow
        return compiled

    def _flow(self, place: Place, step: StepEntry) -> FlowEntry | None:
        flow = self.flows.get(step.flow or "")
        if flow is None:
            place.add(f"unknown flow {step.flow!r}{suggest(step.flow or '', self.flows)}", "flow")
        elif (family := self.families.get(flow.intent or "")) in _NO_STEPS:
            name = family.value if family is not None else ""
            place.add(f"{step.flow} is a {name} flow, which cannot be a plan step", "flow")
        return flow

    def _conditions(self, place: Place, texts: tuple[str, ...]) -> tuple[Condition, ...]:
        return tuple(
            Condition(self._bind(place.at(index), text.removeprefix(_NOT)), text.startswith(_NOT))
            for index, text in enumerate(texts)
        )

    def _bind(self, place: Place, body: Json) -> Binding:
        binding = Binding.read(body)
        if binding.step is not None:
            giver = self.seen.get(binding.step)
            if giver is None:
                place.add(f"{binding.step!r} is not an earlier step{suggest(binding.step, self.seen)}")
            elif binding.name not in giver.outputs:
                known = suggest(binding.name, giver.outputs)
                place.add(f"the step {binding.step!r} has no output {binding.name!r}{known}")
        elif binding.name and binding.name not in self.entry.slots:
            known = suggest(binding.name, self.entry.slots)
            place.add(f"the plan has no slot {binding.name!r}{known}")
        return binding
