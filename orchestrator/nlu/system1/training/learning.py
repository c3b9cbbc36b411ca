"""Training from examples: the message classifier, and the assignment of values to slots."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.nlu.system1.classifier import (
    delexicalize,
    features_around,
    features_of,
    put_kinds,
)
from orchestrator.nlu.system1.extract.extractor import Extractor, fits, is_listed, kinds_by_slot
from orchestrator.nlu.system1.extract.found import NAME, Candidate, Reading
from orchestrator.nlu.system1.linear import LinearModel
from orchestrator.nlu.system1.training.examples import Example
from orchestrator.nlu.system1.training.fitting import fit
from orchestrator.nlu.text import clean, tokenize
from orchestrator.types import Dact

NO_SLOT = "-"
_TRAINING_DAY = date(2031, 3, 5)
_LABELS_STRENGTH = 10.0
_SLOTS_STRENGTH = 4.0


def learn_labels(examples: Iterable[Example], extractor: Extractor) -> LinearModel:
    """Train the message classifier from labeled examples. The result is deterministic."""
    labelled = [(tokenize(clean(one.text)), one.label) for one in examples if one.label is not None]
    rows = [features_of(delexicalize(said, extractor.find(said, _TRAINING_DAY))) for said, _ in labelled]
    return fit(rows, [label for _, label in labelled], _LABELS_STRENGTH, balanced=True)


def learn_slots(
    examples: Iterable[Example], extractor: Extractor, flows: Mapping[Dact, FlowSpec]
) -> LinearModel:
    """Train the slot assignment from spans in examples. Candidates outside all spans have no slot."""
    rows: list[dict[str, float]] = []
    labels: list[str] = []
    for example in examples:
        flow = flows.get(example.dact) if example.dact is not None else None
        if flow is None:
            continue
        kinds = kinds_by_slot(flow.slots)
        marked = _mark_candidates(example, extractor, kinds)
        tokens, places = put_kinds(tokenize(clean(example.text)).words, [one for one, _ in marked])
        for (candidate, label), place in zip(marked, places, strict=True):
            fitting = (fits(candidate, slot, kinds[name]) for name, slot in flow.slots.items())
            if label != NO_SLOT or any(fitting):
                rows.append(features_around(tokens, place, example.asked))
                labels.append(label)
    return fit(rows, labels, _SLOTS_STRENGTH, balanced=False)


def _mark_candidates(
    example: Example, extractor: Extractor, kinds: Mapping[str, Sequence[str]]
) -> list[tuple[Candidate, str]]:
    """Find the candidates in an example, each with its slot."""
    utterance = tokenize(clean(example.text))
    found = extractor.find(utterance, _TRAINING_DAY)
    if utterance.text != example.text:
        return [(one, NO_SLOT) for one in found]
    marked: list[tuple[Candidate, str]] = []
    for start, end, slot in example.spans:
        first, last = utterance.token_span(start, end)
        twin = next((one for one in found if (one.first, one.last) == (first, last)), None)
        if twin is None:
            text, taken = example.text[start:end], _kinds_of_span(kinds.get(slot, ()))
            twin = Candidate(first, last, taken[0], text, dict.fromkeys(taken, Reading(text)))
        marked.append((twin, slot))
    free = [one for one in found if all(one.last <= two.first or two.last <= one.first for two, _ in marked)]
    return sorted([*marked, *((one, NO_SLOT) for one in free)], key=lambda item: item[0].first)


def _kinds_of_span(taken: Sequence[str]) -> Sequence[str]:
    """Return kinds for a span that no extractor finds: unlisted kinds of its slot, or else a name."""
    return [kind for kind in taken if not is_listed(kind)] or taken or [NAME]
