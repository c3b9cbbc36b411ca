"""Validate interpretations from all sources (NL-7).

Unknown flows and slots are dropped, flows are sorted by score and limited in number, values are validated by slot
type, and entity names are corrected.
"""

from __future__ import annotations

import math
from collections.abc import Collection, KeysView, Mapping
from dataclasses import replace
from datetime import date
from itertools import combinations

from orchestrator.dialogue.slots import Rejected, SlotTypes
from orchestrator.dialogue.specification import Family, FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import (
    Digression,
    FlowScore,
    Mention,
    MessageKind,
    Source,
    Understanding,
)
from orchestrator.nlu.answer_schemas import MOST_FLOWS
from orchestrator.nlu.grounding import Grounding
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.answers import as_unknown
from orchestrator.nlu.system1.extract.dates import find_dates
from orchestrator.nlu.system1.extract.extractor import Extractor, kinds_of, value_kind
from orchestrator.nlu.system1.extract.found import DATE, reading_of
from orchestrator.nlu.system1.extract.gazetteer import choose_nearest, entity_kind
from orchestrator.nlu.system1.slot_assignment import read_as
from orchestrator.nlu.text import clean, key_of, tokenize
from orchestrator.types import Dact, Json

_OF_ACTIVE = frozenset(
    {MessageKind.SLOT_VALUE, MessageKind.CONFIRMATION, MessageKind.DENIAL, MessageKind.UNKNOWN}
)
_OF_NO_VALUES = frozenset(
    {MessageKind.CANCELLATION, MessageKind.CHITCHAT, MessageKind.CONFIRMATION, MessageKind.DENIAL}
)
"""Kinds that usually have no values. Values for an earlier lookup indicate a correction instead."""
_OF_NO_TASK = frozenset({MessageKind.DIGRESSION, MessageKind.UNKNOWN, MessageKind.RESUMPTION})


def requestable_flows(flows: Mapping[Dact, FlowSpec], commands: Collection[str] = ()) -> list[FlowSpec]:
    """Return the flows that a message can request.

    Omit flows without examples that only a plan, an external event or one of `commands` starts.
    """
    others = {step.dact for flow in flows.values() for step in flow.recipe} | set(commands)
    return [flow for flow in flows.values() if flow.examples or not (flow.dact in others or flow.events)]


