"""Corrections that don't name a slot or that reject a value, and repetitions of a completed task."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.understanding import Mention, Source, Understanding
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.nlu_context import NluContext, PastFlow
from orchestrator.nlu.system1.extract.dates import count_from
from orchestrator.nlu.system1.extract.extractor import fits, kinds_by_slot
from orchestrator.nlu.system1.extract.found import Candidate
from orchestrator.nlu.system1.requests import REPEATING
from orchestrator.nlu.system1.slot_assignment import is_negated, slot_words
from orchestrator.nlu.text import PREPOSITIONS, Utterance, word_at, word_set
from orchestrator.types import Json

_BEHIND_REPEATING = STOP_WORDS | word_set("one thing please like again but")
_INSTEAD = PREPOSITIONS | word_set("no not sorry wait actually rather instead mean make")
"""Words that often surround a new value."""


def find_owners(
    utterance: Utterance, candidates: Sequence[Candidate], mentions: Collection[str], context: NluContext
) -> tuple[str, ...]:
    """Return the possible slots for a message's only value if no word indicates the slot, or ()."""
    active = context.active
    is_single = len(mentions) == 1 == len(candidates) and context.question.slot not in mentions
    if active is None or not is_single or not _is_uncued(utterance, candidates[0], active):
        return ()
    kinds = kinds_by_slot(active.slots)
    given = {*context.values, context.question.slot}
    fitting = [
        name for name in kinds if name in given and fits(candidates[0], active.slots[name], kinds[name])
    ]
    latest = [name for name in fitting if name in context.recent]
    return tuple(latest if len(latest) == 1 else fitting)


def _is_uncued(utterance: Utterance, candidate: Candidate, flow: FlowSpec) -> bool:
    """Return whether no preposition precedes a value, and the message has no word from a slot name."""
    words = utterance.words
    around = {*words[: candidate.first], *words[candidate.last :]} - STOP_WORDS
    is_introduced = word_at(words, candidate.first - 1) in PREPOSITIONS
    return not is_introduced and around.isdisjoint(slot_words((flow,)))


def find_rejected(
    utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec, values: Mapping[str, Json]
) -> str | None:
    """Return the only slot whose value the message rejects (“not Madrid but Porto”), or None if it isn't unique."""
    rejected = [one for one in candidates if is_negated(utterance, one)]
    said = [Mention(reading.value, one.text) for one in rejected for reading in one.readings.values()]
    old = {
        name
        for name, value in values.items()
        if any(count_from({name: one}, flow, values)[name].value == value for one in said)
    }
    return old.pop() if len(old) == 1 else None


def is_ordinary(utterance: Utterance, candidate: Candidate, common: Collection[str]) -> bool:
    """Return whether a known name is an ordinary word, because no other word introduces a value: “nice!”."""
    words, first = utterance.words, candidate.first
    is_word = candidate.kind.startswith("entity:") and words[first] in common and candidate.last == first + 1
    return is_word and _INSTEAD.isdisjoint([*words[:first], *words[first + 1 :]])


def replace_old(old: str | None, text: str, mentions: Mapping[str, Mention]) -> dict[str, Mention]:
    """Assign the new value to `old`, the slot with the rejected value. Without a new value, empty the slot.

    Return `mentions` unchanged if `old` is None or already has a new value, or if there are several new values.
    """
    if old is None or old in mentions or len(mentions) > 1:
        return dict(mentions)
    return {old: next(iter(mentions.values()), Mention(None, text))}


def find_repeated(utterance: Utterance, context: NluContext) -> PastFlow | None:
    """Return the completed task that “the same”, “another” or “again” repeats (IR-7), or None."""
    words = utterance.words
    for past in context.completed if context.active is None else ():
        nouns = {one for word in past.spec.dact.split("_") for one in (word, f"{word}s")}
        is_deed = past.spec.family is not Family.READ
        for place, word in enumerate(words):
            behind = word_at(words, place + 1)
            follows = not behind.isalnum() or behind in _BEHIND_REPEATING or behind in nouns
            is_named = word != "again" or not nouns.union({"do"}).isdisjoint(words[:place])
            if word in REPEATING and follows and is_named and (word == "same" or (is_deed and behind)):
                return past
    return None


def repeat(utterance: Utterance, past: PastFlow, said: Mapping[str, Mention]) -> Understanding | None:
    """Return the task with its old values, changed by `said`, without old values that depend on a changed value.

    Return None if no value changes and the flow needs no confirmation.
    """
    spec = past.spec
    counted = count_from({name: one for name, one in said.items() if one.text != "one"}, spec, past.values)
    changed = {name: one for name, one in counted.items() if one.value != past.values.get(name)}
    if not (changed or spec.confirm):
        return None
    kept = {
        name: Mention(value)
        for name, value in past.values.items()
        if name in spec.slots and changed.keys().isdisjoint(spec.slots[name].depends_on)
    }
    request = Understanding.of_task(spec, Source.SYSTEM1, utterance.text, {**kept, **changed})
    return replace(request, copied=True)
