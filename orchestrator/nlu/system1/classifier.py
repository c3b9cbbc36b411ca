"""The trained classifier of System 1: what a message wants, over flows, kinds of message and answers.

A linear model is applied as a product of the rows of weights that a message's features have. Values do not
decide: the extractors' finds stand in the text as their kinds. The context (the open question, the stack) weighs
afterwards: its weights are prior odds, as data.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from typing import Any

import numpy as np

from orchestrator.dialogue.understanding import FlowScore
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.found import NAME, Candidate
from orchestrator.nlu.text import Utterance
from orchestrator.types import Dact

GRAM = 4
END = "$"
PUNCTUATION = frozenset(".,;:!?'’\"“”()-–—/&%+#€$£")
"""Signs of ordinary writing; every other sign counts as a word."""
GRAM_WEIGHT = 0.35
_REACH = 4
"""Tokens on each side that influence a candidate."""
MOST_TOKENS = 120
"""Only this much of a long message is classified."""
_UNKNOWN_WORDS_KEPT = 4096

Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A linear model.

    `weights`: a row for each feature, a column for each label. `bias`: by label. `sharpness`: factor of the
    scores.
    """

    labels: tuple[str, ...]
    places: Mapping[str, int]
    weights: Any
    bias: Any
    sharpness: float = 1.0


def add_up(model: LinearModel, features: Features, onto: Any = None) -> Any:
    """Add up the weights of the features, in label order, starting with `onto` or the bias."""
    places: list[int] = []
    weights: list[float] = []
    for name, weight in features.items():
        place = model.places.get(name)
        if place is not None:
            places.append(place)
            weights.append(weight)
    total = model.bias if onto is None else onto
    return np.array(weights) @ model.weights.take(places, axis=0) + total if places else total


def pick_best(model: LinearModel, scores: Mapping[str, float]) -> tuple[str, float]:
    """Choose the best of some labels, by their scores, and say how likely it is among them."""
    best = max(scores, key=scores.__getitem__)
    highest = scores[best]
    return best, 1.0 / sum(math.exp((score - highest) * model.sharpness) for score in scores.values())


def put_kinds(words: Sequence[str], candidates: Sequence[Candidate]) -> tuple[list[str], list[int]]:
    """Replace the words of each candidate by its kind, as a token; also return the positions."""
    tokens: list[str] = []
    places: list[int] = []
    position = 0
    for candidate in candidates:
        tokens += words[position : candidate.first]
        places.append(len(tokens))
        tokens.append(f"<{candidate.kind}>")
        position = candidate.last
    return [*tokens, *words[position:]], places


def delexicalize(utterance: Utterance, candidates: Sequence[Candidate]) -> list[str]:
    """Replace every candidate by its kind and numbers by ``#``, and mark the edges."""
    tokens = ["^", *put_kinds(utterance.words, candidates)[0]]
    if len(tokens) > MOST_TOKENS:
        del tokens[MOST_TOKENS:]
    tokens = ["#" if token.isdigit() else token for token in tokens]
    tokens.append(END)
    return tokens


def grams(word: str) -> list[str]:
    """Cut a word with its edges into character n-grams."""
    if len(word) < GRAM or word[0] == "<" or len(word) > 40:
        return []
    edged = f"_{word}_"
    return [f"g:{edged[index : index + GRAM]}" for index in range(len(edged) - GRAM + 1)]


def features_of(tokens: Sequence[str]) -> dict[str, float]:
    """Count words, pairs of words and character n-grams, scaled so that long messages do not outweigh short ones."""
    found = [(f"w:{token}", 1.0) for token in tokens[1:-1]]
    found += [(f"b:{first} {second}", 1.0) for first, second in itertools.pairwise(tokens)]
    found += [(gram, GRAM_WEIGHT) for token in tokens[1:-1] for gram in grams(token)]
    scale = 1.0 / math.sqrt(max(1, len(tokens) - 1))
    features: dict[str, float] = {}
    for name, weight in found:
        features[name] = features.get(name, 0.0) + weight
    return {name: weight * scale for name, weight in features.items()}


AROUND = {
    "k": 0.5,
    "l": 1.0,
    "l2": 1.0,
    "r": 0.7,
    "r2": 0.5,
    "n": 0.5,
    "kl": 0.7,
    "q": 0.8,
    "a": 0.35,
    "z": 0.25,
}
"""Weights of the features, by sort."""


