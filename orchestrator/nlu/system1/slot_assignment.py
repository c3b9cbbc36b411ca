"""Assignment of values to slots, by slot type and the words around a value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.nlu.clauses import EXCLUDING_WORDS, Mood, find_moods
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.classifier import features_around, put_kinds
from orchestrator.nlu.system1.extract.answers import find_booleans, read_answer
from orchestrator.nlu.system1.extract.days import SHIFTS, count_from, find_shifted
from orchestrator.nlu.system1.extract.extractor import (
    LISTS,
    Extractor,
    boolean_slots,
    find_takers,
    kinds_by_slot,
    kinds_of,
    type_name,
)
from orchestrator.nlu.system1.extract.found import DATE, MONEY, NAME, NUMBER, QUOTE, TIME, Candidate, Reading
from orchestrator.nlu.system1.extract.gazetteer import LISTED
from orchestrator.nlu.system1.extract.numbers import (
    TELL_PEOPLE,
    TIMES,
    count_people,
    count_single,
    is_pronoun,
)
from orchestrator.nlu.system1.extract.times import in_part_of_day
from orchestrator.nlu.system1.extract.which_day import find_named_day
from orchestrator.nlu.system1.linear import LinearModel
from orchestrator.nlu.system1.training.learning import NO_SLOT
from orchestrator.nlu.text import Utterance, word_set
from orchestrator.saying import say
from orchestrator.types import Json

PEOPLE = "people"
_LEAST_SHARE = 0.35  # minimum probability of a slot, divided by the number of possible slots
_LEAST_SHARE_OPEN = 0.5
_UNSEEN = 0.02  # odds of a slot without examples
_ASKED, _LISTED = 1.0, 1.0
"""Additional scores for the requested slot, and for slots that list the value."""
_LATER = 0.8  # penalty for each later date slot, because users usually say dates in order
_TELLING = frozenset({DATE, TIME, MONEY})  # kinds that decide the slot if only one slot takes them
_REACH = 12
"""Maximum distance of a cue before a value, in tokens."""
_UNMEANT = frozenset({Mood.EXCLUDED, Mood.FORBIDDEN})
_IS_WRONG = re.compile(r"(?:is|was|'s) (?:all )?(?:wrong|incorrect|(?:a|my) mistake|not (?:right|correct))\b")
_AFTER_NAME = word_set("to be should is must as not a the : = in for")  # between a slot's name and its value


@dataclass(frozen=True, slots=True)
class _FlowSlots:
    """Values that a flow's slots take. `kinds`: value kinds by slot. `things`: slots by the counted noun."""

    kinds: Mapping[str, tuple[str, ...]]
    things: Mapping[str, str]
    yes_or_no: Mapping[str, SlotSpec]
    people: str | None
    lists: frozenset[str]

    @classmethod
    def of(cls, flow: FlowSpec) -> _FlowSlots:
        kinds, slots = kinds_by_slot(flow.slots), flow.slots.values()
        things = {name[:-1]: name for name in kinds if name[-1] == "s" and NUMBER in kinds[name]}
        people = next((slot.name for slot in slots if slot.counts == PEOPLE), None)
        lists = frozenset(slot.name for slot in slots if type_name(slot) in LISTS)
        return cls(kinds, things, boolean_slots(flow.slots), people, lists)


@dataclass(frozen=True, slots=True)
class Guess:
    """A candidate for a slot. `share`: its probability."""

    share: float
    candidate: Candidate
    slot: SlotSpec


