"""Which value fills which slot: learnt from the words around the placeholders of the examples.

Takes candidates, gives mentions by slot. Types decide what is possible, context what is likely.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import cast

import numpy as np

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.nlu.examples import Example
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.extract.found import NAME, QUOTE, Candidate, Reading
from orchestrator.nlu.extract.span_types import LISTS, kinds_of, type_name
from orchestrator.nlu.linear import LinearModel, merge
from orchestrator.nlu.text import Utterance, clean, tokenize, word_set
from orchestrator.nlu.training import Fit, fit
from orchestrator.types import Json

NO_SLOT = "-"
_TRAINING_DAY = date(2031, 3, 5)
_REACH = 4
_STRENGTH = 4.0
_LEAST_SHARE = 0.35
"""A slot must be this likely, among the slots the value could fill and none of them."""
_LEAST_SHARE_OPEN = 0.5
_BEFORE_PRONOUN = word_set(
    "which that this the best another good first second third fourth fifth next last any every no other cheap"
)
_NEGATIONS = frozenset({"not", "isn't", "never"})


@dataclass(frozen=True, slots=True)
class Guess:
    """A candidate for a slot, and how likely."""

    share: float
    candidate: Candidate
    slot: SlotSpec


def context_features(
    utterance: Utterance, candidates: Sequence[Candidate], position: int, asked: str | None
) -> dict[str, float]:
    """What surrounds a candidate: words to both sides, its kind, its place, and the open question."""
    candidate = candidates[position]
    left = _left(utterance, candidates, position)
    right = _right(utterance, candidates, position)
    kind = candidate.kind
    same = sum(1 for other in candidates[:position] if other.kind == kind)
    features: list[tuple[str, float]] = [
        (f"k:{kind}", 0.5),
        (f"l:{left[0]}", 1.0),
        (f"l2:{left[1]} {left[0]}", 1.0),
        (f"r:{right[0]}", 0.7),
        (f"r2:{right[0]} {right[1]}", 0.5),
        (f"n:{kind} {same}", 0.5),
        (f"kl:{kind} {left[0]}", 0.7),
        (f"q:{asked} {kind}" if asked else "q:", 0.8),
        (f"q:{asked}" if asked else "q:", 0.8),
    ]
    features += [(f"a:{word}", 0.35) for word in left]
    features += [(f"z:{word}", 0.25) for word in right]
    return merge(features)


def _left(utterance: Utterance, candidates: Sequence[Candidate], position: int) -> list[str]:
    """The nearest tokens to the left, nearest first; other candidates appear as their kinds."""
    words: list[str] = []
    place, before = candidates[position].first - 1, position - 1
    while len(words) < _REACH:
        if place < 0:
            words.append("^")
            if len(words) > 1:
                break
        elif before >= 0 and candidates[before].first <= place < candidates[before].last:
            words.append(f"<{candidates[before].kind}>")
            place, before = candidates[before].first - 1, before - 1
        else:
            words.append(utterance.words[place])
            place -= 1
    return words


def _right(utterance: Utterance, candidates: Sequence[Candidate], position: int) -> list[str]:
    words: list[str] = []
    place, after = candidates[position].last, position + 1
    while len(words) < _REACH:
        if place >= len(utterance.words):
            words.append("$")
            if len(words) > 1:
                break
        elif after < len(candidates) and candidates[after].first == place:
            words.append(f"<{candidates[after].kind}>")
            place, after = candidates[after].last, after + 1
        else:
            words.append(utterance.words[place])
            place += 1
    return words


class Roles:
    """Assigns candidates to slots. Made by `train`; constant then."""

    def __init__(self, model: LinearModel) -> None:
        self._model = model
        self._index = {label: position for position, label in enumerate(model.labels)}
        self._zero = np.zeros(len(model.labels))

    @classmethod
    def train(
        cls,
        examples: Iterable[Example],
        extractor: Extractor,
        slots: Mapping[str, SlotSpec],
        fit: Fit = fit,
    ) -> Roles:
        """Learn from the spans of the examples; candidates outside of all spans teach "no slot"."""
        rows: list[dict[str, float]] = []
        labels: list[str] = []
        for example in examples:
            if not example.spans and example.dact is None:
                continue
            utterance, candidates, marked = marked_candidates(example, extractor, slots)
            for position in range(len(candidates)):
                rows.append(context_features(utterance, candidates, position, example.asked))
                labels.append(marked.get(position, NO_SLOT))
        return cls(fit(rows, labels, _STRENGTH))

    def assign(
        self,
        utterance: Utterance,
        candidates: Sequence[Candidate],
        flow: FlowSpec,
        asked: str | None,
        extractor: Extractor,
    ) -> dict[str, Mention]:
        """Give each slot of the flow its likeliest value; each value fills one slot at most."""
        guesses: list[Guess] = []
        for position, candidate in enumerate(candidates):
            if not is_negated(utterance, candidate) and not _is_pronoun(utterance, candidate):
                guesses += self._guesses(utterance, candidates, position, flow, asked)
        guesses.sort(key=lambda guess: (-guess.share, guess.candidate.first, guess.slot.name))
        mentions: dict[str, Mention] = {}
        lists: dict[str, list[tuple[int, Mention]]] = {}
        used: set[int] = set()
        for guess in guesses:
            name = guess.slot.name
            if guess.candidate.first in used:
                continue
            mention = mention_of(guess.candidate, guess.slot, extractor)
            if mention is None:
                continue
            if type_name(guess.slot) in LISTS:
                lists.setdefault(name, []).append((guess.candidate.first, mention))
            elif name in mentions:
                continue
            mentions.setdefault(name, mention)
            used.add(guess.candidate.first)
        mentions |= {name: _in_order(parts) for name, parts in lists.items()}
        return {name: _as_list(mention, flow.slots[name]) for name, mention in mentions.items()}

    def _guesses(
        self,
        utterance: Utterance,
        candidates: Sequence[Candidate],
        position: int,
        flow: FlowSpec,
        asked: str | None,
    ) -> list[Guess]:
        candidate = candidates[position]
        possible = [slot for slot in flow.slots.values() if fits(candidate, slot)]
        if not possible:
            return []
        scores = self._scores(context_features(utterance, candidates, position, asked))
        powers = [self._power(scores, slot.name) for slot in possible]
        total = sum(powers) + self._power(scores, NO_SLOT)
        least = _LEAST_SHARE_OPEN if candidate.kind in {NAME, QUOTE} else _LEAST_SHARE
        shares = [power / total for power in powers]
        return [
            Guess(s, candidate, slot)
            for s, slot in zip(shares, possible, strict=True)
            if s >= least / len(possible)
        ]

    def _scores(self, features: Mapping[str, float]) -> list[float]:
        total = self._zero + self._model.bias
        rows = self._model.rows
        for name, weight in features.items():
            row = rows.get(name)
            if row is not None:
                total += weight * row
        return (total * self._model.sharpness).tolist()

    def _power(self, scores: Sequence[float], label: str) -> float:
        position = self._index.get(label)
        return math.exp(min(60.0, scores[position])) if position is not None else 0.02


def marked_candidates(
    example: Example, extractor: Extractor, slots: Mapping[str, SlotSpec]
) -> tuple[Utterance, list[Candidate], dict[int, str]]:
    """The candidates of an example, and which of them are the example's spans (position → slot)."""
    utterance = tokenize(clean(example.text))
    if utterance.text != example.text:
        return utterance, extractor.find(utterance, _TRAINING_DAY), {}
    marked: list[tuple[Candidate, str]] = []
    for start, end, slot in example.spans:
        first, last = utterance.token_span(start, end)
        kind = kinds_of(slots[slot])[0] if slot in slots and kinds_of(slots[slot]) else NAME
        marked.append((Candidate(first, last, kind, example.text[start:end]), slot))
    free: list[Candidate] = []
    for candidate in extractor.find(utterance, _TRAINING_DAY):
        twin = next((m for m, _ in marked if m.first < candidate.last and candidate.first < m.last), None)
        if twin is None:
            free.append(candidate)
        elif (twin.first, twin.last) == (candidate.first, candidate.last):
            twin.kind = candidate.kind
    candidates = sorted([*free, *(candidate for candidate, _ in marked)], key=lambda item: item.first)
    names = {id(candidate): slot for candidate, slot in marked}
    roles = {index: names[id(item)] for index, item in enumerate(candidates) if id(item) in names}
    return utterance, candidates, roles


