"""What the words beside a value say about it: that it is not meant, that it is no number, which slot it is for."""

from __future__ import annotations

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.nlu.extract.found import Candidate
from orchestrator.nlu.text import Utterance, word_set

_BEFORE_PRONOUN = word_set(
    "which that this the best another good first second third fourth fifth next last any every no other cheap there"
)
_NEGATIONS = frozenset({"not", "isn't", "never"})


def is_negated(utterance: Utterance, candidate: Candidate) -> bool:
    """Tell whether the words before say that this value is not meant: "not X", "instead of X"."""
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


def named_slot(utterance: Utterance, candidate: Candidate, possible: list[SlotSpec]) -> SlotSpec | None:
    """Find the slot that the words before a value name: "the destination should be Prague"."""
    place = candidate.first - 1
    while place >= 0 and utterance.words[place] in _AFTER_NAME:
        place -= 1
    if place < 0 or place == candidate.first - 1:
        return None
    return next((slot for slot in possible if slot.name == utterance.words[place]), None)


_AFTER_NAME = word_set("to be should is must as not a the : = in for")


def is_pronoun(utterance: Utterance, candidate: Candidate) -> bool:
    """Tell whether "one" stands for a thing rather than for a number: "the best one", "one way"."""
    words, first = utterance.words, candidate.first
    if candidate.last != first + 1 or words[first] != "one":
        return False
    before, after = words[first - 1] if first else "", words[first + 1] if first + 1 < len(words) else ""
    compared = before.endswith(("er", "est")) and len(before) > 4 and before not in {"after", "number"}
    return compared or before in _BEFORE_PRONOUN or after in {"way", "of", "that", "which"}
