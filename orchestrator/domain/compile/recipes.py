"""Compile a Plan flow's declared steps into its recipe: names, references, and data between steps (PL-1).

A step can refer only to earlier steps, so that plans have no cycles.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.dialogue.specification import Binding, Condition, Family, RecipeStep
from orchestrator.domain.compile.problems import Path, Problems, SourceFile, suggest
from orchestrator.domain.schema import FlowEntry, StepEntry
from orchestrator.types import Dact, Json

NO_STEPS = frozenset({Family.PLAN, Family.INTERNAL})
"""Families of flows that cannot be steps of a plan."""
_NOT = "not "


@dataclass(slots=True)
class RecipeCheck:
    """A check of one Plan flow's steps.

    `families`: flow families by intent name. `seen`: flows of the steps checked so far, by step name.
    """

    dact: str
    entry: FlowEntry
    flows: Mapping[str, FlowEntry]
    families: Mapping[str, Family]
    file: SourceFile
    problems: Problems
    seen: dict[str, FlowEntry] = field(default_factory=dict[str, FlowEntry])

    def compile(self) -> tuple[RecipeStep, ...]:
        if self.entry.plan and self.families.get(self.entry.intent or "") is not Family.PLAN:
            self.problems.add(
                self.file, ("flows", self.dact, "plan"), "only flows with the intent Plan can have steps"
            )
        return tuple(self._step(place, step) for place, step in enumerate(self.entry.plan))

    def _add(self, path: Path, message: str) -> None:
        self.problems.add(self.file, ("flows", self.dact, "plan", *path), message)

    def _step(self, place: int, step: StepEntry) -> RecipeStep:
        flow = self._flow(place, step)
        if step.name in self.seen:
            self._add((place, "name"), f"duplicate step {step.name!r}")
        for slot in step.slots:
            if flow is not None and slot not in flow.slots and slot not in flow.inputs:
                known = [*flow.slots, *flow.inputs]
                self._add((place, "slots", slot), f"{step.flow} has no slot {slot!r}{suggest(slot, known)}")
        for index, name in enumerate(step.needs):
            if name not in self.seen:
                self._add(
                    (place, "needs", index), f"{name!r} is not an earlier step{suggest(name, self.seen)}"
                )
        compiled = step.fill(
            RecipeStep,
            dact=Dact(step.flow or ""),
            slots={name: self._bind((place, "slots", name), body) for name, body in step.slots.items()},
            when=self._conditions((place, "when"), step.when),
        )
        if flow is not None:
            self.seen[step.name] = flow
        return compiled

    def _flow(self, place: int, step: StepEntry) -> FlowEntry | None:
        flow = self.flows.get(step.flow or "")
        if flow is None:
            self._add((place, "flow"), f"unknown flow {step.flow!r}{suggest(step.flow or '', self.flows)}")
        elif (family := self.families.get(flow.intent or "")) in NO_STEPS:
            name = family.value if family is not None else ""
            self._add((place, "flow"), f"{step.flow} is a {name} flow, which cannot be a plan step")
        return flow

    def _conditions(self, path: Path, texts: tuple[str, ...]) -> tuple[Condition, ...]:
        return tuple(
            Condition(self._bind((*path, index), text.removeprefix(_NOT)), text.startswith(_NOT))
            for index, text in enumerate(texts)
        )

    def _bind(self, path: Path, body: Json) -> Binding:
        binding = Binding.read(body)
        if binding.step is not None:
            giver = self.seen.get(binding.step)
            if giver is None:
                self._add(path, f"{binding.step!r} is not an earlier step{suggest(binding.step, self.seen)}")
            elif binding.name not in giver.outputs:
                known = suggest(binding.name, giver.outputs)
                self._add(path, f"the step {binding.step!r} has no output {binding.name!r}{known}")
        elif binding.name and binding.name not in self.entry.slots:
            known = suggest(binding.name, self.entry.slots)
            self._add(path, f"the plan has no slot {binding.name!r}{known}")
        return binding