class SlotAssigner:
    """An assigner of candidates to slots, with a model from `learn_slots`."""

    def __init__(self, model: LinearModel, extractor: Extractor, flows: Iterable[FlowSpec]) -> None:
        self._model = model
        self._extractor = extractor
        slots = [slot for flow in flows for slot in flow.slots.values()]
        self._known: dict[str, _FlowSlots] = {}
        self._numbers = {slot.name for slot in slots if NUMBER in kinds_of(slot)}

    def find_slots(
        self, utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec, context: NluContext
    ) -> dict[str, Mention]:
        """Fill the slots of a flow with candidates, wishes, and the answer to a yes-or-no question."""
        is_active = context.active is not None and flow.dact == context.active.dact
        asked = context.question.slot if is_active else None
        known, words = self._know(flow), utterance.words
        mentions = self.assign(utterance, candidates, flow, asked)
        if not known.things.keys().isdisjoint(words):
            mentions = count_single(utterance, known.things) | mentions
        if known.people is not None and not TELL_PEOPLE.isdisjoint(words):
            counted = count_people(utterance)
            mentions |= {} if counted is None else {known.people: Mention(*counted)}
        if known.yes_or_no:
            mentions = find_booleans(utterance, known.yes_or_no) | mentions
        if asked is not None and asked in known.yes_or_no and asked not in mentions:
            answer = read_answer(utterance, known.yes_or_no[asked], self._extractor.gazetteer, context.today)
            mentions |= {} if answer is None else {asked: answer}
        mentions = count_from(mentions, flow, context.values) if is_active else mentions
        if SHIFTS.isdisjoint(words):
            return mentions
        shifted = find_shifted(utterance, flow, context)
        said = {word for mention in shifted.values() for word in mention.text.split()}
        # The “later” of “a day later” isn't a time of day.
        return shifted | {name: one for name, one in mentions.items() if one.text not in said}

    def _know(self, flow: FlowSpec) -> _FlowSlots:
        if flow.dact not in self._known:
            self._known[flow.dact] = _FlowSlots.of(flow)
        return self._known[flow.dact]

    def assign(
        self, utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec, asked: str | None
    ) -> dict[str, Mention]:
        """Assign the likeliest value to each slot of the flow. A value fills at most one slot."""
        slots, has_one = self._know(flow), "one" in utterance.words
        kinds, guesses = slots.kinds, list[Guess]()
        tokens, places = put_kinds(utterance.words, candidates)
        for candidate, place in zip(candidates, places, strict=True):
            if is_negated(utterance, candidate) or (has_one and is_pronoun(utterance, candidate)):
                continue
            possible = _takers(utterance, candidate, flow, kinds)
            named = named_slot(utterance, candidate, possible)
            if named is not None:
                guesses.append(Guess(1.0, candidate, named))
            elif possible:
                guesses += self._guess(candidate, features_around(tokens, place, asked), possible, asked)
            # After the answer to the question, further values are for other slots.
            asked = None if any(slot.name == asked for slot in possible) else asked
        guesses.sort(key=lambda guess: (-guess.share, guess.candidate.first, guess.slot.name))
        mentions: dict[str, Mention] = {}
        lists: dict[str, list[tuple[int, Mention]]] = {}
        used: set[int] = set()
        for guess in guesses:
            name, first = guess.slot.name, guess.candidate.first
            is_list = name in slots.lists
            if first in used or (name in mentions and not is_list):
                continue
            mention = self._mention(guess.candidate, guess.slot, kinds[name])
            if is_list:
                lists.setdefault(name, []).append((first, mention))
            mentions.setdefault(name, mention)
            used.add(first)
        return mentions | {name: _in_order(parts) for name, parts in lists.items()}

    def _guess(
        self,
        candidate: Candidate,
        around: Mapping[str, float],
        possible: Sequence[SlotSpec],
        asked: str | None,
    ) -> list[Guess]:
        """Return the likely slots for a candidate."""
        scores = dict(zip(self._model.labels, self._model.score(around).tolist(), strict=True))
        odds = {name: math.exp(min(60.0, score)) for name, score in scores.items()}
        powers: list[float] = []
        for place, slot in enumerate(possible):
            score = _ASKED * (slot.name == asked) + _LISTED * (f"{LISTED}{slot.name}" in candidate.readings)
            score -= _LATER * place * (candidate.kind == DATE)
            powers.append(odds.get(slot.name, _UNSEEN) * math.exp(score * self._model.sharpness))
        total = sum(powers) + odds.get(NO_SLOT, _UNSEEN * max(powers))
        if candidate.kind == NUMBER:  # "two bags" may count things that no slot of this flow takes
            elsewhere = self._numbers.difference(slot.name for slot in possible)
            total += max((odds.get(name, 0.0) for name in elsewhere), default=0.0)
        least = _LEAST_SHARE_OPEN if candidate.kind in {NAME, QUOTE} else _LEAST_SHARE
        if candidate.kind in _TELLING and len(possible) == 1:
            least = 0.0  # the kind decides the slot
        return [
            Guess(power / total, candidate, slot)
            for power, slot in zip(powers, possible, strict=True)
            if power / total >= least / len(possible)
        ]

    def _mention(self, candidate: Candidate, slot: SlotSpec, kinds: tuple[str, ...]) -> Mention:
        """Convert a candidate to a slot value. Correct misspelled names, and report unknown names."""
        for kind in kinds:
            reading = candidate.readings.get(kind)
            if reading is not None:
                mention = read_as(reading, candidate.text)
                if kind == TIME and isinstance(mention.value, str):
                    value = in_part_of_day(mention.value, candidate.text, slot.part_of_day)
                    mention = replace(mention, value=value)
                return mention
        repaired = self._extractor.gazetteer.repair(kinds[0], candidate.text)
        if repaired is not None:
            return read_as(repaired, candidate.text)
        what = (slot.entity or slot.name).replace("_", " ")
        return Mention(None, candidate.text, invalid=say("no_such_name", kind=what, name=candidate.text))


