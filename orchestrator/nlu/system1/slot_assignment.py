"""Assign values to slots, based on slot types, the open question, and the words around each value.

Cue words come from slot names, slot descriptions and the domain's examples: “from {origin}”, “{bags} suitcases”.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from orchestrator.dialogue.slots import LIST_TYPES
from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.clauses import EXCLUDING_WORDS, Mood, find_moods
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.answers import as_unknown, find_booleans, in_list, read_answer
from orchestrator.nlu.system1.extract.dates import ORDINALS, count_from
from orchestrator.nlu.system1.extract.extractor import (
    Extractor,
    find_takers,
    is_boolean,
    kinds_by_slot,
)
from orchestrator.nlu.system1.extract.found import (
    DATE,
    NUMBER,
    TIME,
    UNLISTED,
    Candidate,
    Reading,
)
from orchestrator.nlu.system1.extract.gazetteer import LISTED
from orchestrator.nlu.system1.extract.numbers import (
    TELLS_PEOPLE,
    TIMES,
    count_people,
    count_single,
    is_pronoun,
)
from orchestrator.nlu.system1.extract.times import in_part_of_day
from orchestrator.nlu.text import PREPOSITIONS, Utterance, tokenize, word_set

PEOPLE = "people"
_REACH = 12
"""Maximum distance between an excluding word and the value that it excludes, in tokens."""
_UNMEANT = frozenset({Mood.EXCLUDED, Mood.FORBIDDEN})
_IS_WRONG = re.compile(r"(?:is|was|'s) (?:all )?(?:wrong|incorrect|(?:a|my) mistake|not (?:right|correct))\b")
_WORD = r"[^\W\d_]+"
_SLOT = re.compile(rf"(?P<before>{_WORD}) (?:(?:the|a|an) )?\{{(?P<name>\w+)\}}(?:(?= (?P<thing>{_WORD})))?")
"""A slot in an example, with the word before it and the word after it."""
_LINKS = word_set(
    "the a an it on for is to be should must will as in at by them that this my our up me not - = :"
)
"""Words that can stand between a slot's name and its value."""
_GENERIC = word_set("date day time number please") | _LINKS | STOP_WORDS
"""Words that don't distinguish slots."""
_CUES_OF_TYPES = {"source": word_set("from leaving departing"), "target": word_set("to into towards in for")}
_LOOSE_CUES = word_set("in")
"""Cues that the open question overrides if the cue's slot is filled: “we start in Vienna”."""
_ARTICLES = word_set("the a an")
_SEEMING = word_set("is was be been sounds looks seems")
_PEOPLE = word_set("person persons people passengers travelers travellers adults tickets seats")
_UNTIL = word_set("until till through")
_FORMS = re.compile(r"(?:ing|ed|e|s)$")
_NEEDS_EVIDENCE = UNLISTED | {NUMBER}
"""Kinds of values with frequent false positives. A slot takes such a value only with more evidence."""
_Guess: TypeAlias = tuple[float, Candidate, SlotSpec]
"""A score for the evidence that a candidate is a slot's value, with the candidate and the slot."""
_NAMED, _CUED, _COUNTED, _ASKED, _LISTED, _HINTED = 4.0, 2.0, 2.0, 1.0, 1.0, 0.5


def read_cues(flows: Iterable[FlowSpec]) -> dict[str, set[str]]:
    """Return the words that indicate a slot if they precede a value, by slot name.

    The words come from the examples and from the slot's type.
    """
    cues: dict[str, set[str]] = {}
    for flow in flows:
        for example in flow.examples:
            for found in _SLOT.finditer(example.lower()):
                cues.setdefault(found["name"], set()).add(found["before"])
        for name, slot in flow.slots.items():
            own = cues.setdefault(name, set())
            own |= _CUES_OF_TYPES.get(slot.type, frozenset())
            own |= {"by"} if slot.type == "date" else set()
            own |= _UNTIL if slot.not_before is not None else set()
    return cues


def slot_words(flows: Iterable[FlowSpec]) -> frozenset[str]:
    """Return the words in the names of the flows' slots."""
    return frozenset(word for flow in flows for name in flow.slots for word in name.split("_"))


