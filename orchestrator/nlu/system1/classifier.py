"""The trained classifier: predicts a flow, message kind or answer.

Features are words, word pairs, character n-grams, and words around a value. Extracted values are replaced by
their kind, so that the values do not affect the prediction. Afterwards, the context (the open question and
the stack) weights the probabilities as prior odds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.dialogue.understanding import FlowScore
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.found import NAME, Candidate
from orchestrator.nlu.system1.linear import LinearModel
from orchestrator.nlu.text import Utterance
from orchestrator.types import Dact

BEST = 3
FLOW = "flow:"


GRAM = 4
END = "$"
PUNCTUATION = frozenset(".,;:!?'’\"“”()-–—/&%+#€$£")
"""Ordinary punctuation. All other symbols count as words."""
GRAM_WEIGHT = 0.35
_REACH = 4
"""Number of neighboring tokens on each side of a candidate that produce features."""
MOST_TOKENS = 120
"""Maximum number of tokens to classify."""


def put_kinds(words: Sequence[str], candidates: Sequence[Candidate]) -> tuple[list[str], list[int]]:
    """Replace the words of each candidate by a token for its kind. Also return the positions of these tokens."""
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
    """Replace candidates by their kinds and numbers by ``#``, and mark the edges."""
    tokens = ["^", *put_kinds(utterance.words, candidates)[0]][:MOST_TOKENS]
    return ["#" if token.isdigit() else token for token in tokens] + [END]


def grams(word: str) -> list[str]:
    """Split a word with its edges into character n-grams."""
    if len(word) < GRAM or word[0] == "<" or len(word) > 40:
        return []
    edged = f"_{word}_"
    return [f"g:{edged[index : index + GRAM]}" for index in range(len(edged) - GRAM + 1)]


def features_of(tokens: Sequence[str]) -> dict[str, float]:
    """Count words, word pairs and character n-grams, scaled so that long messages do not dominate."""
    found = [(f"w:{token}", 1.0) for token in tokens[1:-1]]
    found += [(f"b:{first} {second}", 1.0) for first, second in itertools.pairwise(tokens)]
    found += [(gram, GRAM_WEIGHT) for token in tokens[1:-1] for gram in grams(token)]
    return _add_up(found, 1.0 / math.sqrt(max(1, len(tokens) - 1)))


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
"""Weights of the features around a value, by feature type."""


def features_around(tokens: Sequence[str], place: int, asked: str | None) -> dict[str, float]:
    """Return features of a candidate: words on both sides, kind, position, and open question.

    `tokens`: the message with candidates replaced by their kinds. `asked`: the slot of the open question.
    """
    token = tokens[place]
    kind, same = token[1:-1], tokens[:place].count(token)
    left = _reach([*tokens[max(0, place - _REACH) : place]][::-1], "^")
    right = _reach([*tokens[place + 1 : place + 1 + _REACH]], END)
    names = [
        f"k:{kind}",
        f"l:{left[0]}",
        f"l2:{left[1]} {left[0]}",
        f"r:{right[0]}",
        f"r2:{right[0]} {right[1]}",
    ]
    names += [
        f"n:{kind} {same}",
        f"kl:{kind} {left[0]}",
        f"q:{asked or ''}",
        f"q:{asked} {kind}" if asked else "q:",
    ]
    names += [f"a:{word}" for word in left] + [f"z:{word}" for word in right]
    return _add_up([(name, AROUND[name.partition(":")[0]]) for name in names])


def _add_up(found: Sequence[tuple[str, float]], scale: float = 1.0) -> dict[str, float]:
    features: dict[str, float] = {}
    for name, weight in found:
        features[name] = features.get(name, 0.0) + weight * scale
    return features


def _reach(nearest: list[str], edge: str) -> list[str]:
    """Add the edge of the message if the edge is within reach."""
    if len(nearest) == _REACH:
        return nearest
    return [*nearest, edge] if nearest else [edge, edge]


_NAMED = f"<{NAME}>"


@dataclass(frozen=True, slots=True)
class Opinion:
    """Probabilities by label. `known`: the share of words that occur in the training data."""

    probabilities: Mapping[str, float]
    known: float


class Classifier:
    """A classifier of messages."""

    def __init__(self, model: LinearModel) -> None:
        self.model = model

    def knows(self, word: str) -> bool:
        """Return whether the training data contains a word, in singular or plural."""
        known = self.model.places
        return f"w:{word}" in known or f"w:{word}s" in known or f"w:{word.removesuffix('s')}" in known

    def classify(self, utterance: Utterance, candidates: Sequence[Candidate]) -> Opinion:
        tokens = delexicalize(utterance, candidates)
        counted = [
            one
            for one in tokens[1:-1]
            if one != _NAMED and (one[0] == "<" or one.isalnum() or one not in PUNCTUATION)
        ]
        seen = [one for one in counted if one[0] == "<" or f"w:{one}" in self.model.places]
        scores = self.model.score(features_of(tokens))
        powers = np.exp(scores - scores.max())
        shares = (powers / powers.sum()).tolist()
        probabilities = dict(zip(self.model.labels, shares, strict=True))
        return Opinion(probabilities, len(seen) / len(counted) if counted else 0.0)


_WEIGHTS: dict[str, tuple[float, float, float]] = {
    # label: (with an open yes-or-no question, with another open question, without a question)
    "kind:confirmation": (3.0, 0.8, 0.5),
    "kind:denial": (3.0, 0.8, 0.5),
    "kind:slot_value": (0.6, 2.0, 0.25),
    "kind:clarification": (1.2, 1.3, 0.6),
}
_APPLICABLE: dict[str, tuple[float, float]] = {
    # label: (without anything to correct, cancel or resume; with such a task)
    "kind:correction": (0.15, 1.3),
    "kind:cancellation": (0.4, 1.3),
    "kind:resumption": (0.4, 1.6),
}


@dataclass(frozen=True, slots=True)
class Weighed:
    """The likeliest label with its share, and the three likeliest flows with their shares, best first.

    The shares of all flows are added before comparison with other labels.
    """

    label: str
    share: float
    flows: tuple[FlowScore, ...]


def weigh(opinion: Opinion, context: NluContext) -> Weighed:
    """Weight the classifier's opinion by the context, and normalize the shares."""
    shares = dict(opinion.probabilities)
    for label, weight in _weights_in(context).items():
        if label in shares:
            shares[label] *= weight
    total = sum(shares.values())
    shares = {label: share / total for label, share in shares.items()}
    best = sorted([one for one in shares if one.startswith(FLOW)], key=shares.__getitem__, reverse=True)
    flows = tuple([FlowScore(Dact(one.removeprefix(FLOW)), round(shares[one], 4)) for one in best[:BEST]])
    together = sum(map(shares.__getitem__, best))
    of_flows = set(best)
    other = max([one for one in shares if one not in of_flows], key=shares.__getitem__, default="")
    if best and together >= shares.get(other, 0.0):
        return Weighed(best[0], together, flows)
    return Weighed(other, shares.get(other, 0.0), flows)


def _weights_in(context: NluContext) -> dict[str, float]:
    column = 0 if context.question.confirming else 1 if context.question.is_open else 2
    applies = {
        "kind:correction": bool(context.values) or any(flow.values for flow in context.completed),
        "kind:cancellation": bool(context.interrupted) or context.active is not None,
        "kind:resumption": bool(context.interrupted),
    }
    return {label: row[column] for label, row in _WEIGHTS.items()} | {
        label: row[applies[label]] for label, row in _APPLICABLE.items()
    }
