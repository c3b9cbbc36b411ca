"""Compile an ontology's flows into specifications: names, slots, tools and references (FS-5)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from orchestrator.dialogue.specification import (
    Family,
    FlowSpec,
    Freshness,
    Mode,
    Priority,
    RecipeStep,
    SlotSpec,
    ToolUse,
)
from orchestrator.domain.acts import (
    DIGITS,
    MOST_OF_FLOW,
    SHARED,
    Act,
    count_shared,
    propose_dax,
    read_acts,
    write_dax,
)
from orchestrator.domain.compile.problems import Place, suggest
from orchestrator.domain.compile.recipes import RecipeCheck
from orchestrator.domain.compile.tools import input_names, required_names
from orchestrator.domain.model import ToolSpec
from orchestrator.domain.schema import FlowEntry, SlotEntry, ToolUseEntry
from orchestrator.types import Dact, ToolId

MAX_FLOWS = 64
_WORD = re.compile(r"\w+")
_NEAR = 2
"""Minimum number of acts that a lookup must share with a flow to become its edge flow."""
_MOST_EDGES = 3
_WITHOUT_EDGES = frozenset({Family.CONVERSE, Family.INTERNAL, Family.PLAN})
_PLACEHOLDER = re.compile(r"{(\w+)}")
_BOUNDED = ("level", "range", "number", "money", "free_text")
_NEEDS_VALUES = ("category", "checklist")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names that flows can refer to.

    `intents`: families by accepted intent name. `language`: the language of the flows' texts.
    """

    intents: Mapping[str, Family]
    entities: Collection[str]
    slot_types: Collection[str]
    tools: Mapping[ToolId, ToolSpec]
    skills: Collection[str]
    acts: Mapping[str, Act]
    language: str = "en"


def compile_flows(
    entries: Mapping[str, FlowEntry], vocabulary: Vocabulary, place: Place
) -> dict[Dact, FlowSpec]:
    if len(entries) > MAX_FLOWS:
        place.add(f"there are {len(entries)} flows; a domain can have at most {MAX_FLOWS}")
    daxes = {dact: check_dax(dact, entry, vocabulary, place.at(dact)) for dact, entry in entries.items()}
    _check_events(entries, place)
    given = {
        name for dact, entry in entries.items() for one in entry.outputs for name in (one, f"{dact}.{one}")
    }
    specs: dict[Dact, FlowSpec] = {}
    for dact, entry in entries.items():
        check = _FlowCheck(dact, entry, vocabulary, place.at(dact))
        check.check_references(entries, given)
        recipe = RecipeCheck(entry, entries, vocabulary.intents, place.at(dact, "plan")).compile()
        specs[Dact(dact)] = check.specify(daxes[dact], recipe)
    return {dact: add_edges(spec, specs.values(), vocabulary.tools) for dact, spec in specs.items()}


def compile_acts(declared: Mapping[str, str], place: Place) -> Mapping[str, Act]:
    """Return the declared acts by digit. Default: the shared acts."""
    words = {act.name: act.words for act in SHARED.values()}
    acts: dict[str, Act] = {}
    for name, written in declared.items():
        digit = written.upper()
        if len(digit) != 1 or digit not in DIGITS:
            place.add(f"should be one hexadecimal digit (it is {written!r})", name)
        elif digit in acts:
            place.add(f"{digit!r} is already assigned to {acts[digit].name}", name)
        else:
            acts[digit] = Act(name, words.get(name, frozenset()))
    return dict(sorted(acts.items())) or SHARED


def check_dax(dact: str, entry: FlowEntry, vocabulary: Vocabulary, place: Place) -> str:
    """Return a flow's declared dax, or propose one. Report an invalid dax, and return an empty string for it."""
    acts = vocabulary.acts
    if entry.dax is None:
        family = vocabulary.intents.get(entry.intent or "", Family.CONVERSE)
        return propose_dax(acts, family, dact.split("_"), _WORD.findall(entry.description.casefold()))
    dax = write_dax(entry.dax)
    named = read_acts(dax)
    unknown = [digit for digit in named if digit not in acts]
    if not entry.dax or len(dax) > MOST_OF_FLOW or len(set(named)) < len(named):
        message = f"should be one to {MOST_OF_FLOW} different acts, one digit each (it is {entry.dax!r})"
    elif unknown:
        listed = ", ".join(f"{digit} ({act.name})" for digit, act in acts.items())
        message = f"has no act for {unknown[0]!r}; the acts are {listed}"
    else:
        return dax
    place.add(message, "dax")
    return ""


def add_edges(spec: FlowSpec, flows: Iterable[FlowSpec], tools: Mapping[ToolId, ToolSpec]) -> FlowSpec:
    """Return `spec` with its edge flows.

    Default: up to three lookups that share at least two acts with the flow (FS-5).
    """
    if spec.edge_flows or spec.family in _WITHOUT_EDGES:
        return spec
    near = [
        (-count_shared(spec.dax, other.dax), other.dact)
        for other in flows
        if other.dact != spec.dact
        and other.family is Family.READ
        and other.examples
        and not any(use.tool_id in tools and tools[use.tool_id].has_effect for use in other.tools)
    ]
    found = sorted((rank, dact) for rank, dact in near if -rank >= _NEAR)
    return replace(spec, edge_flows=tuple(dact for _, dact in found[:_MOST_EDGES]))


