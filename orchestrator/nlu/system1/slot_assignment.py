"""Assignment of values to slots, with the words around values that `learning` has learned.

Types decide what is possible, and the words around a value what is likely.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import cast

import numpy as np

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.nlu.clauses import EXCLUDING_WORDS, Mood, find_moods
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.classifier import AROUND, LinearModel, describe_around, put_kinds
from orchestrator.nlu.system1.extract.answers import cue_phrases, find_booleans, read_answer
from orchestrator.nlu.system1.extract.days import SHIFTS, count_from, find_shifted
from orchestrator.nlu.system1.extract.extractor import (
    LISTS,
    Extractor,
    boolean_slots,
    kinds_by_slot,
    type_name,
    value_kind,
)
from orchestrator.nlu.system1.extract.found import DATE, MONEY, NAME, NUMBER, QUOTE, TIME, Candidate, Reading
from orchestrator.nlu.system1.extract.numbers import (
    TELL_PEOPLE,
    TIMES,
    count_people,
    count_single,
    is_pronoun,
)
from orchestrator.nlu.system1.extract.times import in_part_of_day
from orchestrator.nlu.system1.extract.which_day import find_named_day
from orchestrator.nlu.text import Utterance, word_set
from orchestrator.saying import say
from orchestrator.types import Json

NO_SLOT = "-"
PEOPLE = "people"
_LEAST_SHARE = 0.35  # a slot must be this likely, among the slots the value could fill and none of them
_LEAST_SHARE_OPEN = 0.5
_UNSEEN = 0.02  # the odds of a slot that no example has
_ASKED, _LISTED = 2.0, 1.0
"""Scores for a slot regardless of the words around a value: it was asked for; it lists the value."""
_LATER = 0.8  # against each further day of a flow: people say the days of a journey in their order
_TELLING = frozenset({DATE, TIME, MONEY})  # decide the slot by themselves, where only one takes them
_UNWANTED = re.compile(
    r"\b(?:(?:not|isn['’]?t|never)(?: (?:to|from|on|in|at|with|for|by|the|an?|my))?|instead of|rather than"
    r"|(?:do(?:es)? not|(?:do|does)n['’]?t|no longer)(?: (?:really|even))? (?:want|wish|need|like|feel like)"
    r"(?: (?!(?:and|but|or|more|less|than|before|after|over|under|only|just|instead|because|if)\b)\w+){0,6}"
    r"|^good) $"
)
"""Words before a value that is not meant; "good morning" is a greeting."""
_UNWANTING = word_set(
    "not isn't isn’t isnt never of than don't don’t dont doesn't doesn’t doesnt longer good"
)
"""Words at least one of which must occur there."""
_REACH = 12
"""Tokens before a value among which a cue may stand."""
_UNMEANT = frozenset({Mood.EXCLUDED, Mood.FORBIDDEN})
_WRONG = word_set("wrong incorrect mistake right correct")
_IS_WRONG = re.compile(r"(?:is|was|'s) (?:all )?(?:wrong|incorrect|(?:a|my) mistake|not (?:right|correct))\b")
"""Words after such a value; they include one of `_WRONG`."""
_AFTER_NAME = word_set("to be should is must as not a the : = in for")  # between a slot's name and its value


def _no_takers() -> dict[tuple[bool | str, ...], list[SlotSpec]]:
    return {}


@dataclass(frozen=True, slots=True)
class FlowSlots:
    """The values that the slots of a flow accept.

    `kinds`, `own`, `lists`, `booleans`: by slot. `things`: slots by the noun that they count. `takers`: cached
    slots by accepted kinds. `cues`: first words of boolean slots' phrases. `people`: the slot that counts
    people.
    """

    kinds: Mapping[str, tuple[str, ...]]
    own: Mapping[str, str]
    lists: frozenset[str]
    booleans: Mapping[str, SlotSpec]
    things: Mapping[str, str]
    cues: frozenset[str]
    people: str | None
    takers: dict[tuple[bool | str, ...], list[SlotSpec]] = field(default_factory=_no_takers)

    @classmethod
    def of(cls, flow: FlowSpec) -> FlowSlots:
        kinds = kinds_by_slot(flow.slots)
        lists = frozenset(slot.name for slot in flow.slots.values() if type_name(slot) in LISTS)
        own = {name: value_kind(name) for name in flow.slots}
        things = {name[:-1]: name for name in flow.slots if name[-1] == "s" and NUMBER in kinds[name]}
        booleans = boolean_slots(flow.slots)
        cues = frozenset(phrase[0] for slot in booleans.values() for phrase in cue_phrases(slot))
        people = next((slot.name for slot in flow.slots.values() if slot.counts == PEOPLE), None)
        return cls(kinds, own, lists, booleans, things, cues, people)

    def find_takers(self, utterance: Utterance, candidate: Candidate, flow: FlowSpec) -> list[SlotSpec]:
        """List the slots of the flow that may take a candidate."""
        kinds = (candidate.kind == NAME, *candidate.readings)
        takers = self.takers.get(kinds)
        if takers is None:
            takers = [slot for slot in flow.slots.values() if fits(candidate, slot, self.kinds[slot.name])]
            self.takers[kinds] = takers
        if candidate.kind == NUMBER and not TIMES.isdisjoint(utterance.words[candidate.last :][:1]):
            return [slot for slot in takers if slot.counts is None]  # "two days longer"
        return takers


@dataclass(frozen=True, slots=True)
class Guess:
    """A candidate for a slot, and how likely."""

    share: float
    candidate: Candidate
    slot: SlotSpec


class SlotAssigner:
    """Assigns candidates to slots with a model from `learn_slots`."""

    def __init__(self, model: LinearModel, extractor: Extractor, flows: Iterable[FlowSpec]) -> None:
        self._model = model
        counts = [AROUND.get(name.partition(":")[0], 0.0) for name in model.places]
        weights = model.weights * np.array(counts).reshape(-1, 1)
        self._rows = np.vstack([weights, np.zeros((1, len(model.labels)))])
        """The weights, each with what its feature counts; the last row is of all features that are not known."""
        self._columns = {label: place for place, label in enumerate(model.labels)}
        self._extractor = extractor
        self._flows = {flow.dact: FlowSlots.of(flow) for flow in flows}
        slots = (slot for known in self._flows.values() for slot in known.kinds.items())
        self._numbers = {name for name, kinds in slots if NUMBER in kinds}

    def find_slots(
        self, utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec, context: NluContext
    ) -> dict[str, Mention]:
        """Fill the slots of a flow from candidates, from wishes, and from the answer to a yes-or-no question."""
        active, asked = context.active, context.question.slot
        if active is None or flow.dact != active.dact:
            asked = None
        mentions = self.assign(utterance, candidates, flow, asked)
        known = self.know(flow)
        things, words = known.things, utterance.words
        if not things.keys().isdisjoint(words):
            mentions = count_single(utterance, things) | mentions
        if known.people is not None and not TELL_PEOPLE.isdisjoint(words):
            people = count_people(utterance)
            mentions |= {} if people is None else {known.people: Mention(*people)}
        yes_or_no = known.booleans
        if not known.cues.isdisjoint(words):
            for name, mention in find_booleans(utterance, yes_or_no).items():
                mentions.setdefault(name, mention)
        if asked is not None and asked in yes_or_no and asked not in mentions:
            answer = read_answer(utterance, yes_or_no[asked], self._extractor.gazetteer, context.today)
            if answer is not None:
                mentions[asked] = answer
        if active is not None and flow.dact == active.dact:
            mentions = count_from(mentions, flow, context.values)
        if SHIFTS.isdisjoint(utterance.words):
            return mentions
        shifted = find_shifted(utterance, flow, context)
        said = {word for mention in shifted.values() for word in mention.text.split()}
        # The “later” of “a day later” isn't a time of day.
        return shifted | {name: one for name, one in mentions.items() if one.text not in said}

    def know(self, flow: FlowSpec) -> FlowSlots:
        """Return what a flow's slots take, also for a flow without training data."""
        if flow.dact not in self._flows:
            self._flows[flow.dact] = FlowSlots.of(flow)
        return self._flows[flow.dact]

    def assign(
        self, utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec, asked: str | None
    ) -> dict[str, Mention]:
        """Assign each slot of the flow its likeliest value; each value fills at most one slot."""
        slots, guesses = self.know(flow), list[Guess]()
        kinds = slots.kinds
        tokens, places = put_kinds(utterance.words, candidates)
        has_one = "one" in utterance.words
        for candidate, place in zip(candidates, places, strict=True):
            if not is_negated(utterance, candidate) and not (has_one and is_pronoun(utterance, candidate)):
                possible = slots.find_takers(utterance, candidate, flow)
                named = named_slot(utterance, candidate, possible)
                if named is not None:
                    guesses.append(Guess(1.0, candidate, named))
                elif possible:
                    around = describe_around(tokens, place, asked)
                    guesses += self._guess(candidate, around, possible, slots.own, asked)
                # Once the question is answered, what else is said is for another slot.
                if asked is not None and any(slot.name == asked for slot in possible):
                    asked = None
        guesses.sort(key=lambda guess: (-guess.share, guess.candidate.first, guess.slot.name))
        mentions: dict[str, Mention] = {}
        lists: dict[str, list[tuple[int, Mention]]] = {}
        used: set[int] = set()
        for guess in guesses:
            name, first = guess.slot.name, guess.candidate.first
            mention = None if first in used else self._mention(guess.candidate, guess.slot, kinds[name])
            if mention is None:
                continue
            if name in slots.lists:
                lists.setdefault(name, []).append((first, mention))
            elif name in mentions:
                continue
            mentions.setdefault(name, mention)
            used.add(first)
        return mentions | {name: _in_order(parts) for name, parts in lists.items()}

    def _guess(
        self,
        candidate: Candidate,
        around: list[str],
        possible: list[SlotSpec],
        own: Mapping[str, str],
        asked: str | None,
    ) -> list[Guess]:
        """Score the slots that a candidate fits, by its surroundings; `asked`: the slot of the open question."""
        odds = self._weigh(around, possible, candidate.kind)
        for place, slot in enumerate(possible):
            first = self._model.sharpness * first_score(candidate, own[slot.name], asked=slot.name == asked)
            first -= _LATER * place * (candidate.kind == DATE)
            odds[slot.name] = odds.get(slot.name, _UNSEEN) * math.exp(first)
        return _rate(candidate, possible, odds, self._numbers)

    def _mention(self, candidate: Candidate, slot: SlotSpec, kinds: tuple[str, ...]) -> Mention | None:
        """Parse a candidate as a slot value, or return None if it isn't one."""
        for kind in kinds:
            reading = candidate.readings.get(kind)
            if reading is not None:
                mention = read_as(reading, candidate.text)
                if kind == TIME and isinstance(mention.value, str):
                    value = in_part_of_day(mention.value, candidate.text, slot.part_of_day)
                    mention = replace(mention, value=value)
                return mention
        if slot.entity is None or candidate.kind != NAME:
            return None
        repaired = self._extractor.gazetteer.repair(kinds[0], candidate.text)
        if repaired is not None:
            return read_as(repaired, candidate.text)
        invalid = say("no_such_name", kind=slot.entity.replace("_", " "), name=candidate.text)
        return Mention(None, candidate.text, invalid=invalid)

    def _weigh(self, features: list[str], possible: Iterable[SlotSpec], kind: str) -> dict[str, float]:
        """Return the odds of each slot that a candidate fits, and of no slot."""
        wanted = {NO_SLOT, *[slot.name for slot in possible]}
        wanted = wanted | self._numbers if kind == NUMBER else wanted
        places = [*map(self._model.places.get, features, repeat(len(self._rows) - 1))]
        scores = (np.add.reduce(self._rows.take(places, axis=0), axis=0) + self._model.bias).tolist()
        sharpness, columns = self._model.sharpness, self._columns
        return {
            name: math.exp(min(60.0, scores[columns[name]] * sharpness)) for name in wanted if name in columns
        }


