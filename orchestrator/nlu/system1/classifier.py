"""The trained classifier, which predicts a message's flow, kind or answer.

Features are words, word pairs and character n-grams. Each extracted value is replaced with its kind, so that
the value itself does not affect the prediction. Afterward, the context (the open question and the stack)
weights the probabilities as prior odds.
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

FLOW = "flow:"
GRAM = 4
END = "$"
PUNCTUATION = frozenset(".,;:!?'’\"“”()-–—/&%+#€$£")
_KNOWN = 0.34
"""Minimum share of a message's words that must occur in the examples to predict a label."""
GRAM_WEIGHT = 0.35
MOST_TOKENS = 120
"""Maximum number of tokens to classify."""


def delexicalize(utterance: Utterance, candidates: Sequence[Candidate]) -> list[str]:
    """Replace every candidate with its kind and numbers with ``#``, and mark the edges."""
    tokens, position = ["^"], 0
    for candidate in candidates:
        tokens += [*utterance.words[position : candidate.first], f"<{candidate.kind}>"]
        position = candidate.last
    tokens = [*tokens, *utterance.words[position:]][:MOST_TOKENS]
    return ["#" if token.isdigit() else token for token in tokens] + [END]


def grams(word: str) -> list[str]:
    """Return a word's character n-grams, with its edges. Return [] for placeholders, short and very long words."""
    if len(word) < GRAM or word[0] == "<" or len(word) > 40:
        return []
    edged = f"_{word}_"
    return [f"g:{edged[index : index + GRAM]}" for index in range(len(edged) - GRAM + 1)]


def features_of(tokens: Sequence[str]) -> dict[str, float]:
    """Count words, word pairs and character n-grams, scaled so that long messages do not dominate."""
    found = [(f"w:{token}", 1.0) for token in tokens[1:-1]]
    found += [(f"b:{first} {second}", 1.0) for first, second in itertools.pairwise(tokens)]
    found += [(gram, GRAM_WEIGHT) for token in tokens[1:-1] for gram in grams(token)]
    features: dict[str, float] = {}
    for name, weight in found:
        features[name] = features.get(name, 0.0) + weight / math.sqrt(max(1, len(tokens) - 1))
    return features


def classify(model: LinearModel, utterance: Utterance, candidates: Sequence[Candidate]) -> dict[str, float]:
    """Return the probability of each label, or only the unknown kind if too few words occur in the examples."""
    tokens = delexicalize(utterance, candidates)
    counted = [one for one in tokens[1:-1] if one not in PUNCTUATION and one != f"<{NAME}>"]
    known = sum(one[0] == "<" or f"w:{one}" in model.places for one in counted)
    if known < _KNOWN * len(counted):
        return {"kind:": 1.0}
    scores = model.score(features_of(tokens))
    powers = np.exp(scores - scores.max())
    return dict(zip(model.labels, (powers / powers.sum()).tolist(), strict=True))


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
    """The most likely label with its share, and the three most likely flows with their shares, best first.

    If the label is a flow, `share` is the sum of all flows' shares.
    """

    label: str
    share: float
    flows: tuple[FlowScore, ...]


def weigh(probabilities: Mapping[str, float], context: NluContext) -> Weighed:
    """Weight the classifier's probabilities by the context, and normalize them to shares."""
    shares = dict(probabilities)
    for label, weight in _weights_in(context).items():
        if label in shares:
            shares[label] *= weight
    total = sum(shares.values())
    shares = {label: share / total for label, share in shares.items()}
    best = sorted([one for one in shares if one.startswith(FLOW)], key=shares.__getitem__, reverse=True)
    flows = tuple([FlowScore(Dact(one.removeprefix(FLOW)), round(shares[one], 4)) for one in best[:3]])
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