def _check_events(entries: Mapping[str, FlowEntry], place: Place) -> None:
    holders: dict[str, str] = {}
    for dact, entry in entries.items():
        for index, name in enumerate(entry.events):
            if (holder := holders.setdefault(name, dact)) != dact:
                place.add(f"{name!r} is already an event of {holder}", dact, "events", index)


@dataclass(frozen=True, slots=True)
class _FlowCheck:
    dact: str
    entry: FlowEntry
    vocabulary: Vocabulary
    place: Place

    def check_references(self, flows: Mapping[str, FlowEntry], given: Collection[str]) -> None:
        """Check the flow's references, examples, slots and tools.

        `given`: all flows' outputs, as ``output`` and ``flow.output``.
        """
        entry, place = self.entry, self.place
        if entry.intent is None:
            place.add(f"is missing; choose one of {', '.join(self.vocabulary.intents)}", "intent")
        else:
            place.check_known(entry.intent, self.vocabulary.intents, "intent", "intent")
        for index, other in enumerate(entry.edge_flows):
            place.check_known(other, flows, "flow", "edge_flows", index)
        if entry.fallback == self.dact:
            place.add("a flow cannot fall back to itself", "fallback")
        elif entry.fallback is not None:
            place.check_known(entry.fallback, flows, "flow", "fallback")
        if entry.changes is not None:
            self._check_changes(entry.changes, flows)
        self._check_given(flows, given)
        self._check_examples()
        for name, slot in entry.slots.items():
            self._check_slot(name, slot, place.at("slots", name))
        self._check_tools()
        if entry.mode is Mode.SKILL and self.dact not in self.vocabulary.skills:
            place.add(f"mode skill needs skills/{self.dact}/SKILL.md", "mode")

    def _check_given(self, flows: Mapping[str, FlowEntry], given: Collection[str]) -> None:
        """Check the names of values from other flows. `same_as` can also name a slot of the flow that this changes."""
        changed = flows.get(self.entry.changes or "")
        meant = {*given, *(changed.slots if changed is not None else ())}
        named = [(("inputs", index), name, given) for index, name in enumerate(self.entry.inputs)]
        named += [
            (("slots", slot, "same_as", index), name, meant)
            for slot, entry in self.entry.slots.items()
            for index, name in enumerate(entry.same_as)
        ]
        for path, name, known in named:
            if name not in known:
                self.place.add(f"no flow outputs {name!r}{suggest(name, known)}", *path)

    def _check_examples(self) -> None:
        slots = self.entry.slots
        for index, example in enumerate(self.entry.examples):
            for name in _PLACEHOLDER.findall(example):
                if name not in slots:
                    hint = suggest(name, slots)
                    self.place.add(f"{{{name}}} is not a slot in the flow{hint}", "examples", index)

    def _check_changes(self, changes: str, flows: Collection[str]) -> None:
        """Check that `changes` names another flow, and that this flow or a tool of it asks for confirmation."""
        place = self.place.at("changes")
        tools = [self.vocabulary.tools.get(ToolId(use.tool_id or "")) for use in self.entry.tools]
        if changes == self.dact:
            place.add("should name another flow")
        elif place.check_known(changes, flows, "flow") and not (
            self.entry.confirm or any(tool is not None and tool.confirm for tool in tools)
        ):
            place.add("needs `confirm: true`: a correction starts this flow")

    def _has_skill(self) -> bool:
        """Return whether a skill runs the flow. Skills can supply tool inputs that no slot provides."""
        named = self.dact in self.vocabulary.skills
        return self.entry.mode is Mode.SKILL or (self.entry.mode is Mode.AUTO and named)

    def _check_slot(self, name: str, slot: SlotEntry, place: Place) -> None:
        if slot.type is None:
            place.add(f"is missing; choose one of {', '.join(self.vocabulary.slot_types)}", "type")
        else:
            place.check_known(_canonical(slot.type), self.vocabulary.slot_types, "slot type", "type")
        if slot.entity is not None:
            place.check_known(slot.entity, self.vocabulary.entities, "entity", "entity")
        elif slot.open:
            place.add("only a slot with an entity can be open", "open")
        for index, other in enumerate(slot.depends_on):
            place.check_known(other, self.entry.slots, "slot", "depends_on", index)
        if slot.not_before is not None:
            others = self.entry.slots.items()
            days = [other for other, one in others if other != name and one.type == "date"]
            place.check_known(slot.not_before, days, "other date slot", "not_before")
            if slot.type != "date":
                place.add("is allowed only for slots of type date", "not_before")
        _check_values(slot, place)
        self._check_group(slot, place.at("group"))

    def _check_group(self, slot: SlotEntry, place: Place) -> None:
        sizes = Counter(group for one in self.entry.slots.values() if (group := _group(one)))
        if slot.group is not None and slot.priority is not Priority.ELECTIVE:
            place.add("only elective slots can have a group")
        elif (group := _group(slot)) and sizes[group] < 2:
            place.add(f"elective group {group!r} has one member; it needs two or more")

    def _check_tools(self) -> None:
        results: set[str] = set()
        for index, use in enumerate(self.entry.tools):
            place = self.place.at("tools", index)
            if use.tool_id is None:
                place.add("is missing", "tool_id")
            elif place.check_known(use.tool_id, self.vocabulary.tools, "tool", "tool_id"):
                tool = self.vocabulary.tools[ToolId(use.tool_id)]
                self._check_mapping(use, tool, results, place.at("slot_mapping"))
                results |= set(input_names(tool.output_schema))

    def _check_mapping(self, use: ToolUseEntry, tool: ToolSpec, results: set[str], place: Place) -> None:
        sources = {*self.entry.slots, *self.entry.inputs}
        inputs = input_names(tool.input_schema)
        for name, source in use.slot_mapping.items():
            if name not in inputs:
                place.add(f"{tool.tool_id} has no input {name!r}{suggest(name, inputs)}", name)
            elif source not in sources:
                place.add(f"unknown slot {source!r}{suggest(source, sources)}", name)
        available = {*use.slot_mapping, *sources, *results}
        missing = [name for name in required_names(tool.input_schema) if name not in available]
        if missing and not self._has_skill():
            names = ", ".join(repr(name) for name in missing)
            place.add(f"nothing provides the required input {names} of {tool.tool_id}")

    def specify(self, dax: str, recipe: tuple[RecipeStep, ...] = ()) -> FlowSpec:
        """Return the flow's specification, which is valid only if there are no problems."""
        entry = self.entry
        return entry.fill(
            FlowSpec,
            dact=Dact(self.dact),
            dax=dax,
            intent=entry.intent or "",
            family=self.vocabulary.intents.get(entry.intent or "", Family.CONVERSE),
            slots={name: _specify_slot(name, slot) for name, slot in entry.slots.items()},
            tools=self._uses(),
            freshness=None if entry.freshness is None else entry.freshness.fill(Freshness),
            language=self.vocabulary.language,
            recipe=recipe,
        )

    def _uses(self) -> tuple[ToolUse, ...]:
        """Return the flow's tools with complete input mappings.

        An omitted input takes its value from the slot or flow input of the same name, unless an earlier tool
        in the flow provides it.
        """
        uses: list[ToolUse] = []
        results: set[str] = set()
        for use in self.entry.tools:
            tool = self.vocabulary.tools.get(ToolId(use.tool_id or ""))
            names = input_names(tool.input_schema) if tool else []
            sources = {*self.entry.slots, *self.entry.inputs} - results
            implied = {name: name for name in names if name in sources}
            uses.append(ToolUse(ToolId(use.tool_id or ""), implied | dict(use.slot_mapping)))
            results |= set(input_names(tool.output_schema)) if tool else set()
        return tuple(uses)


