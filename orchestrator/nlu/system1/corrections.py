"""Corrections: several values for a slot, several slots for a value, and values of completed tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.specification import Family, FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.nlu_context import NluContext, PastFlow
from orchestrator.nlu.system1.extract.days import count_from
from orchestrator.nlu.system1.extract.extractor import fits, kinds_by_slot, kinds_of
from orchestrator.nlu.system1.extract.found import DATE, NAME, NUMBER, QUOTE, RANGE, Candidate
from orchestrator.nlu.system1.extract.gazetteer import Gazetteer
from orchestrator.nlu.system1.extract.numbers import ORDINALS, is_pronoun
from orchestrator.nlu.system1.requests import request_verbs, slot_words, words_of
from orchestrator.nlu.system1.slot_assignment import is_negated
from orchestrator.nlu.text import NARROWING, PREPOSITIONS, Utterance, word_set
from orchestrator.types import Json

_INSTEAD = word_set("no not sorry wait actually rather instead mean make")
_STRETCHES = (["to"], ["till"], ["until"], ["through"], ["-"], ["–"], ["and"])
_LONGEST_STRETCH = 7
"""Maximum number of days to offer after the first."""
_LOOSE = frozenset({NAME, QUOTE, NUMBER, RANGE})
"""Kinds of values with frequent false positives."""
UNDOING = word_set("cancel undo delete refund revoke")
REPEATING = word_set("same another more again")
_AFTER_REPEATING = STOP_WORDS | word_set("one thing please like again")


def find_rivals(
    utterance: Utterance, candidates: Sequence[Candidate], mentions: Mapping[str, Mention], flow: FlowSpec
) -> dict[str, Mention]:
    """Return slots that have several values in one request. The assistant then asks which value to use."""
    if not _INSTEAD.isdisjoint(utterance.words):
        return {}
    kinds, rivals = kinds_by_slot(flow.slots), dict[str, Mention]()
    certain = [one for one in candidates if one.kind not in _LOOSE and not is_negated(utterance, one)]
    owners = {one.text: name for name, one in mentions.items() if one.value is not None}
    said: dict[str, list[Json]] = {}
    for place, one in enumerate(certain):
        alike = [two for two in certain if two.kind == one.kind and two.text in owners]
        behind = [two for two in certain[place + 1 :] if two in alike]
        nearest = (
            one if one in alike else next((two for two in reversed(certain[:place]) if two in alike), None)
        )
        nearest = nearest or next(iter(behind), None)
        if nearest is not None and (nearest is one or not is_apart(utterance, one, nearest)):
            name = owners[nearest.text]
            if one.kind in kinds[name]:
                said.setdefault(name, []).append(one.readings[one.kind].value)
    days = [one for one in certain if one.kind == DATE]
    stretch = _days_between(utterance, days) if any(one.text not in owners for one in days) else []
    for name, found in said.items():
        values = stretch if mentions[name].value in stretch else found
        if len(several := dict.fromkeys(str(value) for value in values if value is not None)) > 1:
            rivals[name] = Mention(None, mentions[name].text, tuple(several))
    return rivals


def is_apart(utterance: Utterance, candidate: Candidate, owner: Candidate) -> bool:
    """Return whether a preposition separates two values, as in “to Rome via Munich”."""
    own, other = (utterance.words[max(0, one.first - 1)] if one.first else "" for one in (candidate, owner))
    if own in NARROWING:
        return True
    return candidate.kind != DATE and own != other and {own, other} <= PREPOSITIONS


def _days_between(utterance: Utterance, days: Sequence[Candidate]) -> list[Json]:
    """List the days from one date to another, because “between 3 and 5 December” includes the 4th."""
    if len(days) != 2 or utterance.words[days[0].last : days[1].first] not in _STRETCHES:
        return []
    if "between" not in utterance.words and utterance.words[days[0].last] == "and":
        return []
    first, last = (date.fromisoformat(str(one.readings[DATE].value)) for one in days)
    return [str(first + timedelta(day)) for day in range(min((last - first).days, _LONGEST_STRETCH) + 1)]


def find_owners(
    utterance: Utterance, candidates: Sequence[Candidate], mentions: Collection[str], context: NluContext
) -> tuple[str, ...]:
    """Return the possible slots for a single corrected value if no word indicates the slot."""
    active = context.active
    is_answer = context.question.slot in mentions
    if (
        active is None
        or is_answer
        or len(mentions) != 1
        or len(candidates) != 1
        or not _is_uncued(utterance, candidates[0], active)
    ):
        return ()
    kinds = kinds_by_slot(active.slots)
    given = {*context.values, context.question.slot}
    fitting = [
        name for name in kinds if name in given and fits(candidates[0], active.slots[name], kinds[name])
    ]
    said = {reading.value for reading in candidates[0].readings.values()}
    before = [name for name in fitting if context.replaced.get(name) in said]
    if len(before) == 1:
        return (before[0],)  # "no, Rome was right"
    latest = [name for name in fitting if name in context.recent]
    return tuple(latest if len(latest) == 1 else fitting)


def assign_to_past(
    found: dict[str, Mention], past: PastFlow, utterance: Utterance, candidates: Sequence[Candidate]
) -> dict[str, Mention]:
    """Assign a value without cues to a completed task's destination, which users change most often."""
    if len(found) != 1 or len(candidates) != 1 or not _is_uncued(utterance, candidates[0], past.spec):
        return found
    kinds = kinds_by_slot(past.spec.slots)
    fitting = [
        name
        for name, slot in past.spec.slots.items()
        if slot.type == "target" and name in past.values and fits(candidates[0], slot, kinds[name])
    ]
    return {fitting[0]: next(iter(found.values()))} if len(fitting) == 1 else found


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
    """Return whether a name is only an ordinary word without a preposition: “nice!” is not a city."""
    words = utterance.words
    around = {*words[: candidate.first], *words[candidate.last :]}
    is_word = candidate.kind.startswith("entity:") and words[candidate.first : candidate.last] == [
        word for word in words[candidate.first : candidate.last][:1] if word in common
    ]
    return is_word and around.isdisjoint(PREPOSITIONS | _INSTEAD)