def context_features(
    utterance: Utterance, candidates: Sequence[Candidate], position: int, asked: str | None
) -> dict[str, float]:
    """Return the surroundings of a candidate as features with weights."""
    tokens, places = put_kinds(utterance.words, candidates)
    features: dict[str, float] = {}
    for name in describe_around(tokens, places[position], asked):
        features[name] = features.get(name, 0.0) + AROUND[name.partition(":")[0]]
    return features


def describe_around(tokens: list[str], place: int, asked: str | None) -> list[str]:
    """Return the features around a candidate: words on both sides, kind, position, and open question.

    `tokens`: the message with candidates replaced by their kinds.
    """
    token = tokens[place]
    kind, same = token[1:-1], tokens[:place].count(token)
    left = _reach(tokens[max(0, place - _REACH) : place][::-1], "^")
    right = _reach(tokens[place + 1 : place + 1 + _REACH], "$")
    return [
        f"k:{kind}",
        f"l:{left[0]}",
        f"l2:{left[1]} {left[0]}",
        f"r:{right[0]}",
        f"r2:{right[0]} {right[1]}",
        f"n:{kind} {same}",
        f"kl:{kind} {left[0]}",
        f"q:{asked} {kind}" if asked else "q:",
        f"q:{asked}" if asked else "q:",
        *[f"a:{word}" for word in left],
        *[f"z:{word}" for word in right],
    ]


def _reach(nearest: list[str], edge: str) -> list[str]:
    """Add the edge of the message if it is within reach."""
    if len(nearest) == _REACH:
        return nearest
    return [*nearest, edge] if nearest else [edge, edge]


@dataclass(frozen=True, slots=True)
class Opinion:
    """Probabilities of labels. `shares`: in the order of `labels`, which is alphabetical.

    `known`: the share of the words seen in training.
    """

    labels: tuple[str, ...]
    shares: list[float]
    known: float

    @property
    def probabilities(self) -> Mapping[str, float]:
        """Return shares by label."""
        return dict(zip(self.labels, self.shares, strict=True))


class Classifier:
    """A classifier of messages. Immutable except for a cache."""

    def __init__(self, model: LinearModel) -> None:
        self.model = model
        self.columns = {label: place for place, label in enumerate(model.labels)}
        self._words: dict[str, int] = {}
        self._pairs: dict[tuple[str, str], int] = {}
        for name, place in model.places.items():
            if name.startswith("w:"):
                self._words[name[2:]] = place
            elif name.startswith("b:"):
                first, _, second = name[2:].partition(" ")
                self._pairs[first, second] = place
        self._rows = np.vstack([model.weights, np.zeros((1, len(model.labels)))])
        """The weights, a known word's with those of its n-grams; the last row is of all that is not known."""
        for word, place in self._words.items():
            self._rows[place] += self._sum_grams(word)
        self._unknown: dict[str, Any] = {}
        """The sums of words that training has not seen, as far as they are kept."""

    def knows(self, word: str) -> bool:
        """Return whether training has seen a word, in singular or plural."""
        return not self._words.keys().isdisjoint((word, f"{word}s", word.removesuffix("s")))

    def classify(self, tokens: Sequence[str]) -> Opinion:
        """Classify delexicalized tokens."""
        seen = counted = 0
        for token in tokens[1:-1]:
            if token.isalnum() or (len(token) == 1 and token not in PUNCTUATION):
                counted += 1
                seen += token in self._words
            elif token[0] == "<" and token != f"<{NAME}>":
                counted += 1
                seen += 1
        scores = self.add_up(tokens) * self.model.sharpness
        powers = np.exp(scores - np.maximum.reduce(scores))
        shares = (powers / np.add.reduce(powers)).tolist()
        return Opinion(self.model.labels, shares, seen / counted if counted else 0.0)

    def add_up(self, tokens: Sequence[str], besides: Features | None = None) -> Any:
        """Add up the weights of delexicalised tokens, and of features besides, in the order of the labels.

        The tokens count as `features_of` describes them.
        """
        words, inner, nowhere = self._words, tokens[1:-1], itertools.repeat(len(self._rows) - 1)
        places = [*map(words.get, inner, nowhere)]
        is_known = len(self._rows) - 1 not in places
        places += map(self._pairs.get, itertools.pairwise(tokens), nowhere)
        total = np.add.reduce(self._rows.take(places, axis=0), axis=0)
        if not is_known:
            for token in inner:
                if token not in words:
                    total += self._sum_unknown(token)
        total = total * (1.0 / math.sqrt(max(1, len(tokens) - 1))) + self.model.bias
        return add_up(self.model, besides, total) if besides else total

    def _sum_unknown(self, word: str) -> Any:
        row = self._unknown.get(word)
        if row is None:
            row = self._sum_grams(word)
            if len(self._unknown) < _UNKNOWN_WORDS_KEPT:
                self._unknown[word] = row
        return row

    def _sum_grams(self, word: str) -> Any:
        places = [place for gram in grams(word) if (place := self.model.places.get(gram)) is not None]
        return GRAM_WEIGHT * np.add.reduce(self.model.weights.take(places, axis=0), axis=0)


