from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from random import Random

from orchestrator.dialogue.specification import Family, FlowSpec, Mode, Priority
from orchestrator.domain.model import Domain
from orchestrator.types import Json, JsonObject, ToolId
from parley.samples import Sample, list_samples

PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NOT_ASKED_FOR = frozenset({Family.INTERNAL, Family.CONVERSE})


class Twist(StrEnum):
    NONE = ""
    CORRECT = "changes a value"
    REFUSE = "refuses the offer"


@dataclass(slots=True)
class Goal:
    """A task that a simulated user wants done.

    `opening`: an example message of the flow, with placeholders. `others`: values after a change of mind, by slot.
    `needs`: the goal that must be reached first, or None. `stated`: slots whose values the user has mentioned.
    """

    flow: FlowSpec
    values: dict[str, Sample]
    opening: str
    twist: Twist = Twist.NONE
    others: Mapping[str, Sample] = field(default_factory=dict[str, Sample])
    needs: Goal | None = None
    stated: set[str] = field(default_factory=set[str])
    is_reached: bool = False

    def __str__(self) -> str:
        told = ", ".join(f"{name} {one.text}" for name, one in self.values.items() if name in self.wanted)
        return " ".join(filter(None, [self.flow.dact, f"({told})" if told else "", self.twist]))

    @property
    def wanted(self) -> list[str]:
        """The required slots and the slots that the user mentions, in the flow's order."""
        slots = self.flow.slots
        named = {*PLACEHOLDER.findall(self.opening), *self.stated}
        return [name for name in self.values if name in named or slots[name].priority is Priority.REQUIRED]


class Stock:
    """The flows that simulated users can ask for, with sample values.

    `has_model`: True to include flows that need a model. `without`: a message for each flow that can't be a goal.
    """

    def __init__(self, domain: Domain, today: date, *, has_model: bool) -> None:
        self.domain = domain
        self._samples: dict[str, dict[str, Sequence[Sample]]] = {}
        self._needs: dict[str, frozenset[str]] = {}
        self.without: list[str] = []
        asked_for = [
            flow.spec
            for flow in domain.flows.values()
            if flow.spec.examples
            and flow.spec.family not in _NOT_ASKED_FOR
            and (has_model or flow.spec.mode is not Mode.SKILL)
        ]
        for flow in asked_for:
            samples = {name: list_samples(slot, domain, today) for name, slot in flow.slots.items()}
            self._samples[flow.dact] = {name: some for name, some in samples.items() if some}
            self._needs[flow.dact] = _find_needs(flow, self._samples[flow.dact])
        self.flows = [flow for flow in asked_for if self._can_ask_for(flow, asked_for)]

    def _can_ask_for(self, flow: FlowSpec, others: Sequence[FlowSpec]) -> bool:
        """Return True if each required slot has a sample value or another flow provides one.

        If not, add a message to `without`.
        """
        missing = [
            name
            for name in sorted(self._needs[flow.dact])
            if name not in flow.inputs or not self._givers(name, others, creates=True)
        ]
        self.without += [
            f"{flow.dact}: no goals, because {name} has no sample value; add `samples` for this slot."
            for name in missing[:1]
        ]
        return not missing

    def _givers(self, name: str, flows: Sequence[FlowSpec], *, creates: bool) -> list[FlowSpec]:
        """Return the flows that have the output `name` and don't need another flow's output.

        `creates`: True to prefer flows with side effects, because users can't name the value, or False to prefer
        lookups.
        """
        giving = [one for one in flows if name in one.outputs and not self._needs[one.dact]]
        return [one for one in giving if bool(find_acting(one, self.domain)) is creates] or giving

    def draw(self, flow: FlowSpec, chance: Random) -> list[Goal]:
        """Return a random goal for the flow, preceded by the goals that it needs."""
        goal = self._draw_one(flow, chance)
        wanted = self._needs[flow.dact]
        if not {*flow.inputs} & {*PLACEHOLDER.findall(goal.opening)}:
            wanted = wanted or frozenset(
                flow.inputs
            )  # a request such as “book it” needs something to refer to
        before: list[Goal] = []
        for name in sorted(wanted):
            creates = name in self._needs[flow.dact]
            givers = [one for one in self._givers(name, self.flows, creates=creates) if one is not flow]
            if givers and not any(name in one.flow.outputs for one in before):
                before.append(self._draw_one(chance.choice(givers), chance))
        goal.needs = before[-1] if before else None
        goal.twist = chance.choice([Twist.NONE, Twist.NONE, *self._twists(goal)])
        return [*before, goal]

    def _draw_one(self, flow: FlowSpec, chance: Random) -> Goal:
        samples = self._samples[flow.dact]
        values, others = self._choose(flow, samples, chance), self._choose(flow, samples, chance)
        fitting = [
            one
            for one in flow.examples
            if all(n in values for n in PLACEHOLDER.findall(one) if n in flow.slots)
        ]
        opening = chance.choice(fitting or list(flow.examples))
        changed = {name: one for name, one in others.items() if one.value not in _plain(values)}
        return Goal(flow, values, opening, others=changed)

    def _choose(
        self, flow: FlowSpec, samples: Mapping[str, Sequence[Sample]], chance: Random
    ) -> dict[str, Sample]:
        """Choose a value for each slot. Slots of the same kind get different values, and dates are in order."""
        chosen: dict[str, Sample] = {}
        for name, some in samples.items():
            taken = _plain(chosen)
            chosen[name] = chance.choice([one for one in some if one.value not in taken] or list(some))
        days = [name for name in chosen if flow.slots[name].type == "date"]
        ordered = sorted((chosen[name] for name in days), key=lambda one: str(one.value))
        return chosen | dict(zip(days, ordered, strict=True))

    def _twists(self, goal: Goal) -> Iterator[Twist]:
        if any(find_acting(goal.flow, self.domain).values()):
            yield Twist.REFUSE
        if find_correctable(goal):
            yield Twist.CORRECT


