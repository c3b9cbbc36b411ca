"""The trained classifier of System 1: what a message wants, over flows, kinds of message and answers.

Values do not decide: the extractors' finds stand in the text as their kinds. The context (the open question, the
stack) weighs afterwards, as prior odds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.dialogue.understanding import FlowScore
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.found import NAME
from orchestrator.nlu.system1.features import PUNCTUATION, features_of
from orchestrator.nlu.system1.linear import LinearModel
from orchestrator.types import Dact

BEST = 3
FLOW = "flow:"


@dataclass(frozen=True, slots=True)
class Opinion:
    """Probabilities by label. `known`: the share of the words seen in training."""

    probabilities: Mapping[str, float]
    known: float


class Classifier:
    """A classifier of messages."""

    def __init__(self, model: LinearModel) -> None:
        self.model = model

    def knows(self, word: str) -> bool:
        """Return whether training has seen a word, in singular or plural."""
        return any(f"w:{form}" in self.model.places for form in (word, f"{word}s", word.removesuffix("s")))

    def classify(self, tokens: Sequence[str]) -> Opinion:
        """Classify delexicalized tokens."""
        counted = [one for one in tokens[1:-1] if one[0] == "<" or one.isalnum() or one not in PUNCTUATION]
        counted = [one for one in counted if one != f"<{NAME}>"]
        seen = [one for one in counted if one[0] == "<" or f"w:{one}" in self.model.places]
        scores = self.model.score(features_of(tokens))
        powers = np.exp(scores - scores.max())
        shares = (powers / powers.sum()).tolist()
        probabilities = dict(zip(self.model.labels, shares, strict=True))
        return Opinion(probabilities, len(seen) / len(counted) if counted else 0.0)


_WEIGHTS: dict[str, tuple[float, float, float]] = {
    # label: (an open yes-or-no question, another open question, none)
    "kind:confirmation": (3.0, 0.8, 0.5),
    "kind:denial": (3.0, 0.8, 0.5),
    "kind:slot_value": (0.6, 2.0, 0.25),
    "kind:clarification": (1.2, 1.3, 0.6),
}
_APPLICABLE: dict[str, tuple[float, float]] = {
    # label: (if there is nothing to correct, cancel or resume; if there is)
    "kind:correction": (0.15, 1.3),
    "kind:cancellation": (0.4, 1.3),
    "kind:resumption": (0.4, 1.6),
}


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
    weights = _weights_in(context)
    shares = {label: share * weights.get(label, 1.0) for label, share in opinion.probabilities.items()}
    total = sum(shares.values())
    shares = {label: share / total for label, share in shares.items()}
    best = sorted((one for one in shares if one.startswith(FLOW)), key=lambda one: -shares[one])
    flows = tuple(FlowScore(Dact(one.removeprefix(FLOW)), round(shares[one], 4)) for one in best[:BEST])
    together = sum(shares[one] for one in best)
    other = max((one for one in shares if not one.startswith(FLOW)), key=shares.__getitem__, default="")
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
