"""Answers to a choice among shown candidates: "the second one", "2", or the name of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.dialogue.ambiguity import Option
from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Source, Understanding
from orchestrator.nlu.nlu_context import Situation
from orchestrator.nlu.readers.actions import Action, react
from orchestrator.nlu.text import Utterance, key_of, word_set
from orchestrator.types import Dact

_ORDINALS = {
    "first": 0,
    "second": 1,
    "third": 2,
    "fourth": 3,
    "fifth": 4,
    "last": -1,
    "former": 0,
    "latter": -1,
}
_NUMBERS = {"one": 0, "two": 1, "three": 2, "four": 3, "five": 4}
_AROUND = word_set(
    "the one option number please i want take i'd like choose pick go with let's that is it's ok okay yes"
)
_FEW_WORDS = 10


def choose(
    utterance: Utterance, situation: Situation, flows: Mapping[Dact, FlowSpec]
) -> Understanding | None:
    """Read a message as one of the open question's options; None when it names none, or several."""
    if len(utterance.words) > _FEW_WORDS:
        return None
    if situation.options:
        names = [(option.label, _key_value(option)) for option in situation.options]
    elif situation.candidates and situation.asked is not None:
        names = [(str(value), "") for value in situation.candidates]
    else:
        return None
    index = _by_place(utterance.words, len(names))
    if index is None:
        index = _by_name(utterance, names)
    if index is None:
        return None
    chosen = react(Action("select_option", {"index": index}), situation, flows)
    return replace(chosen, source=Source.SYSTEM1, text=utterance.text)


def _key_value(option: Option) -> str:
    """The value, or else the slot, that an option stands for: people name these too."""
    return str(option.payload.get("value", option.payload.get("slot", "")))


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


def _by_name(utterance: Utterance, names: Sequence[tuple[str, str]]) -> int | None:
    """Find the one option whose label or value the message names, or a word that only it has."""
    said = " " + " ".join(utterance.words) + " "
    keys = [[key_of(name) for name in pair if name] for pair in names]
    labels = [set(" ".join(pair).split(" ")) for pair in keys]
    words = {word for word in utterance.words if word.isalnum() and word not in _AROUND}
    whole = [index for index, pair in enumerate(keys) if any(f" {key} " in said for key in pair)]
    part = [
        index for index, label in enumerate(labels) if any(_only(w, index, labels) for w in words & label)
    ]
    hits = whole if len(whole) == 1 else part
    return hits[0] if len(hits) == 1 and words <= labels[hits[0]] | _AROUND else None


def _only(word: str, index: int, labels: list[set[str]]) -> bool:
    return not any(word in label for other, label in enumerate(labels) if other != index)