def first_score(candidate: Candidate, own: str, *, asked: bool) -> float:
    """Score a slot for a candidate before its surroundings are looked at: asked for, or one of its `own` values."""
    return _ASKED * asked + _LISTED * (own in candidate.readings)


def _rate(
    candidate: Candidate, possible: list[SlotSpec], odds: Mapping[str, float], numbers: Collection[str]
) -> list[Guess]:
    """Rate the slots that a candidate may fill; those that are too unlikely are left out.

    `numbers`: the slots of all flows that take numbers.
    """
    powers = [odds[slot.name] for slot in possible]
    none = odds.get(NO_SLOT)  # where no example is of no slot, slots are only weighed against each other
    total = sum(powers) + (_UNSEEN * max(powers) if none is None else none)
    if candidate.kind == NUMBER:  # "two bags" are no passengers, though nothing else here takes a number
        elsewhere = set(numbers).difference(slot.name for slot in possible)
        total += max((odds.get(name, 0.0) for name in elsewhere), default=0.0)
    least = _LEAST_SHARE_OPEN if candidate.kind in {NAME, QUOTE} else _LEAST_SHARE
    if candidate.kind in _TELLING and len(possible) == 1:
        least = 0.0  # a day can be nothing but the day
    return [
        Guess(power / total, candidate, slot)
        for power, slot in zip(powers, possible, strict=True)
        if power / total >= least / len(possible)
    ]


