"""From one service of a schema, and the dialogues to learn from, to what System 1 is trained on.

Intents become flows, slots become typed slots, turns of users become examples. Annotations are
read here and nowhere else, and only those of the dialogues given to learn from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import combinations

from orchestrator.dialogue.specification import Family, FlowSpec, SlotSpec
from orchestrator.nlu.classifier import delexicalize, features_of
from orchestrator.nlu.extract.dates import find_dates
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.extract.found import Candidate
from orchestrator.nlu.extract.numbers import UNITS, find_money, find_numbers
from orchestrator.nlu.extract.times import find_times
from orchestrator.nlu.text import clean, fold, tokenize
from orchestrator.nlu.training.examples import Example, flow_label, kind_label
from orchestrator.types import Dact
from parley.evaluation.dialogues.dataset import Dialogue, Frame, SchemaSlot, Service, Turn

TODAY = date(2019, 3, 1)  # the day on which the dataset's conversations take place
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
_LEAST_COMMON = 2
_ALIKE = 0.25
"""The share of a slot's values that another one has from which both are taken for the same kind of thing."""


def pairs(dialogue: Dialogue) -> Iterator[tuple[Turn | None, Turn]]:
    """The user's turns of a dialogue, in order, each after the system's turn before it (None at the start)."""
    before: Turn | None = None
    for turn in dialogue.turns:
        if turn.user:
            yield before, turn
        else:
            before = turn


def known_values(service: Service, dialogues: Iterable[Dialogue]) -> dict[str, Counter[str]]:
    """The values of each open slot that the dialogues to learn from show, spoken or returned by the service."""
    values: dict[str, Counter[str]] = {name: Counter() for name in service.slots}
    for turn in (turn for dialogue in dialogues for turn in dialogue.turns):
        for frame in (frame for frame in turn.frames if frame.service == service.name):
            spoken = [(slot, turn.text[start:end]) for start, end, slot in frame.spans]
            returned = [
                cell for row in frame.results for cell in row.items() if len(cell[1]) <= _LONGEST_VALUE
            ]
            for slot, value in (*spoken, *returned):
                if slot in values:
                    values[slot][value] += 1
    return values


def compile_slot(slot: SchemaSlot, values: Counter[str]) -> SlotSpec:
    """A typed slot: categories as listed, others by their name, else by the form of their values."""
    if slot.categorical:
        return SlotSpec(slot.name, "category", values=slot.values, description=slot.description)
    by_name = next((kind for pattern, kind in _NAMED_TYPES if re.search(pattern, slot.name)), None)
    kind = by_name or type_by_values(values)
    if kind is not None:
        return SlotSpec(slot.name, kind, description=slot.description)
    known = {value: value for value in values if value.strip()}
    return SlotSpec(slot.name, direction(slot), description=slot.description, synonyms=known)


def direction(slot: SchemaSlot) -> str:
    """Find out from name and description if a slot is where something starts or where it ends."""
    words = f"{slot.name.replace('_', ' ')} {slot.description}".lower()
    if re.search(r"\b(from|origin|source|leaving|departure|starting)\b", words):
        return "source"
    return "target" if re.search(r"\b(to|destination|arrival|going)\b", words) else "base"


def type_by_values(values: Counter[str]) -> str | None:
    """The type that at least seven of ten known values have; None when there are too few."""
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


def dact_of(service: str, intent: str) -> Dact:
    """Name the flow of an intent, which is also the name of its tool."""
    return Dact(f"{snake(intent)}_{snake(service)}")