def replace_old(old: str | None, text: str, mentions: Mapping[str, Mention]) -> dict[str, Mention]:
    """Assign the new value to the slot with the rejected value. Without a new value, empty the slot."""
    if old is None or old in mentions or len(mentions) > 1:
        return dict(mentions)
    return {old: next(iter(mentions.values()), Mention(None, text))}


def doubt_little_known(
    utterance: Utterance, candidates: Sequence[Candidate], mentions: Mapping[str, Mention], names: Gazetteer
) -> dict[str, Mention]:
    """Ask about a little-known name without a preposition or article before it: "I'd rather fly Iberia"."""
    doubtful = {
        one.text
        for one in candidates
        if one.first and utterance.words[one.first - 1] not in STOP_WORDS | PREPOSITIONS | _INSTEAD
        and one.kind in one.readings and names.is_little_known(one.kind, one.readings[one.kind].value)
    }  # fmt: skip
    return {
        name: replace(one, value=None, candidates=(one.value,)) if one.value and one.text in doubtful else one
        for name, one in mentions.items()
    }


def read_plan_value(
    utterance: Utterance, candidates: Sequence[Candidate], plan: PlanFlow, found: Mapping[str, Mention]
) -> Understanding | None:
    """Interpret "leave on Tuesday" as the plan's departure date, regardless of the running step.

    `found`: the message's values for the plan's slots.
    """
    if len(candidates) != 1 or len(found) != 1 or not plan.rounds:
        return None
    (said,), slots = candidates, plan.spec.slots
    fitting = [
        slots[name] for name in plan.slots if name in slots and fits(said, slots[name], kinds_of(slots[name]))
    ]
    around = [*utterance.words[: said.first], *utterance.words[said.last :]]
    named = slots_named(around, fitting) if len(fitting) > 1 else []
    if not named:
        return None
    values, either = (
        dict.fromkeys(named[:1], next(iter(found.values()))),
        tuple(named) if len(named) > 1 else (),
    )
    kind, intent = MessageKind.CORRECTION, plan.spec.intent
    return Understanding(
        kind, Source.SYSTEM1, utterance.text, intent, slots=values, target=plan.dact, either=either
    )


