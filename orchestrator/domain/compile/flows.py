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
from orchestrator.domain.compile.problems import Path, Problems, SourceFile, suggest
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
    entries: Mapping[str, FlowEntry], vocabulary: Vocabulary, file: SourceFile, problems: Problems
) -> dict[Dact, FlowSpec]:
    if len(entries) > MAX_FLOWS:
        problems.add(
            file, ("flows",), f"there are {len(entries)} flows; a domain can have at most {MAX_FLOWS}"
        )
    daxes = {dact: check_dax(dact, entry, vocabulary, file, problems) for dact, entry in entries.items()}
    _check_events(entries, file, problems)
    given = {
        name for dact, entry in entries.items() for one in entry.outputs for name in (one, f"{dact}.{one}")
    }
    specs: dict[Dact, FlowSpec] = {}
    for dact, entry in entries.items():
        check = _FlowCheck(dact, entry, vocabulary, file, problems)
        check.check_references(entries, given)
        recipe = RecipeCheck(dact, entry, entries, vocabulary.intents, file, problems).compile()
        specs[Dact(dact)] = check.specify(daxes[dact], recipe)
    return {dact: add_edges(spec, specs.values(), vocabulary.tools) for dact, spec in specs.items()}


def compile_acts(declared: Mapping[str, str], file: SourceFile, problems: Problems) -> Mapping[str, Act]:
    """Return the declared acts by digit. Default: the shared acts."""
    words = {act.name: act.words for act in SHARED.values()}
    acts: dict[str, Act] = {}
    for name, written in declared.items():
        digit = written.upper()
        if len(digit) != 1 or digit not in DIGITS:
            problems.add(file, ("acts", name), f"should be one hexadecimal digit (it is {written!r})")
        elif digit in acts:
            problems.add(file, ("acts", name), f"{digit!r} is already assigned to {acts[digit].name}")
        else:
            acts[digit] = Act(name, words.get(name, frozenset()))
    return dict(sorted(acts.items())) or SHARED


def check_dax(
    dact: str, entry: FlowEntry, vocabulary: Vocabulary, file: SourceFile, problems: Problems
) -> str:
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
    problems.add(file, ("flows", dact, "dax"), message)
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


def _check_events(entries: Mapping[str, FlowEntry], file: SourceFile, problems: Problems) -> None:
    holders: dict[str, str] = {}
    for dact, entry in entries.items():
        for index, name in enumerate(entry.events):
            if (holder := holders.setdefault(name, dact)) != dact:
                problems.add(
                    file, ("flows", dact, "events", index), f"{name!r} is already an event of {holder}"
                )