@dataclass(frozen=True, slots=True)
class _FlowSlots:
    """The kinds of values that a flow's slots take, and the words that indicate a slot.

    `kinds`: value kinds by slot. `names`: words of each slot's name, and for dates of its description and
    examples. `things`: nouns that each slot counts. `singles`: slots by the noun that they count, in the
    singular. `people`: the slot for the number of people, or None.
    """

    kinds: Mapping[str, tuple[str, ...]]
    names: Mapping[str, frozenset[str]]
    things: Mapping[str, frozenset[str]]
    singles: Mapping[str, str]
    yes_or_no: Mapping[str, SlotSpec]
    people: str | None

    @classmethod
    def of(cls, flow: FlowSpec) -> _FlowSlots:
        kinds, slots = kinds_by_slot(flow.slots), flow.slots.values()
        names = {name: {*name.casefold().split("_")} for name in kinds}
        things = {name: own | {word.removesuffix("s") for word in own} for name, own in names.items()}
        days = {slot.name for slot in slots if slot.type == "date"}
        for found in (one for example in flow.examples for one in _SLOT.finditer(example.lower())):
            if found["name"] in kinds:
                names[found["name"]] |= {found["before"]} if found["name"] in days else set()
                things[found["name"]] |= {found["thing"]} if found["thing"] else set()
        people = next((slot.name for slot in slots if slot.counts == PEOPLE), None)
        if people is not None:
            things[people] |= _PEOPLE
        for slot in slots:
            names[slot.name] |= (
                {*tokenize(slot.description.casefold()).words} if slot.type == "date" else set()
            )
        return cls(
            kinds,
            {name: frozenset(names[name] - _GENERIC) for name in kinds},
            {name: frozenset(things[name] - STOP_WORDS) for name in kinds},
            {name[:-1]: name for name in kinds if name[-1] == "s" and NUMBER in kinds[name]},
            {slot.name: slot for slot in slots if is_boolean(slot)},
            people,
        )


