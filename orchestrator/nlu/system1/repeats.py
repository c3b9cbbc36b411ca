"""Repetitions of a completed task: “the same but …”, “another one for …” (IR-7)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.nlu.nlu_context import NluContext, PastFlow
from orchestrator.nlu.system1.extract.days import count_from
from orchestrator.nlu.text import Utterance, tokenize, word_set

REPEATING = word_set("same another more again")
_ONE = word_set("one once")
_THAT = word_set("that it this one")
_JOINTS = word_set("but for on in with to from again thing one please like as only and at")
"""Words that can follow “same” or “another”; “the same day” is a value."""


def find_repeated(utterance: Utterance, context: NluContext) -> PastFlow | None:
    """Return the completed task to repeat, or None."""
    if context.active is not None:
        return None
    for past in context.completed:
        if _asks_again(utterance.words, past.spec):
            return past
    return None


def _asks_again(words: list[str], spec: FlowSpec) -> bool:
    nouns = {one for word in spec.dact.split("_") for one in (word, f"{word}s")}
    for place, word in enumerate(words):
        behind = words[place + 1] if place + 1 < len(words) else ""
        follows = not behind.isalnum() or behind in _JOINTS or behind in nouns
        follows = follows or (behind in _words_of(spec.examples) and _is_like_that(words[place + 2 :]))
        if follows and word == "same":
            return True
        if spec.family is Family.READ or not behind:
            continue
        doing, before = ["", "", *words][place : place + 2]
        is_more = word == "more" and before in _ONE and (follows or behind == "of")
        is_again = word == "again" and before in _THAT and doing in {"do", spec.dact.split("_")[0]}
        if is_more or is_again or (follows and word == "another"):
            return True
    return False


def _is_like_that(words: list[str]) -> bool:
    """Return whether words compare with what there was: “like that” of “one more ticket like that”."""
    return any(first == "like" and second in _THAT for first, second in pairwise(words))


@lru_cache(maxsize=256)
def _words_of(examples: tuple[str, ...]) -> frozenset[str]:
    """Return the words of a flow's examples, also without the plural's “s”."""
    words = frozenset(word for example in examples for word in tokenize(example).words)
    return words | {word.removesuffix("s") for word in words}


def repeat(utterance: Utterance, past: PastFlow, said: Mapping[str, Mention]) -> Understanding | None:
    """Return the task with the old values and those that were `said`; those that depend on a change are left out."""
    spec = past.spec
    if "more" in utterance.words:  # "one more" counts no passengers
        said = {name: one for name, one in said.items() if one.text != "one"}
    changed = {
        name: one
        for name, one in count_from(said, spec, past.values).items()
        if one.value is None or one.value != past.values.get(name)
    }
    if not (changed or spec.confirm):
        return None
    kept = {
        name: Mention(value)
        for name, value in past.values.items()
        if name in spec.slots and changed.keys().isdisjoint(spec.slots[name].depends_on)
    }
    scores = (FlowScore(spec.dact, 1.0),)
    text = utterance.text
    slots = {**kept, **changed}
    return Understanding(MessageKind.TASK, Source.SYSTEM1, text, spec.intent, scores, slots, copied=True)