class Validation:
    """A validator for interpretations in a domain. `commands`: the flows that commands start."""

    def __init__(
        self,
        flows: Mapping[Dact, FlowSpec],
        types: SlotTypes,
        extractor: Extractor,
        commands: Collection[str] = (),
    ) -> None:
        self._flows = flows
        self._types = types
        self._extractor = extractor
        self._requestable = {*(flow.dact for flow in requestable_flows(flows)), *map(Dact, commands)}
        self._of_events = {flow.dact for flow in flows.values() if flow.events}

    def validate(self, understanding: Understanding, context: NluContext) -> tuple[Understanding, list[str]]:
        """Return the interpretation fitted to the domain, and descriptions of what was dropped or corrected."""
        problems: list[str] = []
        allowed = self._requestable | self._of_events if understanding.is_click else self._requestable
        flows = self._check_flows(understanding.flows, allowed, problems)
        kind = _reconsider(understanding, flows, self._flows, context)
        if kind is MessageKind.TASK and not flows:
            problems.append("The task has no known flow.")
            kind = MessageKind.UNKNOWN
        spec = self._flow_of(kind, flows, understanding, context)
        slots = self._check_slots(understanding.slots, spec, context, problems)
        if understanding.source is Source.SYSTEM2 and spec is not None:
            grounding = Grounding(self._extractor, context, understanding.text)
            slots = _keep_founded(slots, spec, grounding, problems)
            slots = self._exchange(understanding.slots, slots, spec, context, grounding)
            slots = self._read_again(slots, spec, context, grounding)
            refers = any(grounding.refers(one.value, spec.slots.get(name)) for name, one in slots.items())
            understanding = replace(understanding, refers=refers)
            asked_for = slots.keys() if kind is MessageKind.TASK else context.values.keys()
            slots = {name: one for name, one in slots.items() if name in asked_for or not one.is_open}
            if kind in _OF_ACTIVE and any(mention.is_open for mention in slots.values()):
                kind = (
                    MessageKind.CORRECTION
                )  # a slot without a value means that the user rejects the earlier value
        intent = spec.intent if spec is not None and kind is MessageKind.TASK else understanding.intent
        given = (understanding.kind, understanding.flows, understanding.slots, understanding.intent)
        checked = understanding
        if given != (kind, flows, slots, intent):
            checked = replace(understanding, kind=kind, flows=flows, slots=slots, intent=intent)
        if kind is MessageKind.CORRECTION and spec is not None and spec.dact in {flow.dact for flow in flows}:
            checked = replace(checked, target=spec.dact)
        return checked, problems

    def ground_values(
        self, slots: Mapping[str, Mention], spec: FlowSpec, context: NluContext
    ) -> tuple[dict[str, Mention], list[str]]:
        """Validate and correct values for a flow's slots. Return them, with invalid ones marked, and the problems."""
        problems: list[str] = []
        return self._check_slots(slots, spec, context, problems), problems

    def _check_flows(
        self, flows: tuple[FlowScore, ...], allowed: Collection[Dact], problems: list[str]
    ) -> tuple[FlowScore, ...]:
        best: dict[Dact, float] = {}
        for flow in flows:
            if flow.dact not in self._flows:
                problems.append(f"Unknown flow {flow.dact[:60]!r}.")
            elif flow.dact not in allowed:
                problems.append(f"A message can't request {flow.dact!r}.")
            elif not math.isfinite(flow.score):
                problems.append(f"The score of {flow.dact!r} is not a number.")
            else:
                best[flow.dact] = max(best.get(flow.dact, 0.0), min(1.0, max(0.0, flow.score)))
        ordered = sorted(best.items(), key=lambda item: (-item[1], item[0]))
        return tuple(FlowScore(dact, score) for dact, score in ordered[:MOST_FLOWS])

    def _flow_of(
        self,
        kind: MessageKind,
        flows: tuple[FlowScore, ...],
        understanding: Understanding,
        context: NluContext,
    ) -> FlowSpec | None:
        """Return the flow whose slots an interpretation fills, or None if there is no such flow."""
        if kind is MessageKind.TASK:
            return self._flows[flows[0].dact]
        if kind is MessageKind.CANCELLATION and flows and flows[0].score == 1.0:
            return self._flows[flows[0].dact]  # the flow that replaces the canceled flow (FS-12)
        if kind is MessageKind.PLAN_CHANGE and flows:
            return self._flows[flows[0].dact]  # the flow that becomes a step of the plan (PL-8)
        if kind is MessageKind.CORRECTION:
            return _find_corrected(flows, understanding.target, context)
        return context.active if kind in _OF_ACTIVE else None

    def _check_slots(
        self, slots: Mapping[str, Mention], spec: FlowSpec | None, context: NluContext, problems: list[str]
    ) -> dict[str, Mention]:
        checked: dict[str, Mention] = {}
        for name, mention in slots.items():
            slot = spec.slots.get(name) if spec is not None else None
            if slot is None and spec is not None and name in spec.inputs:
                checked[name] = mention
                continue
            if slot is None:
                problems.append(f"The flow has no slot {name[:60]!r}.")
                continue
            judged = self._judge(mention, slot, context)
            if judged.invalid and slot.name != context.question.slot and self._names_entity(judged, slot):
                continue  # the Berlin of “my Berlin booking” is a city, not a mistyped reference
            if judged.invalid and not mention.invalid:
                problems.append(f"{name}: {judged.invalid}")
            checked[name] = judged
        return checked

    def _names_entity(self, mention: Mention, slot: SlotSpec) -> bool:
        """Return whether the mention names a known entity but the slot doesn't accept entities."""
        return slot.entity is None and self._extractor.gazetteer.is_main_name(key_of(mention.text))

    def _exchange(
        self,
        given: Mapping[str, Mention],
        slots: Mapping[str, Mention],
        spec: FlowSpec,
        context: NluContext,
        grounding: Grounding,
    ) -> dict[str, Mention]:
        """Swap two values if each is valid only in the other slot. `given`: the values before validation."""
        changed = dict(slots)
        wrong = [name for name, one in slots.items() if name in spec.slots and one.value is None]
        for one, other in combinations(wrong, 2):
            turned = {one: given[other], other: given[one]}
            judged = {
                name: self._judge(mention, spec.slots[name], context) for name, mention in turned.items()
            }
            if all(mention.value is not None for mention in judged.values()) and judged == _keep_founded(
                judged, spec, grounding, []
            ):
                changed |= judged
        return changed

    def _read_again(
        self, slots: Mapping[str, Mention], spec: FlowSpec, context: NluContext, grounding: Grounding
    ) -> dict[str, Mention]:
        """Replace a model's wrong value with the only value in the message that fits the slot."""
        wrong = {name for name, one in slots.items() if name in spec.slots and (one.is_open or one.invalid)}
        taken = [one.value for one in slots.values() if one.value is not None]
        read = {name: grounding.read_again(spec.slots[name], spec, wrong, taken) for name in wrong}
        found = {name: self._judge(one, spec.slots[name], context) for name, one in read.items() if one}
        return {**slots, **{name: one for name, one in found.items() if one.value is not None}}

    def _judge(self, mention: Mention, slot: SlotSpec, context: NluContext) -> Mention:
        if mention.value is None or mention.invalid is not None:
            return mention
        value: Json = mention.value
        if slot.entity is not None and type(value) is not list:
            return self._find_own(mention, slot, context) or self.ground(mention, slot)
        found = None
        if isinstance(value, str) and DATE in kinds_of(slot):
            found = (
                None
                if _is_day(value)
                else next(iter(find_dates(tokenize(clean(value)), context.today)), None)
            )
            value = (found.reading.value if found is not None else None) or value
        elif isinstance(value, str):
            known = self._extractor.gazetteer.lookup(value_kind(slot.name), value)
            # Use the slot's spelling for values from models and forms.
            value = known[0] if len(known) == 1 else value
        judged = self._types.validate(value, slot)
        if isinstance(judged, Rejected):
            why = found.reading.invalid if found is not None else None
            return Mention(None, mention.text, invalid=why or judged.why)
        return mention if judged.value is mention.value else replace(mention, value=judged.value)

    def _find_own(self, mention: Mention, slot: SlotSpec, context: NluContext) -> Mention | None:
        """Return the session's own value with this name, or None. A misspelled name must not be a known entity."""
        own = context.own.get(slot.entity or "")
        if not own:
            return None
        said = str(mention.value)
        keys = {key_of(name.replace("_", " ")): name for name in own}
        found = keys.get(key_of(said.replace("_", " ")))
        kind = entity_kind(slot.entity or "")
        gazetteer = self._extractor.gazetteer
        if found is None and not (gazetteer.is_value(kind, mention.value) or gazetteer.lookup(kind, said)):
            nearest = choose_nearest(key_of(said), keys)
            found = None if nearest is None else keys[nearest]
        return None if found is None else Mention(found, mention.text or said)

    def ground(self, mention: Mention, slot: SlotSpec) -> Mention:
        """Return the known entity for a value, ignoring case and spelling mistakes.

        Several matches become candidates. Without a match, the value is invalid, unless the slot is open.
        """
        gazetteer, entity = self._extractor.gazetteer, slot.entity or ""
        if gazetteer.is_value(entity_kind(entity), mention.value):
            return mention
        said, kind = str(mention.value), entity_kind(entity)
        values = gazetteer.lookup(kind, said)
        if not values and slot.open:
            return mention
        reading = reading_of(values) if values else gazetteer.repair(kind, said)
        if reading is not None:
            return read_as(reading, mention.text or said)
        return as_unknown(said, mention.text or said, slot)