class SlotAssigner:
    def __init__(self, extractor: Extractor, flows: Iterable[FlowSpec]) -> None:
        self._extractor = extractor
        self._cues = read_cues(flows)
        self._known: dict[str, _FlowSlots] = {}

    def find_slots(
        self, utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec, context: NluContext
    ) -> dict[str, Mention]:
        """Return values for a flow's slots: candidates, counts, wishes, and the answer to a yes-or-no question."""
        is_active = context.active is not None and flow.dact == context.active.dact
        asked = context.question.slot if is_active else None
        filled = context.values.keys() if is_active else ()
        known = self._know(flow)
        mentions = self.assign(utterance, candidates, flow, asked, filled)
        if "or" in utterance.words:
            mentions = _without_alternatives(mentions, utterance, candidates)
        if not known.singles.keys().isdisjoint(utterance.words):
            mentions = count_single(utterance, known.singles) | mentions
        people = known.people if TELLS_PEOPLE.search(utterance.text) else None
        if people is not None and (counted := count_people(utterance)) is not None:
            mentions |= {people: Mention(*counted)}
        if known.yes_or_no:
            mentions = find_booleans(utterance, known.yes_or_no) | mentions
        if asked is not None and asked in known.yes_or_no and asked not in mentions:
            answer = read_answer(utterance, known.yes_or_no[asked], self._extractor.gazetteer, context.today)
            mentions |= {} if answer is None else {asked: answer}
        if not is_active:
            return mentions
        if len(mentions) > 1 and filled:
            mentions = self._without_repairs(utterance, candidates, flow, mentions, context)
        return count_from(mentions, flow, context.values)

    def _without_repairs(
        self,
        utterance: Utterance,
        candidates: Sequence[Candidate],
        flow: FlowSpec,
        mentions: dict[str, Mention],
        context: NluContext,
    ) -> dict[str, Mention]:
        """Return `mentions` without a value that replaces another slot's old value by accident.

        In “to Gdansk, I mean Warsaw”, no word before “Warsaw” indicates the slot `origin`.
        """
        filled = mentions.keys() & context.values.keys() - {context.question.slot}
        indicated = self.find_named(utterance, candidates, flow) | {context.question.slot}
        first = {name: _first_of(mention, candidates) for name, mention in mentions.items()}
        before = {name: utterance.words[at - 1] if at > 0 else "" for name, at in first.items()}
        kinds = self._know(flow).kinds
        dropped = {
            name
            for name in filled - indicated
            for other in mentions.keys() & indicated
            if kinds[name] == kinds[other] and first[other] < first[name] and before[name] not in PREPOSITIONS
        }
        return {name: mention for name, mention in mentions.items() if name not in dropped}

    def _know(self, flow: FlowSpec) -> _FlowSlots:
        if flow.dact not in self._known:
            self._known[flow.dact] = _FlowSlots.of(flow)
        return self._known[flow.dact]

    def assign(
        self,
        utterance: Utterance,
        candidates: Sequence[Candidate],
        flow: FlowSpec,
        asked: str | None,
        filled: Collection[str] = (),
    ) -> dict[str, Mention]:
        """Assign to each of the flow's slots the candidate with the highest score. A candidate fills at most one slot.

        `asked`: the slot that the open question requests, or None. `filled`: the flow's slots with a value.
        """
        known, guesses = self._know(flow), list[_Guess]()
        takers = [find_takers(one, flow.slots.values(), known.kinds) for one in candidates]
        named = [{slot.name for slot in possible} for possible in takers]
        for candidate, possible, names in zip(candidates, takers, named, strict=True):
            if not TIMES.isdisjoint(utterance.words[: candidate.first][-1:]):
                continue  # the “later” of “a day later” isn't a time of day
            is_one = candidate.kind == NUMBER and is_pronoun(utterance, candidate.first, candidate.last)
            if is_one or is_negated(utterance, candidate):
                continue
            is_only = len([others for others in named if not others.isdisjoint(names)]) == 1
            guesses += self._guess(
                utterance, candidate, candidates, known, possible, asked, filled, is_only=is_only
            )
            # After the answer to the question, further values are for other slots.
            asked = None if asked in names else asked
        guesses.sort(key=lambda guess: (-guess[0], guess[1].first))
        mentions: dict[str, Mention] = {}
        used: set[int] = set()
        for _score, candidate, slot in guesses:
            if candidate.first not in used and slot.name not in mentions:
                mentions[slot.name] = self._mention(candidate, slot, known.kinds[slot.name])
                used.add(candidate.first)
        return mentions

    def find_named(self, utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec) -> set[str]:
        """Return the names of a flow's slots that the words before the candidates indicate."""
        known, words = self._know(flow), utterance.words
        found: set[str] = set()
        for one in candidates:
            possible = find_takers(one, flow.slots.values(), known.kinds)
            named = _find_named(words, one.first, possible, known.names)
            cued = self._find_cued(words, one, possible) if one.kind != DATE and len(possible) > 1 else []
            found |= {slot.name for slot in (cued if named is None and len(cued) == 1 else [named]) if slot}
        return found

    def _find_cued(
        self, words: Sequence[str], candidate: Candidate, possible: Sequence[SlotSpec]
    ) -> list[SlotSpec]:
        """Return the slots that the word before a candidate indicates, such as “from”."""
        before = next((word for word in reversed(words[: candidate.first]) if word not in _ARTICLES), "")
        return [slot for slot in possible if before in self._cues.get(slot.name, ())]

    def _guess(
        self,
        utterance: Utterance,
        candidate: Candidate,
        candidates: Sequence[Candidate],
        known: _FlowSlots,
        possible: Sequence[SlotSpec],
        asked: str | None,
        filled: Collection[str],
        *,
        is_only: bool,
    ) -> list[_Guess]:
        words = utterance.words
        named = _find_named(words, candidate.first, possible, known.names)
        before, cued = words[: candidate.first][-1:], self._find_cued(words, candidate, possible)
        if not _LOOSE_CUES.isdisjoint(before) and any(slot.name == asked for slot in possible):
            cued = [slot for slot in cued if slot.name not in filled]
        behind = words[candidate.last] if candidate.last < len(words) else ""
        is_value = candidate.last in [one.first for one in candidates]
        counts = candidate.kind == NUMBER and behind.isalpha() and not (is_value or behind in _GENERIC)
        places = len([one for one in candidates if one.kind.startswith("entity:")])
        is_told = STOP_WORDS.issuperset(before) or places > 1
        is_unlikely = candidate.kind in _NEEDS_EVIDENCE or self._is_unlikely(
            words, candidate, is_told=is_told
        )
        guesses: list[_Guess] = []
        for place, slot in enumerate(possible):
            is_counted = behind in known.things[slot.name]
            is_loose = UNLISTED.issuperset(candidate.readings.keys() & known.kinds[slot.name])
            if is_loose and candidate.kind not in UNLISTED and slot.name != asked:
                continue  # a known name is not free text
            score = _ASKED * (slot.name == asked) + _LISTED * (f"{LISTED}{slot.name}" in candidate.readings)
            score += _NAMED * (named is slot) + _COUNTED * is_counted
            if slot in cued:
                score += _CUED if len(cued) == 1 else _HINTED
            elif len(cued) == 1 and named is not slot:
                score -= _CUED
            if not is_unlikely or (score >= _HINTED and (is_counted or not counts)):
                is_target = slot.type == "target"
                score += (_HINTED / 2 if is_only else -_HINTED / 2) * is_target - place / 100
                guesses.append((score, candidate, slot))
        return guesses

    def _is_unlikely(self, words: Sequence[str], candidate: Candidate, *, is_told: bool) -> bool:
        """Return whether a candidate might not be meant as a value: “the first”, “is nice”, “collect miles”.

        Positions, ordinary words and little-known names need further evidence. `is_told`: True if a short word
        or nothing precedes the name, or if there are other names.
        """
        if candidate.kind == DATE and candidate.text.lower().removeprefix("the ") in ORDINALS:
            return True  # “the first” is also a position in a list
        names, before = self._extractor.gazetteer, words[: candidate.first][-1:]
        is_word = candidate.text in self._extractor.common and not _SEEMING.isdisjoint(before)
        readings = candidate.readings.items() if candidate.kind.startswith("entity:") else ()
        is_unknown = any(names.is_little_known(kind, one.value) for kind, one in readings)
        return bool(readings) and (is_word or (is_unknown and not is_told))

    def _mention(self, candidate: Candidate, slot: SlotSpec, kinds: tuple[str, ...]) -> Mention:
        """Convert a candidate to a slot value. Correct misspelled names, and mark unknown names as invalid."""
        for kind in kinds:
            reading = candidate.readings.get(kind)
            if reading is not None:
                mention = read_as(reading, candidate.text)
                if slot.type in LIST_TYPES:
                    return in_list(mention, slot)
                if kind == TIME and isinstance(mention.value, str):
                    value = in_part_of_day(mention.value, candidate.text, slot.part_of_day)
                    mention = replace(mention, value=value)
                return mention
        repaired = self._extractor.gazetteer.repair(kinds[0], candidate.text)
        if repaired is not None:
            return read_as(repaired, candidate.text)
        return as_unknown(candidate.text, candidate.text, slot)


