"""Disambiguation between several values for a slot, and several slots for a value, by words."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.nlu_context import NluContext, PastFlow
from orchestrator.nlu.system1.extract.extractor import fits, kinds_by_slot
from orchestrator.nlu.system1.extract.found import DATE, NAME, NUMBER, QUOTE, RANGE, Candidate
from orchestrator.nlu.system1.extract.gazetteer import Gazetteer
from orchestrator.nlu.system1.message_kind import Evidence
from orchestrator.nlu.system1.slot_assignment import is_negated
from orchestrator.nlu.text import NARROWING, PREPOSITIONS, Utterance, word_set
from orchestrator.types import Json

_INSTEAD = re.compile(
    r"\b(?:no|not|sorry|wait|actually|rather|instead|i mean|make (?:it|that))\b", re.IGNORECASE
)
_STRETCHES = [["to"], ["till"], ["until"], ["through"], ["-"], ["–"]]
_LONGEST_STRETCH = 7
"""Days after the first that are worth offering."""
_BEFORE_PLACES = word_set(
    "to from via into in at for towards meant mean and or but not through near of be is"
)
_JOINING = [["and"], ["or"], [","], [",", "and"], [",", "or"]]
_LOOSE = frozenset({NAME, QUOTE, NUMBER, RANGE})
"""Kinds of values with frequent false positives."""


def find_rivals(
    utterance: Utterance,
    candidates: Sequence[Candidate],
    mentions: Mapping[str, Mention],
    kinds: Mapping[str, Sequence[str]],
) -> dict[str, Mention]:
    """Find slots with several values in one request. The assistant then asks which value is meant.

    A value without a slot belongs to the slot of the adjacent value of the same kind: the value it is joined to, or
    else the value before. `kinds`: accepted kinds by slot.
    """
    candidates = [one for one in candidates if not is_negated(utterance, one)]
    if _INSTEAD.search(utterance.text):
        return {}
    owners = {mention.text: name for name, mention in mentions.items()}
    found = [
        one
        for one in candidates
        if one.kind not in _LOOSE and one.kind in one.readings and one.readings[one.kind].value is not None
    ]
    values: dict[str, list[Json]] = {}
    for place, candidate in enumerate(found):
        alike = [one for one in found if one.kind == candidate.kind and one.text in owners]
        after = next((one for one in found[place + 1 :] if one in alike), None)
        before = next((one for one in reversed(found[:place]) if one in alike), None)
        joined = after is not None and utterance.words[candidate.last : after.first] in _JOINING
        neighbour = after if joined or before is None else before
        if (
            neighbour is not None
            and candidate.text not in owners
            and is_apart(utterance, candidate, neighbour)
        ):
            continue
        name = owners.get(candidate.text, None if neighbour is None else owners[neighbour.text])
        if name is not None and candidate.kind in kinds[name]:
            values.setdefault(name, []).append(candidate.readings[candidate.kind].value)
    between = _days_between(utterance, [one for one in found if one.kind == DATE])
    several = {
        name: between if set(map(str, said)) < set(between) else tuple(dict.fromkeys(map(str, said)))
        for name, said in values.items()
    }
    return {
        name: Mention(None, mentions[name].text, said)
        for name, said in several.items()
        if len(said) > 1 and mentions[name].value in said
    }


def is_apart(utterance: Utterance, candidate: Candidate, owner: Candidate) -> bool:
    """Return whether a preposition separates a value from another: “to Rome via Munich” goes to Rome."""
    own, other = (utterance.words[max(0, one.first - 1)] if one.first else "" for one in (candidate, owner))
    if own in NARROWING:
        return True
    return candidate.kind != DATE and own != other and {own, other} <= PREPOSITIONS


def _days_between(utterance: Utterance, days: Sequence[Candidate]) -> tuple[str, ...]:
    """List the days of a stretch that two dates are the ends of: "between 3 and 5 December" may be the 4th as well."""
    if len(days) != 2:
        return ()
    joint = utterance.words[days[0].last : days[1].first]
    if joint not in _STRETCHES and not (joint == ["and"] and "between" in utterance.words):
        return ()
    first, last = (date.fromisoformat(str(one.readings[DATE].value)) for one in days)
    return tuple(
        str(first + timedelta(days=day)) for day in range(min((last - first).days, _LONGEST_STRETCH) + 1)
    )


def doubt_little_known(
    evidence: Evidence, mentions: Mapping[str, Mention], gazetteer: Gazetteer
) -> dict[str, Mention]:
    """Mark a little-known place as doubtful if no preposition supports it: "I'd rather fly Iberia"."""
    words = evidence.utterance.words
    loose = {
        one.text
        for one in evidence.candidates
        if one.first and words[one.first - 1].isalpha() and words[one.first - 1] not in _BEFORE_PLACES
        # what has several readings may be of a kind for which it has none
        if one.kind in one.readings and gazetteer.is_little_known(one.kind, one.readings[one.kind].value)
    }
    return {
        name: replace(said, value=None, candidates=(said.value,))
        if said.value and said.text in loose
        else said
        for name, said in mentions.items()
    }


def find_owners(
    evidence: Evidence, context: NluContext, takes: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the slots that a corrected value may be for: only the one given last, if it is one.

    `takes`: the kinds of values that the slots of the running flow take.
    """
    active, candidates = context.active, evidence.candidates
    if active is None or len(candidates) != 1 or not _is_uncued(evidence.utterance, candidates[0]):
        return ()
    fitting = [
        name
        for name, slot in active.slots.items()
        if (name in context.values or name == context.question.slot)
        and fits(candidates[0], slot, takes[name])
    ]
    if len(fitting) < 2:
        return ()
    said = {reading.value for reading in candidates[0].readings.values()}
    before = [name for name in fitting if context.replaced.get(name) in said]
    if len(before) == 1:  # "no, Rome was right"
        return (before[0],)
    latest = [name for name in fitting if name in context.recent]
    return tuple(latest if len(latest) == 1 else fitting)


