"""From one service of a schema, and the dialogues to learn from, to what System 1 is trained on.

Intents become flows, slots become typed slots, turns of users become examples. Annotations are
read here and nowhere else, and only those of the dialogues given to learn from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from orchestrator.dialogue.specification import Family, FlowSpec, SlotSpec
from orchestrator.nlu.examples import Example, flow_label, kind_label
from orchestrator.nlu.extract.dates import find_dates
from orchestrator.nlu.extract.numbers import UNITS, find_money, find_numbers
from orchestrator.nlu.extract.times import find_times
from orchestrator.nlu.text import clean, tokenize
from orchestrator.types import Dact
from parley.evaluation.dataset import Dialogue, Frame, SchemaSlot, Service, Turn

TODAY = date(2019, 3, 1)
"""The day on which the dataset's conversations take place."""
_NAMED_TYPES: tuple[tuple[str, str], ...] = (
    (r"(^|_)(date|day)$", "date"),
    (r"(^|_)time$", "time"),
    (r"(^|_)(price|fare|rent|amount|cost|balance)(_|$)", "money"),
    (r"^(number|num)_|_(count|length|days|nights)$|^(number|count)$", "number"),
)
_KIND_OF_ACTS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"NEGATE", "NEGATE_INTENT", "REQUEST_ALTS"}), "denial"),
    (frozenset({"AFFIRM", "AFFIRM_INTENT", "SELECT"}), "confirmation"),
    (frozenset({"REQUEST"}), "question"),
    (frozenset({"INFORM"}), "slot_value"),
    (frozenset({"THANK_YOU", "GOODBYE"}), "chitchat"),
)
_NUMBER_WORDS = {str(value): word for word, value in UNITS.items()}
_LONGEST_VALUE = 80


@dataclass(frozen=True, slots=True)
class Pair:
    """A user's turn with the system's turn before it (None at the start)."""

    before: Turn | None
    turn: Turn


def pairs(dialogue: Dialogue) -> Iterator[Pair]:
    """The user's turns of a dialogue, in order."""
    before: Turn | None = None
    for turn in dialogue.turns:
        if turn.user:
            yield Pair(before, turn)
        else:
            before = turn


def known_values(service: Service, dialogues: Iterable[Dialogue]) -> dict[str, Counter[str]]:
    """The values of each open slot that the dialogues to learn from show, spoken or returned by the service."""
    values: dict[str, Counter[str]] = {name: Counter() for name in service.slots}
    for dialogue in dialogues:
        for turn in dialogue.turns:
            for frame in turn.frames:
                if frame.service == service.name:
                    _note_values(frame, turn, values)
    return values


def _note_values(frame: Frame, turn: Turn, values: dict[str, Counter[str]]) -> None:
    for start, end, slot in frame.spans:
        if slot in values:
            values[slot][turn.text[start:end]] += 1
    for row in frame.results:
        for slot, value in row.items():
            if slot in values and len(value) <= _LONGEST_VALUE:
                values[slot][value] += 1


def compile_slot(slot: SchemaSlot, values: Counter[str]) -> SlotSpec:
    """A typed slot: categories as listed, others by their name, else by what their values look like."""
    if slot.categorical:
        return SlotSpec(slot.name, "category", values=slot.values, description=slot.description)
    kind = type_by_name(slot) or type_by_values(values)
    if kind is not None:
        return SlotSpec(slot.name, kind, description=slot.description)
    known = {value: value for value in values if value.strip()}
    return SlotSpec(slot.name, direction(slot), description=slot.description, synonyms=known)


def type_by_name(slot: SchemaSlot) -> str | None:
    return next((kind for pattern, kind in _NAMED_TYPES if re.search(pattern, slot.name)), None)


def direction(slot: SchemaSlot) -> str:
    """Whether a slot is where something starts or where it ends, by its name and description."""
    words = f"{slot.name.replace('_', ' ')} {slot.description}".lower()
    if re.search(r"\b(from|origin|source|leaving|departure|starting)\b", words):
        return "source"
    return "target" if re.search(r"\b(to|destination|arrival|going)\b", words) else "base"


