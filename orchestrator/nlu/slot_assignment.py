"""Deciding which value fills which slot, by what `learning` has learnt of the words around values.

Takes candidates, gives mentions by slot. Types decide what is possible, the words around what is likely.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.nlu.classifier import LinearModel, add_up
from orchestrator.nlu.extract.answers import find_booleans, read_answer
from orchestrator.nlu.extract.extractor import (
    LISTS,
    Extractor,
    boolean_slots,
    kinds_by_slot,
    type_name,
    value_kind,
)
from orchestrator.nlu.extract.found import DATE, MONEY, NAME, NUMBER, QUOTE, TIME, Candidate, Reading
from orchestrator.nlu.extract.numbers import count_people, count_single
from orchestrator.nlu.extract.times import in_part_of_day
from orchestrator.nlu.extract.which_day import find_named_day
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.text import Utterance, word_set
from orchestrator.types import Json

NO_SLOT = "-"
PEOPLE = "people"
_REACH = 4
_LEAST_SHARE = 0.35
"""A slot must be this likely, among the slots the value could fill and none of them."""
_LEAST_SHARE_OPEN = 0.5
_UNSEEN = 0.02  # the odds of a slot that no example has
_ASKED, _LISTED = 2.0, 1.0
"""What speaks for a slot whatever the words around a value: it was asked for, it knows the value."""
_LATER = 0.8
"""What speaks against each further day of a flow: people say the days of a journey in their order."""
_TELLING = frozenset({DATE, TIME, MONEY})
"""Kinds that decide the slot by themselves, where only one takes them."""
_BEFORE_PRONOUN = word_set(
    "which that this the best another good first second third fourth fifth next last any every no other cheap there"
)
_AFTER_PRONOUN = word_set("way of that which in near with")
_UNWANTED = re.compile(
    r"\b(?:(?:not|isn['’]?t|never)(?: (?:to|from|on|in|at|with|for|by|the|an?|my))?|instead of|rather than"
    r"|(?:do(?:es)? not|(?:do|does)n['’]?t|no longer)(?: (?:really|even))? (?:want|wish|need|like|feel like)"
    r"(?: (?!(?:and|but|or|more|less|than|before|after|over|under|only|just|instead|because|if)\b)\w+){0,6}"
    r"|^good) $"
)
"""What stands before a value that is not meant; "good morning" greets."""
_AFTER_NAME = word_set("to be should is must as not a the : = in for")
"""What stands between the name of a slot and its value."""


@dataclass(frozen=True, slots=True)
class FlowSlots:
    """What slots take: `kinds`, `own` ones, `lists`, `booleans`; `things`: slots by what they count."""

    kinds: Mapping[str, tuple[str, ...]]
    own: Mapping[str, str]
    lists: frozenset[str]
    booleans: Mapping[str, SlotSpec]
    things: Mapping[str, str]

    @classmethod
    def of(cls, flow: FlowSpec) -> FlowSlots:
        kinds = kinds_by_slot(flow.slots)
        lists = frozenset(slot.name for slot in flow.slots.values() if type_name(slot) in LISTS)
        own = {name: value_kind(name) for name in flow.slots}
        things = {name[:-1]: name for name in flow.slots if name[-1] == "s" and NUMBER in kinds[name]}
        return cls(kinds, own, lists, boolean_slots(flow.slots), things)


@dataclass(frozen=True, slots=True)
class Guess:
    """A candidate for a slot, and how likely."""

    share: float
    candidate: Candidate
    slot: SlotSpec


def context_features(
    utterance: Utterance, candidates: Sequence[Candidate], position: int, asked: str | None
) -> dict[str, float]:
    """Describe what surrounds a candidate: words to both sides, its kind, its place, and the open question."""
    candidate = candidates[position]
    left = _left(utterance, candidates, position)
    right = _right(utterance, candidates, position)
    kind = candidate.kind
    same = sum(1 for other in candidates[:position] if other.kind == kind)
    found: list[tuple[str, float]] = [
        (f"k:{kind}", 0.5),
        (f"l:{left[0]}", 1.0),
        (f"l2:{left[1]} {left[0]}", 1.0),
        (f"r:{right[0]}", 0.7),
        (f"r2:{right[0]} {right[1]}", 0.5),
        (f"n:{kind} {same}", 0.5),
        (f"kl:{kind} {left[0]}", 0.7),
        (f"q:{asked} {kind}" if asked else "q:", 0.8),
        (f"q:{asked}" if asked else "q:", 0.8),
    ]
    found += [(f"a:{word}", 0.35) for word in left]
    found += [(f"z:{word}", 0.25) for word in right]
    features: dict[str, float] = {}
    for name, weight in found:
        features[name] = features.get(name, 0.0) + weight
    return features


def _left(utterance: Utterance, candidates: Sequence[Candidate], position: int) -> list[str]:
    """List the nearest tokens to the left, nearest first; other candidates appear as their kinds."""
    words: list[str] = []
    place, before = candidates[position].first - 1, position - 1
    while len(words) < _REACH:
        if place < 0:
            words.append("^")
            if len(words) > 1:
                break
        elif before >= 0 and candidates[before].first <= place < candidates[before].last:
            words.append(f"<{candidates[before].kind}>")
            place, before = candidates[before].first - 1, before - 1
        else:
            words.append(utterance.words[place])
            place -= 1
    return words


def _right(utterance: Utterance, candidates: Sequence[Candidate], position: int) -> list[str]:
    words: list[str] = []
    place, after = candidates[position].last, position + 1
    while len(words) < _REACH:
        if place >= len(utterance.words):
            words.append("$")
            if len(words) > 1:
                break
        elif after < len(candidates) and candidates[after].first == place:
            words.append(f"<{candidates[after].kind}>")
            place, after = candidates[after].last, after + 1
        else:
            words.append(utterance.words[place])
            place += 1
    return words


class SlotAssigner:
    """Assigns candidates to slots, by a model that `learn_slots` has made."""

    def __init__(self, model: LinearModel, extractor: Extractor, flows: Iterable[FlowSpec]) -> None:
        self._model = model
        self._columns = {label: place for place, label in enumerate(model.labels)}
        self._extractor = extractor
        self._flows = {flow.dact: FlowSlots.of(flow) for flow in flows}
        slots = (slot for known in self._flows.values() for slot in known.kinds.items())
        self._numbers = {name for name, kinds in slots if NUMBER in kinds}

    def find_slots(
        self, utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec, context: NluContext
    ) -> dict[str, Mention]:
        """Fill the slots of a flow: from candidates, from wishes, and with the answer to a yes-or-no question."""
        active, asked = context.active, context.question.slot
        if active is None or flow.dact != active.dact:
            asked = None
        mentions = self.assign(utterance, candidates, flow, asked)
        things = self.know(flow).things
        if not things.keys().isdisjoint(utterance.words):
            mentions = count_single(utterance, things) | mentions
        named = next((slot.name for slot in flow.slots.values() if slot.counts == PEOPLE), None)
        if named is not None and (people := count_people(utterance)) is not None:
            mentions[named] = Mention(*people)
        yes_or_no = self.know(flow).booleans
        if yes_or_no:
            for name, mention in find_booleans(utterance, yes_or_no).items():
                mentions.setdefault(name, mention)
        if asked is not None and asked in yes_or_no and asked not in mentions:
            answer = read_answer(utterance, yes_or_no[asked], self._extractor.gazetteer, context.today)
            if answer is not None:
                mentions[asked] = answer
        return mentions

    def know(self, flow: FlowSpec) -> FlowSlots:
        """Tell what a flow's slots take, also of a flow that nothing was learnt for."""
        if flow.dact not in self._flows:
            self._flows[flow.dact] = FlowSlots.of(flow)
        return self._flows[flow.dact]

    def assign(
        self, utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec, asked: str | None
    ) -> dict[str, Mention]:
        """Give each slot of the flow its likeliest value; each value fills one slot at most."""
        slots, guesses = self.know(flow), list[Guess]()
        kinds = slots.kinds
        for position, candidate in enumerate(candidates):
            if not is_negated(utterance, candidate) and not is_pronoun(utterance, candidate):
                possible = [slot for slot in flow.slots.values() if fits(candidate, slot, kinds[slot.name])]
                guesses += self._guess(utterance, candidates, position, possible, slots.own, asked)
                # Once the question is answered, what else is said is for another slot.
                asked = None if any(slot.name == asked for slot in possible) else asked
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
        utterance: Utterance,
        candidates: Sequence[Candidate],
        position: int,
        possible: list[SlotSpec],
        own: Mapping[str, str],
        asked: str | None,
    ) -> list[Guess]:
        """Rate the slots that a candidate may be for; `asked`: that of the open question."""
        candidate = candidates[position]
        named = named_slot(utterance, candidate, possible)
        if named is not None or not possible:
            return [] if named is None else [Guess(1.0, candidate, named)]
        odds = self._weigh(context_features(utterance, candidates, position, asked), possible, candidate.kind)
        for place, slot in enumerate(possible):
            first = self._model.sharpness * first_score(candidate, own[slot.name], asked=slot.name == asked)
            first -= _LATER * place * (candidate.kind == DATE)
            odds[slot.name] = odds.get(slot.name, _UNSEEN) * math.exp(first)
        return _rate(candidate, possible, odds, self._numbers)

    def _mention(self, candidate: Candidate, slot: SlotSpec, kinds: tuple[str, ...]) -> Mention | None:
        """Read a candidate as a value of a slot; None when it is none."""
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
        invalid = f"There is no {slot.entity} called {candidate.text!r} that I know."
        return Mention(None, candidate.text, invalid=invalid)

    def _weigh(
        self, features: Mapping[str, float], possible: Iterable[SlotSpec], kind: str
    ) -> dict[str, float]:
        """Rate the slots that a candidate of a kind competes for, and no slot: the odds of those that are known."""
        wanted = {NO_SLOT, *(slot.name for slot in possible), *(self._numbers if kind == NUMBER else ())}
        scores = add_up(self._model, features)
        places = [(name, self._columns[name]) for name in wanted if name in self._columns]
        sharpness = self._model.sharpness
        return {name: math.exp(min(60.0, float(scores[place]) * sharpness)) for name, place in places}


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
    """Tell whether one of the candidate's readings is of a kind that the slot takes."""
    return not candidate.readings.keys().isdisjoint(kinds) or (
        slot.entity is not None and candidate.kind == NAME
    )