def fits(candidate: Candidate, slot: SlotSpec, kinds: tuple[str, ...]) -> bool:
    """Return whether one of the candidate's readings is of a kind that the slot takes."""
    return not candidate.readings.keys().isdisjoint(kinds) or (
        slot.entity is not None and candidate.kind == NAME
    )


def read_as(reading: Reading, text: str) -> Mention:
    return Mention(reading.value, text, reading.candidates, reading.invalid)


def _in_order(parts: list[tuple[int, Mention]]) -> Mention:
    """Return the values of a list in spoken order, whatever their scores."""
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
    """Return whether the words negate this value: "not X", "I don't want to fly to X", "X is wrong"."""
    words = utterance.words
    if not _WRONG.isdisjoint(words) and _IS_WRONG.match(" ".join(words[candidate.last :])) is not None:
        return True
    before = words[max(0, candidate.first - _REACH) : candidate.first + 1]
    is_cued = not EXCLUDING_WORDS.isdisjoint(before)
    if is_cued and find_moods(before, ()).get(len(before) - 1) in _UNMEANT:
        return True
    return not _UNWANTING.isdisjoint(words) and (
        _UNWANTED.search("".join(f"{word} " for word in words[: candidate.first])) is not None
    )


def named_slot(utterance: Utterance, candidate: Candidate, possible: list[SlotSpec]) -> SlotSpec | None:
    """Find the slot that the words before a value name: "the destination should be Prague"."""
    place, words = candidate.first - 1, utterance.words
    while place >= 0 and words[place] in _AFTER_NAME:
        place -= 1
    said = words[place] if 0 <= place < candidate.first - 1 else None
    own = None if said is None else next((slot for slot in possible if slot.name == said), None)
    is_day = own is None and candidate.kind == DATE and len(possible) > 1
    return find_named_day(words, candidate.first, possible) if is_day else own