def type_by_values(values: Counter[str]) -> str | None:
    """The type that at least seven of ten known values have; None when there are too few to tell."""
    if len(values) < 4:
        return None
    counts: Counter[str] = Counter()
    for value in values:
        utterance = tokenize(clean(value))
        for kind, found in (
            ("date", find_dates(utterance, TODAY)),
            ("time", find_times(utterance)),
            ("money", find_money(utterance)),
            ("number", find_numbers(utterance)),
        ):
            if any(item.end - item.start >= 0.8 * len(utterance.text) for item in found):
                counts[kind] += 1
                break
    best = counts.most_common(1)
    return best[0][0] if best and best[0][1] >= 0.7 * len(values) else None


def compile_flows(service: Service, values: dict[str, Counter[str]]) -> list[FlowSpec]:
    """One flow per intent, each with all slots that the service tracks."""
    slots = {slot.name: compile_slot(slot, values[slot.name]) for slot in service.tracked}
    return [
        FlowSpec(
            Dact(intent.name),
            f"{index:03X}",
            service.name,
            Family.READ,
            intent.description,
            (intent.description or intent.name, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", intent.name).lower()),
            slots,
        )
        for index, intent in enumerate(service.intents.values(), 1)
    ]


def user_examples(service: Service, dialogues: Iterable[Dialogue]) -> Iterator[Example]:
    """The user's turns as examples: what they want, where their values stand, what they answer."""
    for dialogue in dialogues:
        for pair in pairs(dialogue):
            frame = pair.turn.frame(service.name)
            if frame is not None:
                yield _example(service, frame, pair)


def foreign_examples(service: Service, dialogues: Iterable[Dialogue]) -> Iterator[Example]:
    """Turns to other services, for the kinds of message alone: a yes is a yes everywhere."""
    for dialogue in dialogues:
        for pair in pairs(dialogue):
            if pair.turn.frame(service.name) is None and pair.turn.frames:
                label = label_of(pair.turn.frames[0])
                if label is not None and label.startswith("kind:") and label != "kind:slot_value":
                    yield Example(clean(pair.turn.text), label)


def _example(service: Service, frame: Frame, pair: Pair) -> Example:
    asked = asked_slot(pair.before, service)
    spans = list(frame.spans) + category_spans(service, frame.acts, pair.turn.text)
    dact = Dact(next(iter(service.intents), ""))
    spans = [span for span in spans if span[2] in service.slots]
    return Example(pair.turn.text, label_of(frame), tuple(spans), asked, dact=dact)


def label_of(frame: Frame) -> str | None:
    """What the classifier should say of a user's frame."""
    acts = {act.name for act in frame.acts}
    for act in frame.acts:
        if act.name == "INFORM_INTENT" and act.values:
            return flow_label(act.values[0])
    return next((kind_label(kind) for names, kind in _KIND_OF_ACTS if names & acts), None)


def asked_slot(before: Turn | None, service: Service) -> str | None:
    """The slot that the system's turn asks for, as annotated; for learning only."""
    frame = before.frame(service.name) if before else None
    if frame is None:
        return None
    return next((act.slot for act in frame.acts if act.name == "REQUEST" and act.slot in service.slots), None)


def category_spans(service: Service, acts: Sequence, text: str) -> list[tuple[int, int, str]]:
    """Where the values of categorical slots stand, which the dataset does not mark."""
    spans: list[tuple[int, int, str]] = []
    for act in acts:
        slot = service.slots.get(act.slot)
        if slot is None or not slot.categorical or not act.values:
            continue
        names = [act.values[0], *((_NUMBER_WORDS[act.values[0]],) if act.values[0] in _NUMBER_WORDS else ())]
        for name in names:
            found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
            if found is not None:
                spans.append((found.start(), found.end(), act.slot))
                break
    return spans