def _keep_founded(
    slots: Mapping[str, Mention], spec: FlowSpec, grounding: Grounding, problems: list[str]
) -> dict[str, Mention]:
    """Clear values that only a model mentions or that the conversation contradicts, and keep all others."""
    kept: dict[str, Mention] = {}
    for name, mention in slots.items():
        slot = spec.slots.get(name)
        if slot is None or mention.value is None:
            kept[name] = mention
        elif slot.grounded and not grounding.is_founded(mention.value, slot, spec):
            problems.append(f"{name}: {str(mention.value)[:60]!r} was neither said nor displayed.")
            kept[name] = Mention(None, mention.text)
        elif grounding.is_contradicted(mention.value, slot, spec):
            problems.append(f"{name}: the message contradicts {str(mention.value)[:60]!r}.")
            kept[name] = Mention(None, mention.text)
        else:
            kept[name] = mention
    return kept


def _reconsider(
    understanding: Understanding,
    flows: tuple[FlowScore, ...],
    known: Mapping[Dact, FlowSpec],
    context: NluContext,
) -> MessageKind:
    """Return the kind that the values indicate: a message with a day is not just a greeting."""
    kind, named = understanding.kind, understanding.slots.keys()
    if understanding.digression is Digression.PAGE and context.table is None:
        return MessageKind.UNKNOWN  # no table was displayed
    if not named:
        return kind
    past = {done.spec.dact for done in context.completed if done.spec.family is Family.READ}
    is_past = bool(flows) and flows[0].dact in past
    is_free = context.active is None or named.isdisjoint(context.active.slots)
    if kind is MessageKind.SLOT_VALUE and is_past and is_free:
        return MessageKind.CORRECTION  # repeat the lookup with these values
    if understanding.source is not Source.SYSTEM2:
        return kind
    if flows and kind not in _OF_NO_TASK and _begins(known[flows[0].dact], named, context):
        return MessageKind.TASK
    asked = known[flows[0].dact].slots if flows else ()
    is_foreign = kind is MessageKind.TASK and named.isdisjoint(asked)
    if context.active is not None:
        is_own = named <= context.active.slots.keys()
        is_value = is_foreign or kind is MessageKind.CHITCHAT
        return MessageKind.SLOT_VALUE if is_own and is_value else kind
    last = next((past.spec for past in context.completed), None)
    is_again = last is not None and last.family is Family.READ and named <= last.slots.keys()
    is_else = is_foreign or kind in _OF_NO_VALUES
    return MessageKind.CORRECTION if is_again and is_else else kind


def _begins(spec: FlowSpec, named: KeysView[str], context: NluContext) -> bool:
    """Return whether a message starts another task, regardless of the kind from a model.

    The message has values for this task, and the running or last task has no slots for them.
    """
    at_hand = {flow.dact for flow in context.tasks} | {past.spec.dact for past in context.completed}
    last = context.active or next((past.spec for past in context.completed), None)
    fits = last is not None and named <= last.slots.keys()
    return spec.dact not in at_hand and not fits and not named.isdisjoint(spec.slots)


def _is_day(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _find_corrected(flows: tuple[FlowScore, ...], target: str | None, context: NluContext) -> FlowSpec | None:
    """Return the task to correct: the named task, the running task, the last task, or None.

    `flows` and `target` can name the task.
    """
    tasks = [flow.spec for flow in reversed(context.tasks)]
    known = [*tasks, *(past.spec for past in context.completed)]
    names = [target, *(flow.dact for flow in flows)]
    named = next((spec for name in names for spec in known if spec.dact == name), None)
    return named or context.active or next(iter(known), None)
