"""Features of messages for the linear models: words, pairs, character n-grams, and the words around a value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from orchestrator.nlu.system1.extract.found import Candidate
from orchestrator.nlu.text import Utterance

GRAM = 4
END = "$"
PUNCTUATION = frozenset(".,;:!?'’\"“”()-–—/&%+#€$£")
"""Signs of ordinary writing; every other sign counts as a word."""
GRAM_WEIGHT = 0.35
_REACH = 4
"""Tokens on each side that influence a candidate."""
MOST_TOKENS = 120
"""Only this much of a long message is classified."""


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
    tokens = ["^", *put_kinds(utterance.words, candidates)[0]][:MOST_TOKENS]
    return [*("#" if token.isdigit() else token for token in tokens), END]


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
"""Weights of the features around a value, by sort."""


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
    names += [*(f"a:{word}" for word in left), *(f"z:{word}" for word in right)]
    return _add_up([(name, AROUND[name.partition(":")[0]]) for name in names])


def _add_up(found: Sequence[tuple[str, float]], scale: float = 1.0) -> dict[str, float]:
    features: dict[str, float] = {}
    for name, weight in found:
        features[name] = features.get(name, 0.0) + weight * scale
    return features


def _reach(nearest: list[str], edge: str) -> list[str]:
    """Add the edge of the message if it is within reach."""
    if len(nearest) == _REACH:
        return nearest
    return [*nearest, edge] if nearest else [edge, edge]
