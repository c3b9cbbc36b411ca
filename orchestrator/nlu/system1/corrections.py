"""Corrections that name no slot, and corrections that reject a value."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.dates import count_from
from orchestrator.nlu.system1.extract.extractor import fits, kinds_by_slot
from orchestrator.nlu.system1.extract.found import Candidate
from orchestrator.nlu.system1.slot_assignment import is_negated
from orchestrator.nlu.text import PREPOSITIONS, Utterance, word_set
from orchestrator.types import Json

_INSTEAD = PREPOSITIONS | word_set("no not sorry wait actually rather instead mean make")
"""Words around a new value."""


def find_owners(
    utterance: Utterance, candidates: Sequence[Candidate], mentions: Collection[str], context: NluContext
) -> tuple[str, ...]:
    """Return the possible slots for a single corrected value if no word indicates the slot."""
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
    """Return whether no preposition precedes a value, and the message has no word of a slot name."""
    words = utterance.words
    before = words[candidate.first - 1] if candidate.first else ""
    around = {*words[: candidate.first], *words[candidate.last :]} - STOP_WORDS
    names = {word for name in flow.slots for word in name.split("_")}
    return before not in PREPOSITIONS and around.isdisjoint(names)


def find_rejected(
    utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec, values: Mapping[str, Json]
) -> str | None:
    """Return the only slot whose value the message rejects, as in “not Madrid but Porto”, or None."""
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
    """Assign the new value to the slot with the rejected value. Without a new value, empty the slot."""
    if old is None or old in mentions or len(mentions) > 1:
        return dict(mentions)
    return {old: next(iter(mentions.values()), Mention(None, text))}