def slots_named(words: Collection[str], rivals: Sequence[SlotSpec]) -> list[str]:
    """Return the slots that match the words best: by name, by a distinctive word, or by any word."""
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
    """Return whether a word equals or extends another word, such as "leaving" and "leave"."""
    return said == word or (len(word) > 3 and said.startswith(word[:-1]) and len(said) > len(word))


def find_undone(
    utterance: Utterance, candidates: Sequence[Candidate], flows: Iterable[FlowSpec], context: NluContext
) -> Understanding | None:
    """Interpret "cancel it" after tasks as a flow that takes their outputs and has examples with this verb."""
    verbs, done = UNDOING.intersection(utterance.words), context.completed
    held = {str(value) for past in done for value in past.values.values()}
    is_other = not all(is_pronoun(utterance, one) or held & values_in(one) for one in candidates)
    if context.tasks or is_other:
        return None
    given = {name for past in done for name in past.outputs}
    fitting = [flow for flow in flows if given & {*flow.inputs} and verbs & request_verbs((flow,))]
    if len(fitting) != 1:
        return None
    flow, scores = fitting[0], (FlowScore(fitting[0].dact, 1.0),)
    place = next((ORDINALS[word] for word in utterance.words if word in ORDINALS), None)
    slots: dict[str, Mention] = {}
    for name in flow.inputs if place is not None else ():
        values = list(dict.fromkeys(past.outputs[name] for past in reversed(done) if name in past.outputs))
        if place is not None and len(values) > max(place, 1):
            slots[name] = Mention(values[place], utterance.text)
    return Understanding(MessageKind.TASK, Source.SYSTEM1, utterance.text, flow.intent, scores, slots)


def values_in(candidate: Candidate) -> set[str]:
    return {str(reading.value) for reading in candidate.readings.values()}


def find_repeated(utterance: Utterance, context: NluContext) -> PastFlow | None:
    """Return the completed task to repeat for “the same” or “another” (IR-7), or None."""
    words = utterance.words
    for past in context.completed if context.active is None else ():
        nouns = {one for word in past.spec.dact.split("_") for one in (word, f"{word}s")}
        if "like" in words:  # “one more ticket like that”
            nouns |= slot_words(past.spec) | words_of(past.spec.examples)
        for place, word in enumerate(words):
            behind = words[place + 1] if place + 1 < len(words) else ""
            follows = not behind.isalnum() or behind in _AFTER_REPEATING or behind in nouns
            is_deed = past.spec.family is not Family.READ and bool(behind)
            again = word == "again" and is_deed and not nouns.union({"do"}).isdisjoint(words[:place])
            more = (
                word in {"another", "more"}
                and is_deed
                and (word == "another" or words[place - 1] in {"one", "once"})
            )
            if follows and (word == "same" or again or more):
                return past
    return None


def repeat(utterance: Utterance, past: PastFlow, said: Mapping[str, Mention]) -> Understanding | None:
    """Return the task with its old values and `said`, without old values that depend on a change."""
    spec = past.spec
    said = {name: one for name, one in said.items() if one.text != "one"}  # "one more" has no count
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
    scores, slots = (FlowScore(spec.dact, 1.0),), {**kept, **changed}
    return Understanding(
        MessageKind.TASK, Source.SYSTEM1, utterance.text, spec.intent, scores, slots, copied=True
    )