_WEIGHTS: dict[str, tuple[float, float, float]] = {
    # label: (an open yes-or-no question, another open question, none)
    "kind:confirmation": (3.0, 0.8, 0.5),
    "kind:denial": (3.0, 0.8, 0.5),
    "kind:slot_value": (0.6, 2.0, 0.25),
    "kind:clarification": (1.2, 1.3, 0.6),
}
_CORRECTABLE = 1.3
_NOTHING_TO_CORRECT = 0.15
_CANCELLABLE = 1.3
_NOTHING_TO_CANCEL = 0.4
_RESUMABLE = 1.6
_NOTHING_TO_RESUME = 0.4
BEST = 3
_FLOW = "flow:"


@dataclass(frozen=True, slots=True)
class Weighed:
    """The likeliest label with its share, and the three best flows with theirs, best first.

    Flows compete with other labels as one: their shares are added, since which of them it is comes second.
    """

    label: str
    share: float
    flows: tuple[FlowScore, ...]


def weigh(opinion: Opinion, context: NluContext) -> Weighed:
    """Weigh the classifier's opinion by the context; the shares sum to one again."""
    labels, (first, last) = opinion.labels, _find_flows(opinion.labels)
    shares = [*map(mul, opinion.shares, _weigh_labels(labels, *_see_context(context)))]
    tasks, others = shares[first:last], shares[:first] + shares[last:]
    together = sum(tasks)
    total = together + sum(others)
    best = sorted(range(first, last), key=shares.__getitem__, reverse=True)[:BEST]
    flows = [FlowScore(Dact(labels[place][len(_FLOW) :]), round(shares[place] / total, 4)) for place in best]
    share = max(others, default=0.0)
    if best and together >= share:
        return Weighed(labels[best[0]], together / total, tuple(flows))
    place = others.index(share) if others else 0
    return Weighed((labels[:first] + labels[last:])[place] if others else "", share / total, tuple(flows))


def _see_context(context: NluContext) -> tuple[int, bool, bool, bool]:
    """Return features of the context: the column of `_WEIGHTS`, and which of three kinds of messages apply."""
    column = 0 if context.question.confirming else 1 if context.question.is_open else 2
    held = bool(context.values) or any(flow.values for flow in context.completed)
    waits = bool(context.interrupted)
    return column, held, waits or context.active is not None, waits


@lru_cache(maxsize=1024)
def _weigh_labels(
    labels: tuple[str, ...], column: int, held: bool, cancellable: bool, resumable: bool
) -> list[float]:
    weights = {label: row[column] for label, row in _WEIGHTS.items()}
    weights["kind:correction"] = _CORRECTABLE if held else _NOTHING_TO_CORRECT
    weights["kind:cancellation"] = _CANCELLABLE if cancellable else _NOTHING_TO_CANCEL
    weights["kind:resumption"] = _RESUMABLE if resumable else _NOTHING_TO_RESUME
    return [weights.get(label, 1.0) for label in labels]


@lru_cache(maxsize=64)
def _find_flows(labels: tuple[str, ...]) -> tuple[int, int]:
    """Find where the flows among sorted labels begin and end."""
    return bisect_left(labels, _FLOW), bisect_left(labels, _FLOW + "\uffff")
