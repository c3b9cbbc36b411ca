"""Answers to a choice among shown candidates: "the second one", "2", or the name of one."""

from __future__ import annotations

from orchestrator.dialogue.understanding import Mention, MessageKind, Source, Understanding
from orchestrator.nlu.situation import Situation
from orchestrator.nlu.text import Utterance, key_of

_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1, "former": 0, "latter": -1}
_NUMBERS = {"one": 0, "two": 1, "three": 2, "four": 3, "five": 4}
_AROUND = frozenset("the one option number please i want take i'd like choose pick go with let's that is it's ok okay yes".split())
_FEW_WORDS = 10


def choose(utterance: Utterance, situation: Situation) -> Understanding | None:
    """Read a message as one of the open question's candidates; None when it names none, or several."""
    if not situation.choices or situation.asked is None or len(utterance.words) > _FEW_WORDS:
        return None
    index = _by_place(utterance.words, len(situation.choices))
    if index is None:
        index = _by_name(utterance, situation)
    if index is None:
        return None
    value, _label = situation.choices[index]
    intent = situation.active.intent if situation.active else None
    slots = {situation.asked: Mention(value, utterance.text)}
    return Understanding(MessageKind.SLOT_VALUE, Source.SYSTEM1, utterance.text, intent, slots=slots)


def _by_place(words: list[str], count: int) -> int | None:
    telling = [word for word in words if word.isalnum() and word not in _AROUND]
    if not telling and "one" in words and len(words) == 1:
        return 0
    if len(telling) != 1:
        return None
    word = telling[0]
    place = _ORDINALS.get(word, _NUMBERS.get(word))
    if place is None and word.isdecimal() and len(word) < 3:
        place = int(word) - 1
        return place if 0 <= place < count else None
    if place is None:
        return None
    place = count - 1 if place == -1 else place
    return place if place < count else None


def _by_name(utterance: Utterance, situation: Situation) -> int | None:
    """Find the one candidate whose value or label the message names, or a word that only it has."""
    said = " " + " ".join(utterance.words) + " "
    full = [
        index
        for index, (value, label) in enumerate(situation.choices)
        if any(name and f" {name} " in said for name in (key_of(str(value)), key_of(label)))
    ]
    if len(full) == 1:
        return full[0]
    labels = [set(key_of(f"{value} {label}").split(" ")) for value, label in situation.choices]
    words = {word for word in utterance.words if word.isalnum() and word not in _AROUND}
    hits = [index for index, label in enumerate(labels) if any(_only(word, index, labels) for word in words & label)]
    return hits[0] if len(hits) == 1 else None


def _only(word: str, index: int, labels: list[set[str]]) -> bool:
    return not any(word in label for other, label in enumerate(labels) if other != index)