def _takers(
    utterance: Utterance, candidate: Candidate, flow: FlowSpec, kinds: Mapping[str, tuple[str, ...]]
) -> list[SlotSpec]:
    """List the slots that may take a candidate. In “two days longer”, the number doesn't count people."""
    takers = find_takers(candidate, flow.slots.values(), kinds)
    if candidate.kind == NUMBER and not TIMES.isdisjoint(utterance.words[candidate.last :][:1]):
        return [slot for slot in takers if slot.counts is None]
    return takers


def read_as(reading: Reading, text: str) -> Mention:
    return Mention(reading.value, text, reading.candidates, reading.invalid)


def _in_order(parts: list[tuple[int, Mention]]) -> Mention:
    """Return the values of a list in message order."""
    mentions = [mention for _, mention in sorted(parts, key=lambda part: part[0])]
    if len(mentions) == 1:
        (mention,) = mentions
        return mention if mention.value is None else replace(mention, value=_values_of(mention.value))
    values = [value for mention in mentions for value in _values_of(mention.value)]
    text = ", ".join(mention.text for mention in mentions)
    return Mention(values, text, invalid=next((m.invalid for m in mentions if m.invalid), None))


def _values_of(held: Json) -> list[Json]:
    return cast("list[Json]", held) if type(held) is list else [held]


def is_negated(utterance: Utterance, candidate: Candidate) -> bool:
    """Return whether the message negates this value: "not X", "I don't want to fly to X", "X is wrong"."""
    words = utterance.words
    if _IS_WRONG.match(" ".join(words[candidate.last : candidate.last + 4])) is not None:
        return True
    if words[: candidate.first][-1:] == ["good"]:
        return True  # “good morning”
    before = words[max(0, candidate.first - _REACH) : candidate.first + 1]
    is_cued = not EXCLUDING_WORDS.isdisjoint(before)
    return is_cued and find_moods(before, ()).get(len(before) - 1) in _UNMEANT


def named_slot(utterance: Utterance, candidate: Candidate, possible: Sequence[SlotSpec]) -> SlotSpec | None:
    """Find the slot that is named before a value: "the destination should be Prague"."""
    place, words = candidate.first - 1, utterance.words
    while place >= 0 and words[place] in _AFTER_NAME:
        place -= 1
    said = words[place] if 0 <= place < candidate.first - 1 else None
    own = None if said is None else next((slot for slot in possible if slot.name == said), None)
    is_day = own is None and candidate.kind == DATE and len(possible) > 1
    return find_named_day(words, candidate.first, possible) if is_day else own