def fits(candidate: Candidate, slot: SlotSpec) -> bool:
    """Whether one of the candidate's readings is of a kind that the slot takes."""
    kinds = kinds_of(slot)
    return any(kind in candidate.readings for kind in kinds) or (
        slot.entity is not None and candidate.kind == NAME
    )


def mention_of(candidate: Candidate, slot: SlotSpec, extractor: Extractor) -> Mention | None:
    """Read a candidate as a value of a slot; None when it is none."""
    for kind in kinds_of(slot):
        reading = candidate.readings.get(kind)
        if reading is not None:
            return read_as(reading, candidate.text)
    if slot.entity is not None and candidate.kind == NAME:
        return _unlisted(candidate.text, slot, extractor)
    return None


def read_as(reading: Reading, text: str) -> Mention:
    return Mention(reading.value, text, reading.candidates, reading.invalid)


def _unlisted(text: str, slot: SlotSpec, extractor: Extractor) -> Mention:
    """A name where a known entity is expected: the nearest known one, else invalid."""
    repaired = extractor.gazetteer.repair(kinds_of(slot)[0], text)
    if repaired is not None:
        return read_as(repaired, text)
    return Mention(None, text, invalid=f"There is no {slot.entity} called {text!r} that I know.")


def is_negated(utterance: Utterance, candidate: Candidate) -> bool:
    """Whether the words before say that this value is not meant: "not X", "instead of X"."""
    words, first = utterance.words, candidate.first
    if first == 0:
        return False
    if words[first - 1] in _NEGATIONS:
        return True
    before = words[max(0, first - 3) : first]
    if len(before) >= 2 and (
        before[-2] in _NEGATIONS and before[-1] in {"to", "from", "on", "in", "at", "the"}
    ):
        return True
    return " ".join(before[-2:]) in {"instead of", "rather than"}