def _without_alternatives(
    mentions: dict[str, Mention], utterance: Utterance, candidates: Sequence[Candidate]
) -> dict[str, Mention]:
    """Return `mentions` without the second of two alternatives: “Rome or Milan” fills only one slot."""
    seconds = {
        other.text
        for one, other in pairwise(candidates)
        if one.kind == other.kind and utterance.words[one.last : other.first] == ["or"]
    }
    return {name: mention for name, mention in mentions.items() if mention.text not in seconds}


def _first_of(mention: Mention, candidates: Sequence[Candidate]) -> int:
    return next((one.first for one in candidates if one.text == mention.text), -1)


def read_as(reading: Reading, text: str) -> Mention:
    return Mention(reading.value, text, reading.candidates, reading.invalid)


def is_negated(utterance: Utterance, candidate: Candidate) -> bool:
    """Return whether the message negates a value ("not X", "X is wrong") or has it in a phrase ("good morning")."""
    words = utterance.words
    if _IS_WRONG.match(" ".join(words[candidate.last : candidate.last + 4])) is not None:
        return True
    if words[: candidate.first][-1:] in (["good"], ["too"]):
        return True  # “good morning”, “too early”
    before = words[max(0, candidate.first - _REACH) : candidate.first + 1]
    is_cued = not EXCLUDING_WORDS.isdisjoint(before)
    return is_cued and find_moods(before, ()).get(len(before) - 1) in _UNMEANT


def _find_named(
    words: Sequence[str], first: int, possible: Sequence[SlotSpec], names: Mapping[str, frozenset[str]]
) -> SlotSpec | None:
    """Return the only slot that the words before a value name ("the destination should be Prague"), or None."""
    known = frozenset[str]().union(*[names[slot.name] for slot in possible])
    said: set[str] = set()
    place = first - 1
    while place >= 0 and (words[place] in _LINKS or not known.isdisjoint(_forms(words[place]))):
        said |= _forms(words[place])
        place -= 1
    named: list[SlotSpec] = []
    for slot in possible if said else ():
        others = frozenset[str]().union(*(names[one.name] for one in possible if one is not slot))
        if not said.isdisjoint(names[slot.name] - others):
            named.append(slot)
    return named[0] if len(named) == 1 else None


def _forms(word: str) -> set[str]:
    return {word, _FORMS.sub("", word)}
