"""Finds where names stand by what was learnt of the words in and around them, listed or not, capitals or not.

It takes messages of users, which only `parley eval FOLDER` has: a domain's System 1 finds names by `names` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from orchestrator.nlu.extract.found import NAME, Found, Reading
from orchestrator.nlu.linear import LinearModel
from orchestrator.nlu.text import Utterance

OUTSIDE, BEGINS, INSIDE = "outside", "begins", "inside"
TAGS = (OUTSIDE, BEGINS, INSIDE)
_EDGE = "^"
_MOST_TOKENS = 120
"""Only this much of a long message is searched."""
_NEVER = -1e9


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
    """Finds the likeliest spans of names in a message, by a model that `learn_spans` has made."""

    def __init__(self, model: LinearModel) -> None:
        places = [model.labels.index(tag) for tag in TAGS]
        self._rows = {name: tuple(float(row[place]) for place in places) for name, row in model.rows.items()}
        self._bias = tuple(float(model.bias[place]) for place in places)
        none = (0.0, 0.0, 0.0)
        self._steps = [list(self._rows.get(after(tag), none)) for tag in TAGS]
        self._steps[0][2] = _NEVER  # nothing goes on that has not begun

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
        best = [0.0, _NEVER, _NEVER]
        origins: list[list[int]] = []
        for features in tokens:
            own = list(self._bias)
            for name in features:
                row = self._rows.get(name)
                if row is not None:
                    own[0] += row[0]
                    own[1] += row[1]
                    own[2] += row[2]
            paths = [
                max((best[before] + self._steps[before][tag], -before) for before in range(3))
                for tag in range(3)
            ]
            origins.append([-before for _, before in paths])
            best = [score + own[tag] for tag, (score, _) in enumerate(paths)]
        tag = max(range(3), key=lambda one: best[one])
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
