"""Finds where names stand by what was learnt of the words in and around them, listed or not, capitals or not.

It takes many messages of users, which a domain has not: its System 1 finds names by their capitals alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.nlu.classifier import LinearModel
from orchestrator.nlu.extract.extractor import accepts_names
from orchestrator.nlu.extract.found import NAME, Found, Reading
from orchestrator.nlu.linear import Examples, fit
from orchestrator.nlu.text import Utterance, clean, tokenize
from orchestrator.nlu.training.examples import Example
from orchestrator.types import Dact

OUTSIDE, BEGINS, INSIDE = "outside", "begins", "inside"
TAGS = (OUTSIDE, BEGINS, INSIDE)
_EDGE = "^"
_MOST_TOKENS = 120
"""Only this much of a long message is searched."""
_NEVER = -1e9
_STRENGTH = 1.0
_LEAST_SPANS = 30
"""Fewer names than these are too few to learn where others stand."""


def token_features(utterance: Utterance) -> list[list[str]]:
    """Describe each token: itself, how it is written, and its neighbours."""
    words = [_EDGE, _EDGE, *utterance.words, _EDGE, _EDGE]
    shapes = [_EDGE, *(_shape(utterance, place) for place in range(len(utterance.words))), _EDGE]
    described: list[list[str]] = []
    for place in range(len(utterance.words)):
        before, word, after = words[place + 1], words[place + 2], words[place + 3]
        left, shape, right = shapes[place], shapes[place + 1], shapes[place + 2]
        described.append(
            [
                f"w:{word}",
                f"s:{shape}",
                f"e:{word[-3:]}",
                f"l:{before}",
                f"l2:{words[place]} {before}",
                f"r:{after}",
                f"r2:{after} {words[place + 4]}",
                f"sl:{left} {shape}",
                f"sr:{shape} {right}",
                f"sll:{before} {shape}",
                f"srr:{shape} {after}",
            ]
        )
    return described


def after(tag: str) -> str:
    """Name the feature of the tag before."""
    return f"after:{tag}"


def _shape(utterance: Utterance, place: int) -> str:
    surface = utterance.text[utterance.starts[place] : utterance.ends[place]]
    if surface.isdigit():
        return "0"
    if not surface[0].isalnum():
        return surface[0]
    return "X" if surface.isupper() and len(surface) > 1 else "Xx" if surface[0].isupper() else "x"


class SpanTagger:
    """Finds the likeliest spans of names in a message."""

    def __init__(self, model: LinearModel) -> None:
        columns = [model.labels.index(tag) for tag in TAGS]
        self._places = model.places
        self._unseen = len(model.weights)
        """The place of what no example had."""
        self._weights = np.ascontiguousarray(np.vstack([model.weights[:, columns], np.zeros((1, len(TAGS)))]))
        self._bias = model.bias[columns]
        steps = self._weights[[self._places.get(after(tag), self._unseen) for tag in TAGS]]
        steps[TAGS.index(OUTSIDE), TAGS.index(INSIDE)] = _NEVER  # nothing goes on that has not begun
        self._steps_to = steps.T.tolist()

    def find(self, utterance: Utterance) -> list[Found]:
        """Find names, in the order of the text."""
        found: list[Found] = []
        first: int | None = None
        for place, tag in enumerate([*self._tag(token_features(utterance)[:_MOST_TOKENS]), OUTSIDE]):
            if first is not None and tag != INSIDE:
                start, end = utterance.starts[first], utterance.ends[place - 1]
                found.append(Found(start, end, NAME, Reading(utterance.text[start:end])))
                first = None
            first = place if tag == BEGINS else first
        return found

    def _tag(self, tokens: Sequence[Sequence[str]]) -> list[str]:
        """Choose the likeliest tags together (Viterbi)."""
        known, unseen = self._places, self._unseen
        places = [known.get(name, unseen) for features in tokens for name in features]
        shape = (len(tokens), -1, len(TAGS)) if tokens else (0, 1, len(TAGS))
        own = self._weights.take(places, axis=0).reshape(shape).sum(axis=1) + self._bias
        outside, begins, inside = 0.0, _NEVER, _NEVER
        origins: list[list[int]] = []
        for scores in own.tolist():
            best: list[float] = []
            origin: list[int] = []
            for score, (leave, again, on) in zip(scores, self._steps_to, strict=True):
                first, second, third = outside + leave, begins + again, inside + on
                if first >= second and first >= third:
                    best.append(first + score)
                    origin.append(0)
                elif second >= third:
                    best.append(second + score)
                    origin.append(1)
                else:
                    best.append(third + score)
                    origin.append(2)
            origins.append(origin)
            outside, begins, inside = best
        ends = (outside, begins, inside)
        tag = ends.index(max(ends))
        tags: list[str] = []
        for back in reversed(origins):
            tags.append(TAGS[tag])
            tag = back[tag]
        return tags[::-1]


def tags_of(length: int, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Write spans of tokens as a tag for each token."""
    tags = [OUTSIDE] * length
    for first, last in spans:
        tags[first:last] = [BEGINS, *[INSIDE] * (last - first - 1)]
    return tags


def previous(tags: Sequence[str]) -> list[str]:
    """Give the tag before each."""
    return [before for before, _ in pairwise([OUTSIDE, *tags])]


def learn_spans(examples: Iterable[Example], flows: Mapping[Dact, FlowSpec]) -> SpanTagger | None:
    """Learn from what users said where names stand; None where too few were said for it."""
    spans: dict[str, set[tuple[int, int]]] = {}
    for example in examples:
        flow = flows.get(example.dact) if example.dact is not None else None
        if example.said and flow is not None and clean(example.text) == example.text:
            named = {
                (s, e)
                for s, e, slot in example.spans
                if slot in flow.slots and accepts_names(flow.slots[slot])
            }
            spans.setdefault(example.text, set()).update(named)
    if sum(map(len, spans.values())) < _LEAST_SPANS:
        return None
    rows: list[dict[str, float]] = []
    labels: list[str] = []
    for text, places in spans.items():
        utterance = tokenize(text)
        tags = tags_of(len(utterance.words), [utterance.token_span(*place) for place in sorted(places)])
        for features, tag, before in zip(token_features(utterance), tags, previous(tags), strict=True):
            rows.append(dict.fromkeys([*features, after(before)], 1.0))
            labels.append(tag)
    return SpanTagger(fit(Examples(rows, labels), _STRENGTH))
