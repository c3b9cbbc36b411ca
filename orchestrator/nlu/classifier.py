"""The trained classifier of System 1: what a message wants, over flows, kinds of message and answers.

Values do not decide: the extractors' finds stand in the text as their kinds. Context (the open
question, the stack) is weighed elsewhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from orchestrator.nlu.examples import Example
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.extract.found import NAME, Candidate
from orchestrator.nlu.linear import LinearModel, merge
from orchestrator.nlu.text import Utterance, clean, tokenize
from orchestrator.nlu.training import Fit, fit

GRAM = 4
_STRENGTH = 10.0
END = "$"
PUNCTUATION = frozenset(".,;:!?'’\"“”()-–—/&%+#€$£")
"""Signs of ordinary writing; every other sign counts as a word."""
GRAM_WEIGHT = 0.35
MOST_TOKENS = 120
"""Only this much of a long message is classified."""
_TRAINING_DAY = date(2031, 3, 5)
_UNKNOWN_WORDS_KEPT = 4096


def delexicalize(utterance: Utterance, candidates: Sequence[Candidate]) -> list[str]:
    """The words with every candidate replaced by its kind, numbers by ``#``, and edges marked."""
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
    """The character n-grams of a word with its edges."""
    if len(word) < GRAM or word[0] == "<" or len(word) > 40:
        return []
    edged = f"_{word}_"
    return [f"g:{edged[index : index + GRAM]}" for index in range(len(edged) - GRAM + 1)]


def features_of(tokens: Sequence[str]) -> dict[str, float]:
    """Words, pairs of words and character n-grams, scaled so that long messages do not shout."""
    features: list[tuple[str, float]] = [(f"w:{token}", 1.0) for token in tokens[1:-1]]
    features += [(f"b:{first} {second}", 1.0) for first, second in itertools.pairwise(tokens)]
    features += [(gram, GRAM_WEIGHT) for token in tokens[1:-1] for gram in grams(token)]
    scale = 1.0 / math.sqrt(max(1, len(tokens) - 1))
    return {name: weight * scale for name, weight in merge(features).items()}


@dataclass(frozen=True, slots=True)
class Opinion:
    """`probabilities` by label. `known`: the share of the words that training had seen."""

    probabilities: Mapping[str, float]
    known: float


class Classifier:
    """Says how likely each label is for a message. Made by `train`; then constant but for a cache."""

    def __init__(self, model: LinearModel) -> None:
        self._model = model
        self._zero = np.zeros(len(model.labels))
        self._words = self._word_rows()
        self._seen = frozenset(self._words)

    @classmethod
    def train(cls, examples: Iterable[Example], extractor: Extractor, fit: Fit = fit) -> Classifier:
        """Learn from examples that have a label; the same examples give the same classifier."""
        rows: list[dict[str, float]] = []
        labels: list[str] = []
        for example in examples:
            if example.label is not None:
                utterance = tokenize(clean(example.text))
                rows.append(features_of(delexicalize(utterance, extractor.find(utterance, _TRAINING_DAY))))
                labels.append(example.label)
        return cls(fit(rows, labels, _STRENGTH))

    @property
    def labels(self) -> tuple[str, ...]:
        return self._model.labels

    @property
    def model(self) -> LinearModel:
        return self._model

    def classify(self, tokens: Sequence[str]) -> Opinion:
        """Judge delexicalised tokens."""
        rows = self._model.rows
        total = self._zero.copy()
        seen = counted = 0
        previous = tokens[0]
        for token in tokens[1:]:
            if token != END:
                total += self._row_of(token)
                if token.isalnum() or (len(token) == 1 and token not in PUNCTUATION):
                    counted += 1
                    seen += token in self._seen
                elif token[0] == "<" and token != f"<{NAME}>":
                    counted += 1
                    seen += 1
            pair = rows.get(f"b:{previous} {token}")
            if pair is not None:
                total += pair
            previous = token
        total *= 1.0 / math.sqrt(max(1, len(tokens) - 1))
        total += self._model.bias
        probabilities = self._model.probabilities(total)
        known = seen / counted if counted else 0.0
        return Opinion(dict(zip(self._model.labels, probabilities, strict=True)), known)

    def _row_of(self, word: str) -> Any:
        row = self._words.get(word)
        if row is None:
            row = self._sum_grams(word)
            if len(self._words) < len(self._seen) + _UNKNOWN_WORDS_KEPT:
                self._words[word] = row
        return row

    def _sum_grams(self, word: str) -> Any:
        total = self._zero.copy()
        for gram in grams(word):
            row = self._model.rows.get(gram)
            if row is not None:
                total += GRAM_WEIGHT * row
        return total

    def _word_rows(self) -> dict[str, Any]:
        """A known word's own weights and those of its n-grams, summed once."""
        words = (name[2:] for name in self._model.rows if name.startswith("w:"))
        return {word: self._model.rows[f"w:{word}"] + self._sum_grams(word) for word in words}