def part_words(name: str) -> str:
    """Write a name of words in capitals, such as FindTable, with blanks between them."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)


def snake(name: str) -> str:
    return part_words(name).replace(" ", "_").lower()


Values = dict[str, dict[str, Counter[str]]]
"""The values of open slots that were seen, by service and slot."""


def shared_values(services: Iterable[Service], dialogues: Sequence[Dialogue]) -> Values:
    """The values of all services' open slots; slots that often have the same values know each other's."""
    seen: Values = {service.name: known_values(service, dialogues) for service in services}
    keys = [(service, slot) for service, slots in seen.items() for slot in slots]
    folded = {(service, slot): {fold(value) for value in seen[service][slot]} for service, slot in keys}
    alike: Values = {
        name: {slot: Counter(one) for slot, one in slots.items()} for name, slots in seen.items()
    }
    for one, other in combinations(keys, 2):
        common = len(folded[one] & folded[other])
        if common >= _LEAST_COMMON and common >= _ALIKE * min(len(folded[one]), len(folded[other])):
            alike[one[0]][one[1]].update(seen[other[0]][other[1]])
            alike[other[0]][other[1]].update(seen[one[0]][one[1]])
    return alike


def compile_flows(service: Service, values: Mapping[str, Counter[str]]) -> list[FlowSpec]:
    """One flow per intent, each with all slots that the service tracks."""
    slots = {slot.name: compile_slot(slot, values[slot.name]) for slot in service.tracked}
    return [
        FlowSpec(
            dact_of(service.name, intent.name),
            f"{index:03X}",
            service.name,
            Family.TRANSFORM if intent.is_transactional else Family.READ,
            intent.description,
            (intent.description or intent.name, part_words(intent.name).lower()),
            slots,
        )
        for index, intent in enumerate(service.intents.values(), 1)
    ]


def spoken_flow(service: Service, values: Mapping[str, Counter[str]]) -> FlowSpec:
    """A flow with all slots of a service, also those that it only returns: what its assistant speaks of."""
    slots = {slot.name: compile_slot(slot, values[slot.name]) for slot in service.slots.values()}
    return FlowSpec(Dact(f"spoken_{snake(service.name)}"), "FFF", service.name, Family.READ, "", (), slots)


def user_examples(service: Service, dialogues: Iterable[Dialogue]) -> Iterator[Example]:
    """The user's turns as examples: what they want, where their values stand, what they answer."""
    dact = dact_of(service.name, next(iter(service.intents), ""))
    for before, turn in (pair for dialogue in dialogues for pair in pairs(dialogue)):
        frame = turn.frame(service.name)
        if frame is not None:
            spans = annotated_spans(service, frame, turn.text)
            yield Example(
                turn.text, _label_of(service, frame), spans, _asked_slot(before, service), dact, said=True
            )


def _label_of(service: Service, frame: Frame) -> str | None:
    """Label a user's frame as the classifier should."""
    for act in frame.acts:
        if act.name == "INFORM_INTENT" and act.values:
            return flow_label(dact_of(service.name, act.values[0]))
    acts = {act.name for act in frame.acts}
    return next((kind_label(kind) for names, kind in _KIND_OF_ACTS if names & acts), None)


def annotated_spans(service: Service, frame: Frame, text: str) -> tuple[tuple[int, int, str], ...]:
    """Where values of the service's slots stand; those of categorical slots the dataset does not mark."""
    spans = [span for span in frame.spans if span[2] in service.slots]
    for act in frame.acts:
        slot = service.slots.get(act.slot)
        if slot is None or not slot.categorical or not act.values:
            continue
        value = act.values[0]
        for name in (value, *([_NUMBER_WORDS[value]] if value in _NUMBER_WORDS else [])):
            found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
            if found is not None:
                spans.append((found.start(), found.end(), act.slot))
                break
    return tuple(spans)


def _asked_slot(before: Turn | None, service: Service) -> str | None:
    """The slot that the system's turn asks for, as annotated; for learning only."""
    frame = before.frame(service.name) if before else None
    acts = frame.acts if frame else ()
    return next((act.slot for act in acts if act.name == "REQUEST" and act.slot in service.slots), None)


@dataclass(frozen=True, slots=True)
class Words:
    """Users' messages as words, by one extractor; each is looked at once."""

    extractor: Extractor
    _known: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def tokens(self, text: str) -> list[str]:
        """Cut a message into words, with its values replaced by their kinds."""
        if text not in self._known:
            utterance = tokenize(clean(text))
            candidates = self.extractor.find(utterance, TODAY)
            self._known[text] = delexicalize(utterance, [_without_lists(one) for one in candidates])
        return self._known[text]

    def features(self, text: str) -> dict[str, float]:
        return features_of(self.tokens(text))


def _without_lists(candidate: Candidate) -> Candidate:
    """Name a find that several lists hold just a value: so many services have lists that hardly two finds are alike."""
    form, several, _names = candidate.kind.partition("|")
    return replace(candidate, kind=form.partition(":")[0]) if several else candidate