def assign_to_past(found: dict[str, Mention], past: PastFlow, evidence: Evidence) -> dict[str, Mention]:
    """Assign a value without cues to the most likely changed slot of a completed task.

    Users who change their plans change the destination, seldom the origin; Parley asks before it acts
    (RT-12).
    """
    if len(found) != 1 or len(evidence.candidates) != 1:
        return found
    if not _is_uncued(evidence.utterance, evidence.candidates[0]):
        return found
    takes = kinds_by_slot(past.spec.slots)
    fitting = [
        name
        for name, slot in past.spec.slots.items()
        if slot.type == "target" and name in past.values and fits(evidence.candidates[0], slot, takes[name])
    ]
    return {fitting[0]: next(iter(found.values()))} if len(fitting) == 1 else found


def _is_uncued(utterance: Utterance, candidate: Candidate) -> bool:
    """Return whether no word around a value indicates its slot."""
    before = utterance.words[: candidate.first]
    after = utterance.words[candidate.last :]
    return all(not word.isalnum() or word in _UNCUED or _is_taste(word) for word in (*before, *after))


def is_praise(evidence: Evidence) -> bool:
    """Return whether the only value is a word of praise: “nice!” and “very nice” name no city.

    “To Nice” and “Nice instead” do.
    """
    words = evidence.utterance.words
    values = [one for one in evidence.candidates if words[one.first : one.last] != ["one"]]
    if len(values) != 1:
        return False
    value = values[0]
    around = {*words[: value.first], *words[value.last :]}
    cues = PREPOSITIONS | _UNCUED
    return all(map(_is_taste, words[value.first : value.last])) and cues.isdisjoint(around)


def _is_taste(word: str) -> bool:
    """Return whether a word only says that something is liked or wished."""
    return word in _TASTE or word.endswith("ly")


_TASTE = word_set(
    "prefer love like want nice great good fine better best wonderful let would be sounds looks seems"
)
_UNCUED = word_set(
    "no not sorry actually wait oops i i'm meant mean said say make it rather instead yes but ok okay it's was were is "
    "right better correct fine after all then again hmm well oh please thanks would be nicer"
)


def slots_named(words: Collection[str], rivals: Sequence[SlotSpec]) -> list[str]:
    """Return those of several slots that the words name: by name, by a distinctive word, or by any word."""
    own = {
        slot.name: word_set(f"{slot.name} {slot.description}".replace("_", " ").lower()) for slot in rivals
    }
    weights: dict[str, int] = {}
    for name, known in own.items():
        others = frozenset[str]().union(*(words for other, words in own.items() if other != name))
        told = {word for word in known - others if any(_is_form_of(said, word) for said in words)}
        weights[name] = bool(told) + bool(told - STOP_WORDS) + (not told.isdisjoint(name.split("_")))
    best = max(weights.values(), default=0)
    return [name for name, weight in weights.items() if weight == best > 0]


def _is_form_of(said: str, word: str) -> bool:
    """Return whether a word equals another or extends it: "leaving" of "leave"."""
    return said == word or (len(word) > 3 and said.startswith(word[:-1]) and len(said) > len(word))