@dataclass(frozen=True, slots=True)
class _FlowCheck:
    dact: str
    entry: FlowEntry
    vocabulary: Vocabulary
    file: SourceFile
    problems: Problems

    def _add(self, path: Path, message: str) -> None:
        self.problems.add(self.file, ("flows", self.dact, *path), message)

    def _known(self, path: Path, name: str, known: Collection[str], kind: str) -> bool:
        return self.problems.check_known(self.file, ("flows", self.dact, *path), name, known, kind)

    def check_references(self, flows: Mapping[str, FlowEntry], given: Collection[str]) -> None:
        """Check the flow's references, examples, slots and tools.

        `given`: all flows' outputs, as ``output`` and ``flow.output``.
        """
        if self.entry.intent is None:
            self._add(("intent",), f"is missing; choose one of {', '.join(self.vocabulary.intents)}")
        else:
            self._known(("intent",), self.entry.intent, self.vocabulary.intents, "intent")
        for index, other in enumerate(self.entry.edge_flows):
            self._known(("edge_flows", index), other, flows, "flow")
        if self.entry.fallback == self.dact:
            self._add(("fallback",), "a flow cannot fall back to itself")
        elif self.entry.fallback is not None:
            self._known(("fallback",), self.entry.fallback, flows, "flow")
        if self.entry.changes is not None:
            self._check_changes(flows)
        for index, name in enumerate(self.entry.inputs):
            self._given(("inputs", index), name, given)
        changed = flows.get(self.entry.changes or "")
        meant = {*given, *(changed.slots if changed is not None else ())}
        for name, slot in self.entry.slots.items():
            for index, other in enumerate(slot.same_as):
                self._given(("slots", name, "same_as", index), other, meant)
        self._check_examples()
        self._check_slots()
        self._check_tools()
        if self.entry.mode is Mode.SKILL and self.dact not in self.vocabulary.skills:
            self._add(("mode",), f"mode skill needs skills/{self.dact}/SKILL.md")

    def _check_changes(self, flows: Collection[str]) -> None:
        """Check that `changes` names another flow, and that this flow or a tool of it asks for confirmation."""
        changes = self.entry.changes or ""
        tools = [self.vocabulary.tools.get(ToolId(use.tool_id or "")) for use in self.entry.tools]
        if changes == self.dact:
            self._add(("changes",), "should name another flow")
        elif self._known(("changes",), changes, flows, "flow") and not (
            self.entry.confirm or any(tool is not None and tool.confirm for tool in tools)
        ):
            self._add(("changes",), "needs `confirm: true`: a correction starts this flow")

    def _given(self, path: Path, name: str, given: Collection[str]) -> None:
        if name not in given:
            self._add(path, f"no flow outputs {name!r}{suggest(name, given)}")

    def _has_skill(self) -> bool:
        """Return whether a skill runs the flow. Skills can supply tool inputs that no slot provides."""
        named = self.dact in self.vocabulary.skills
        return self.entry.mode is Mode.SKILL or (self.entry.mode is Mode.AUTO and named)

    def _check_examples(self) -> None:
        for index, example in enumerate(self.entry.examples):
            for name in _PLACEHOLDER.findall(example):
                if name not in self.entry.slots:
                    message = f"{{{name}}} is not a slot in the flow{suggest(name, self.entry.slots)}"
                    self._add(("examples", index), message)

    def _check_slots(self) -> None:
        for name, slot in self.entry.slots.items():
            path: Path = ("slots", name)
            if slot.type is None:
                self._add(
                    (*path, "type"), f"is missing; choose one of {', '.join(self.vocabulary.slot_types)}"
                )
            else:
                self._known((*path, "type"), _canonical(slot.type), self.vocabulary.slot_types, "slot type")
            if slot.entity is not None:
                self._known((*path, "entity"), slot.entity, self.vocabulary.entities, "entity")
            elif slot.open:
                self._add((*path, "open"), "only a slot with an entity can be open")
            for index, other in enumerate(slot.depends_on):
                self._known((*path, "depends_on", index), other, self.entry.slots, "slot")
            if slot.not_before is not None:
                days = [
                    other for other, one in self.entry.slots.items() if other != name and one.type == "date"
                ]
                self._known((*path, "not_before"), slot.not_before, days, "other date slot")
                if slot.type != "date":
                    self._add((*path, "not_before"), "is allowed only for slots of type date")
            self._check_values(path, slot)
        self._check_groups()

    def _check_values(self, path: Path, slot: SlotEntry) -> None:
        if slot.type in _NEEDS_VALUES and not slot.values and slot.entity is None:
            self._add((*path, "values"), f"is missing: a slot of type {slot.type} must list its values")
        if slot.values:
            for value in slot.synonyms:
                if value not in slot.values:
                    self._add(
                        (*path, "synonyms", value), f"is not one of the values{suggest(value, slot.values)}"
                    )
        if slot.type == "category" and slot.values and slot.default not in (None, *slot.values):
            self._add((*path, "default"), f"is not one of the values: {slot.default!r}")
        if None not in (slot.minimum, slot.maximum) and slot.minimum > slot.maximum:  # type: ignore[operator]
            self._add((*path, "minimum"), f"is above maximum ({slot.minimum} > {slot.maximum})")
        if slot.pattern is not None and slot.type != "exact":
            self._add((*path, "pattern"), "a pattern is allowed only for slots of type exact")
        if _canonical(slot.type) not in _BOUNDED and (slot.minimum is not None or slot.maximum is not None):
            key = "minimum" if slot.minimum is not None else "maximum"
            self._add((*path, key), f"bounds are allowed only for slots of type {', '.join(_BOUNDED)}")

    def _check_groups(self) -> None:
        sizes = Counter(group for slot in self.entry.slots.values() if (group := _group(slot)))
        for name, slot in self.entry.slots.items():
            if slot.group is not None and slot.priority is not Priority.ELECTIVE:
                self._add(("slots", name, "group"), "only elective slots can have a group")
            elif (group := _group(slot)) and sizes[group] < 2:
                self._add(
                    ("slots", name, "group"), f"elective group {group!r} has one member; it needs two or more"
                )

    def _check_tools(self) -> None:
        results: set[str] = set()
        for index, use in enumerate(self.entry.tools):
            path: Path = ("tools", index)
            if use.tool_id is None:
                self._add((*path, "tool_id"), "is missing")
            elif self._known((*path, "tool_id"), use.tool_id, self.vocabulary.tools, "tool"):
                tool = self.vocabulary.tools[ToolId(use.tool_id)]
                self._check_mapping(path, use, tool, results)
                results |= set(input_names(tool.output_schema))

    def _check_mapping(self, path: Path, use: ToolUseEntry, tool: ToolSpec, results: set[str]) -> None:
        sources = {*self.entry.slots, *self.entry.inputs}
        inputs = input_names(tool.input_schema)
        for name, source in use.slot_mapping.items():
            place = (*path, "slot_mapping", name)
            if name not in inputs:
                self._add(place, f"{tool.tool_id} has no input {name!r}{suggest(name, inputs)}")
            elif source not in sources:
                self._add(place, f"unknown slot {source!r}{suggest(source, sources)}")
        available = {*use.slot_mapping, *sources, *results}
        missing = [name for name in required_names(tool.input_schema) if name not in available]
        if missing and not self._has_skill():
            names = ", ".join(repr(name) for name in missing)
            self._add(
                (*path, "slot_mapping"), f"nothing provides the required input {names} of {tool.tool_id}"
            )

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