def read_as(reading: Reading, text: str) -> Mention:
    return Mention(reading.value, text, reading.candidates, reading.invalid)


def _in_order(parts: list[tuple[int, Mention]]) -> Mention:
    """Put the values of a list together as they were said, whichever was the surest."""
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
    """Tell whether the words before say that this value is not meant: "not X", "I don't want to fly to X"."""
    return _UNWANTED.search("".join(f"{word} " for word in utterance.words[: candidate.first])) is not None


def named_slot(utterance: Utterance, candidate: Candidate, possible: list[SlotSpec]) -> SlotSpec | None:
    """Find the slot that the words before a value name: "the destination should be Prague"."""
    place, words = candidate.first - 1, utterance.words
    while place >= 0 and words[place] in _AFTER_NAME:
        place -= 1
    said = words[place] if 0 <= place < candidate.first - 1 else None
    own = next((slot for slot in possible if slot.name == said), None)
    is_day = own is None and candidate.kind == DATE and len(possible) > 1
    return find_named_day(words, candidate.first, possible) if is_day else own


def is_pronoun(utterance: Utterance, candidate: Candidate) -> bool:
    """Tell whether "one" stands for a thing rather than for a number: "the best one", "one way"."""
    words, first = utterance.words, candidate.first
    if candidate.last != first + 1 or words[first] != "one":
        return False
    before, after = words[first - 1] if first else "", words[first + 1] if first + 1 < len(words) else ""
    compared = before.endswith(("er", "est")) and len(before) > 4 and before not in {"after", "number"}
    return compared or before in _BEFORE_PRONOUN or after in _AFTER_PRONOUN