def _is_pronoun(utterance: Utterance, candidate: Candidate) -> bool:
    """Whether "one" stands for a thing rather than for a number: "the best one", "one way"."""
    words, first = utterance.words, candidate.first
    if candidate.last != first + 1 or words[first] != "one":
        return False
    after = words[first + 1] if first + 1 < len(words) else ""
    return (first > 0 and words[first - 1] in _BEFORE_PRONOUN) or after in {"way", "of", "that", "which"}


def _in_order(parts: list[tuple[int, Mention]]) -> Mention:
    """The values of a list as they were said, whichever was the surest."""
    _, (whole, *others) = zip(*sorted(parts, key=lambda part: part[0]), strict=True)
    for other in others:
        whole = _extend(whole, other)
    return whole


def _extend(mention: Mention, other: Mention) -> Mention:
    held: Json = mention.value
    values = cast("list[Json]", held) if type(held) is list else [held]
    return Mention(
        [*values, other.value], f"{mention.text}, {other.text}", invalid=mention.invalid or other.invalid
    )


def _as_list(mention: Mention, slot: SlotSpec) -> Mention:
    if type_name(slot) in LISTS and mention.value is not None and type(mention.value) is not list:
        return Mention([mention.value], mention.text, mention.candidates, mention.invalid)
    return mention
