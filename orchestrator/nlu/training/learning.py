"""Learning from examples: what a message wants (`classifier`), and which value fills which slot (`slot_assignment`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.nlu.classifier import delexicalize, features_of
from orchestrator.nlu.extract.extractor import Extractor, kinds_by_slot
from orchestrator.nlu.extract.found import NAME, Candidate
from orchestrator.nlu.linear import LinearModel, fit
from orchestrator.nlu.slot_assignment import NO_SLOT, context_features
from orchestrator.nlu.text import Utterance, clean, tokenize
from orchestrator.nlu.training.examples import Example

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
    return fit(rows, labels, _LABELS_STRENGTH)


def learn_slots(
    examples: Iterable[Example], extractor: Extractor, slots: Mapping[str, SlotSpec]
) -> LinearModel:
    """Learn from the spans of the examples; candidates outside of all spans teach "no slot"."""
    rows: list[dict[str, float]] = []
    labels: list[str] = []
    kinds = kinds_by_slot(slots)
    for example in examples:
        if not example.spans and example.dact is None:
            continue
        utterance, candidates, marked = _mark_candidates(example, extractor, kinds)
        for position in range(len(candidates)):
            rows.append(context_features(utterance, candidates, position, example.asked))
            labels.append(marked.get(position, NO_SLOT))
    return fit(rows, labels, _SLOTS_STRENGTH)


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
        kind = next(iter(kinds.get(slot, ())), NAME)
        marked.append((Candidate(first, last, kind, example.text[start:end]), slot))
    free: list[Candidate] = []
    for candidate in extractor.find(utterance, _TRAINING_DAY):
        twin = next((m for m, _ in marked if m.first < candidate.last and candidate.first < m.last), None)
        if twin is None:
            free.append(candidate)
        elif (twin.first, twin.last) == (candidate.first, candidate.last):
            twin.kind = candidate.kind
    candidates = sorted([*free, *(candidate for candidate, _ in marked)], key=lambda item: item.first)
    names = {id(candidate): slot for candidate, slot in marked}
    slots = {index: names[id(item)] for index, item in enumerate(candidates) if id(item) in names}
    return utterance, candidates, slots
