"""Training from examples: the classifier of messages, and the assignment of values to slots."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.nlu.system1.classifier import LinearModel, context_features, delexicalize, features_of
from orchestrator.nlu.system1.extract.extractor import (
    Extractor,
    is_listed,
    kinds_by_slot,
    kinds_of,
    value_kind,
)
from orchestrator.nlu.system1.extract.found import NAME, NUMBER, Candidate, Reading
from orchestrator.nlu.system1.linear import Examples, fit
from orchestrator.nlu.system1.slot_assignment import NO_SLOT, first_score, fits
from orchestrator.nlu.system1.training.examples import Example
from orchestrator.nlu.text import Utterance, clean, tokenize
from orchestrator.types import Dact

_TRAINING_DAY = date(2031, 3, 5)
_LABELS_STRENGTH = 10.0
_SLOTS_STRENGTH = 4.0


def learn_labels(examples: Iterable[Example], extractor: Extractor) -> LinearModel:
    """Learn from examples that have a label; the same examples give the same model."""
    rows: list[dict[str, float]] = []
    labels: list[str] = []
    for example in examples:
        if example.label is not None:
            utterance = tokenize(clean(example.text))
            rows.append(features_of(delexicalize(utterance, extractor.find(utterance, _TRAINING_DAY))))
            labels.append(example.label)
    return fit(Examples(rows, labels, balanced=True), _LABELS_STRENGTH)


def learn_slots(
    examples: Iterable[Example], extractor: Extractor, flows: Mapping[Dact, FlowSpec]
) -> LinearModel:
    """Train the slot model on the examples' spans; candidates outside of all spans teach "no slot".

    A value chooses between the slots of its flow that it fits, and a number between all numeric ones: "two
    bags" are not passengers, even if a flow takes no bags. Slots with a word in common learn from each other.
    Generated examples for a slot count less the more user examples there are.
    """
    examples = list(examples)
    said = Counter(slot for example in examples if example.said for _, _, slot in example.spans)
    numbers = {
        name for flow in flows.values() for name, slot in flow.slots.items() if NUMBER in kinds_of(slot)
    }
    importance: list[float] = []
    rows: list[dict[str, float]] = []
    labels: list[str] = []
    allowed: list[dict[str, float]] = []
    for example in examples:
        flow = flows.get(example.dact) if example.dact is not None else None
        if flow is None:
            continue
        kinds = kinds_by_slot(flow.slots)
        utterance, candidates, marked = _mark_candidates(example, extractor, kinds)
        for position, candidate in enumerate(candidates):
            label = marked.get(position, NO_SLOT)
            possible = {name for name, slot in flow.slots.items() if fits(candidate, slot, kinds[name])}
            if possible or label != NO_SLOT:
                rows.append(context_features(utterance, candidates, position, example.asked))
                labels.append(label)
                if NUMBER in candidate.readings:
                    possible |= numbers
                begin = {
                    name: first_score(candidate, value_kind(name), asked=name == example.asked)
                    for name in {*possible, label}
                }
                importance.append(1.0 if example.said else 1.0 / (1.0 + said[label]))
                allowed.append(begin | {NO_SLOT: 0.0})
    names = {name for flow in flows.values() for name in flow.slots}
    parts = {name: {"any", *(f"word:{word}" for word in name.split("_"))} for name in names}
    return fit(Examples(rows, labels, allowed, parts, importance), _SLOTS_STRENGTH)


def _mark_candidates(
    example: Example, extractor: Extractor, kinds: Mapping[str, tuple[str, ...]]
) -> tuple[Utterance, list[Candidate], dict[int, str]]:
    """Find the candidates of an example, and which of them are the example's spans (position → slot)."""
    utterance = tokenize(clean(example.text))
    if utterance.text != example.text:
        return utterance, extractor.find(utterance, _TRAINING_DAY), {}
    marked: list[tuple[Candidate, str]] = []
    for start, end, slot in example.spans:
        first, last = utterance.token_span(start, end)
        text = example.text[start:end]
        taken = _kinds_of_span(kinds.get(slot, ()), said=example.said)
        marked.append((Candidate(first, last, taken[0], text, dict.fromkeys(taken, Reading(text))), slot))
    free: list[Candidate] = []
    for candidate in extractor.find(utterance, _TRAINING_DAY):
        twin = next((m for m, _ in marked if m.first < candidate.last and candidate.first < m.last), None)
        if twin is None:
            free.append(candidate)
        elif (twin.first, twin.last) == (candidate.first, candidate.last):
            twin.kind, twin.readings = candidate.kind, candidate.readings
    candidates = sorted([*free, *(candidate for candidate, _ in marked)], key=lambda item: item.first)
    names = {id(candidate): slot for candidate, slot in marked}
    slots = {index: names[id(item)] for index, item in enumerate(candidates) if id(item) in names}
    return utterance, candidates, slots


def _kinds_of_span(taken: Sequence[str], *, said: bool) -> Sequence[str]:
    """Return the kinds of a span that no extractor finds, most specific first: all that its slot takes.

    It isn't one of the slot's known values if it may be another. What users said is a name if the slot takes
    names.
    """
    unknown = [kind for kind in taken if not is_listed(kind)] or taken
    return [NAME] if not unknown or (said and NAME in unknown) else unknown