def _check_values(slot: SlotEntry, place: Place) -> None:
    if slot.type in _NEEDS_VALUES and not slot.values and slot.entity is None:
        place.add(f"is missing: a slot of type {slot.type} must list its values", "values")
    for value in slot.synonyms if slot.values else ():
        if value not in slot.values:
            place.add(f"is not one of the values{suggest(value, slot.values)}", "synonyms", value)
    if slot.type == "category" and slot.values and slot.default not in (None, *slot.values):
        place.add(f"is not one of the values: {slot.default!r}", "default")
    if None not in (slot.minimum, slot.maximum) and slot.minimum > slot.maximum:  # type: ignore[operator]
        place.add(f"is above maximum ({slot.minimum} > {slot.maximum})", "minimum")
    if slot.pattern is not None and slot.type != "exact":
        place.add("a pattern is allowed only for slots of type exact", "pattern")
    if _canonical(slot.type) not in _BOUNDED and (slot.minimum is not None or slot.maximum is not None):
        key = "minimum" if slot.minimum is not None else "maximum"
        place.add(f"bounds are allowed only for slots of type {', '.join(_BOUNDED)}", key)


def _canonical(name: str | None) -> str:
    """Normalize a slot type's name: ``free text`` becomes ``free_text``."""
    return (name or "").strip().replace(" ", "_")


def _group(slot: SlotEntry) -> str | None:
    return (slot.group or "choice") if slot.priority is Priority.ELECTIVE else None


def _specify_slot(name: str, slot: SlotEntry) -> SlotSpec:
    return slot.fill(
        SlotSpec,
        name=name,
        type=_canonical(slot.type),
        group=_group(slot),
        synonyms={word.lower(): value for value, words in slot.synonyms.items() for word in words},
        own_label=slot.label,
    )
