"""The trained classifier of System 1: what a message wants, over flows, kinds of message and answers.

A linear model is applied as a product of the rows of weights that a message's features have. Values do not
decide: the extractors' finds stand in the text as their kinds. Context (the open question, the stack) is weighed
elsewhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.nlu.extract.found import NAME, Candidate
from orchestrator.nlu.text import Utterance

GRAM = 4
END = "$"
PUNCTUATION = frozenset(".,;:!?'’\"“”()-–—/&%+#€$£")
"""Signs of ordinary writing; every other sign counts as a word."""
GRAM_WEIGHT = 0.35
MOST_TOKENS = 120
"""Only this much of a long message is classified."""
_UNKNOWN_WORDS_KEPT = 4096

Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LinearModel:
    """`weights`: a row for each feature, at its place, and a column for each label; `bias` by label.

    `sharpness` multiplies the scores.
    """

    labels: tuple[str, ...]
    places: Mapping[str, int]
    weights: Any
    bias: Any
    sharpness: float = 1.0


def add_up(model: LinearModel, features: Features, onto: Any = None) -> Any:
    """Add up the weights of what is there, in the order of the labels; `onto` what is known so far, else the bias."""
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


def delexicalize(utterance: Utterance, candidates: Sequence[Candidate]) -> list[str]:
    """Replace every candidate by its kind and numbers by ``#``, and mark the edges."""
    words = utterance.words
    tokens: list[str] = ["^"]
    position = 0
    for candidate in candidates:
        tokens += words[position : candidate.first]
        tokens.append(f"<{candidate.kind}>")
        position = candidate.last
    tokens += words[position:]
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


@dataclass(frozen=True, slots=True)
class Opinion:
    """`probabilities` by label. `known`: the share of the words that training had seen."""

    probabilities: Mapping[str, float]
    known: float


class Classifier:
    """Says how likely each label is for a message. Constant but for a cache."""

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
        self._rows = model.weights.copy()
        """The weights, a known word's with those of its n-grams."""
        for word, place in self._words.items():
            self._rows[place] += self._sum_grams(word)
        self._unknown: dict[str, Any] = {}
        """The sums of words that training has not seen, as far as they are kept."""

    def knows(self, word: str) -> bool:
        """Tell whether training has seen a word, in singular or plural."""
        return not self._words.keys().isdisjoint((word, f"{word}s", word.removesuffix("s")))

    def classify(self, tokens: Sequence[str]) -> Opinion:
        """Judge delexicalised tokens."""
        seen = counted = 0
        for token in tokens[1:-1]:
            if token.isalnum() or (len(token) == 1 and token not in PUNCTUATION):
                counted += 1
                seen += token in self._words
            elif token[0] == "<" and token != f"<{NAME}>":
                counted += 1
                seen += 1
        scores = self.add_up(tokens) * self.model.sharpness
        powers = np.exp(scores - scores.max())
        shares = (powers / powers.sum()).tolist()
        return Opinion(dict(zip(self.model.labels, shares, strict=True)), seen / counted if counted else 0.0)

    def add_up(self, tokens: Sequence[str], besides: Features | None = None) -> Any:
        """Add up the weights of delexicalised tokens, and of features besides, in the order of the labels.

        The tokens count as `features_of` describes them.
        """
        words, inner = self._words, tokens[1:-1]
        places = [place for token in inner if (place := words.get(token)) is not None]
        is_known = len(places) == len(inner)
        pairs = map(self._pairs.get, itertools.pairwise(tokens))
        places += [place for place in pairs if place is not None]
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