def _find_needs(flow: FlowSpec, samples: Mapping[str, Sequence[Sample]]) -> frozenset[str]:
    """Return the required slots without sample values.

    From an elective group without sample values, return the slots that are flow inputs, or all slots if none are.
    """
    needed: set[str] = set()
    groups: dict[str | None, set[str]] = {}
    for name, slot in flow.slots.items():
        if slot.priority is Priority.REQUIRED and name not in samples:
            needed.add(name)
        elif slot.priority is Priority.ELECTIVE:
            groups.setdefault(slot.group, set()).add(name)
    for names in groups.values():
        if not names & samples.keys():
            needed |= names & {*flow.inputs} or names
    return frozenset(needed)


def _plain(values: Mapping[str, Sample]) -> list[Json]:
    return [one.value for one in values.values()]


def find_correctable(goal: Goal) -> list[str]:
    kept = {slot.not_before for slot in goal.flow.slots.values()}
    fixed = {"free_text", "boolean"}
    return [
        name
        for name in goal.wanted
        if name in goal.others
        and name not in kept
        and goal.flow.slots[name].not_before is None
        and goal.flow.slots[name].type.replace(" ", "_") not in fixed
    ]


def find_acting(flow: FlowSpec, domain: Domain) -> dict[ToolId, bool]:
    """Return the tools that act for a flow or its plan's steps, and whether each needs confirmation (AM-3).

    These are the tools with side effects or confirmation. In a flow without such tools that asks for confirmation,
    the last tool acts.
    """
    found: dict[ToolId, bool] = {}
    for spec in (flow, *(domain.flows[step.dact].spec for step in flow.recipe if step.dact in domain.flows)):
        tools = [domain.tools[use.tool_id] for use in spec.tools if use.tool_id in domain.tools]
        acting = [tool for tool in tools if tool.has_effect or tool.confirm]
        acting = acting or (tools[-1:] if spec.confirm else [])
        found |= {tool.tool_id: tool.confirm or spec.confirm for tool in acting}
    return found


def expected_arguments(goal: Goal, domain: Domain) -> dict[ToolId, list[JsonObject]]:
    """Return the arguments that follow from the user's stated values, by tool.

    For a plan, this includes the tools of its steps.
    """
    said = {name: one.value for name, one in goal.values.items() if name in goal.stated}
    values = {name: value for name, value in said.items() if value is not None}
    found: dict[ToolId, list[JsonObject]] = {}
    _add_arguments(goal.flow, values, domain, found)
    for step in goal.flow.recipe:
        bound = {
            name: values[b.name] for name, b in step.slots.items() if b.step is None and b.name in values
        }
        if step.dact in domain.flows:
            _add_arguments(domain.flows[step.dact].spec, bound, domain, found)
    return found


def _add_arguments(
    flow: FlowSpec, values: JsonObject, domain: Domain, found: dict[ToolId, list[JsonObject]]
) -> None:
    names = {field: slot for use in flow.tools for field, slot in use.slot_mapping.items()}
    for use in flow.tools:
        tool = domain.tools.get(use.tool_id)
        if tool is not None:
            fields = {**{slot: slot for slot in values}, **names}
            given = {field: values[slot] for field, slot in fields.items() if slot in values}
            found.setdefault(use.tool_id, []).append(given)
