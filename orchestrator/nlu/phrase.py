"""Messages with the positions of their values, for finding words that the interpretation doesn't use (IR-6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from orchestrator.dialogue.understanding import Mention
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.clauses import Mood, find_moods, find_spans
from orchestrator.nlu.system1.extract.found import DATE, NUMBER, UNLISTED, Candidate, places_of
from orchestrator.nlu.system1.slot_assignment import is_negated
from orchestrator.nlu.text import (
    NARROWING,
    PREPOSITIONS,
    Utterance,
    find_phrase,
    tokenize,
    word_at,
    word_set,
)
from orchestrator.types import Json, is_list

GENERIC = word_set("to for in at on of with as and or from")
"""Prepositions and conjunctions that any value can follow."""
ARTICLES = word_set("a an the my our your this that these those")
PROPOSING = word_set("how what")
_NAMING = word_set("a an the some another")
_BEING = word_set("'s am is are was were i'm you're we're they're")
_LOOSE = UNLISTED | {NUMBER}
"""Kinds of values with frequent false positives."""
SAYING_LITTLE = word_set(
    "please thanks thank hi hello hey ok okay sorry oops actually well oh yes yeah no not nope hm hmm um uh er ah eh "
    "i i'm i'd i'll i've we we're we'd we'll we've you you're it's that's let's lets don't can't one ones like want "
    "wants need needs prefer rather instead make made take get give go going do does did use set put say said see "
    "know think guess mean meant be is are was were being 's s t really quite still again now then so too also both "
    "anything something nothing everything if possible better best good fine nice great perfect lovely suit suits "
    "much many works work try would should may might must"
) | (STOP_WORDS - NARROWING - word_set("only most more"))
_BEFORE_QUOTED = NARROWING | GENERIC | word_set("one no")
_MOST_BETWEEN = 3
"""Maximum number of words between two unused words that are quoted together."""


@dataclass(frozen=True)
class Phrase:
    """A message with its possible values and its interpreted slots."""

    utterance: Utterance
    candidates: Sequence[Candidate]
    slots: Mapping[str, Mention]

    @cached_property
    def places(self) -> dict[str, list[range]]:
        return {name: self._places_of(mention) for name, mention in self.slots.items()}

    @cached_property
    def valued(self) -> set[int]:
        """The indexes of the words in values that are rarely false positives."""
        return places_of(self._sure)

    @property
    def _sure(self) -> list[Candidate]:
        return [one for one in self.candidates if one.kind not in _LOOSE]

    def _places_of(self, mention: Mention) -> list[range]:
        held = mention.value
        values: list[Json] = [*held] if is_list(held) else [held, *mention.candidates]
        told = [
            one.places
            for one in self.candidates
            if any(any(value in values for value in reading.values) for reading in one.readings.values())
            and (mention.value is not None or mention.candidates)
        ]
        texts = [mention.text, *(str(value) for value in values if isinstance(value, str))]
        if told:
            return told
        spans = (find_phrase(self.utterance.words, tokenize(text.replace("_", " ")).words) for text in texts)
        return [*islice(filter(None, spans), 1)]

    def candidate_at(self, first: int) -> Candidate | None:
        return next((one for one in self.candidates if one.first == first), None)

    def find_used(self, slots: Iterable[str]) -> set[int]:
        return {at for name in slots for places in self.places[name] for at in places}

    def find_left(
        self, slots: Iterable[str], half_used: Iterable[range], known: frozenset[str] | None
    ) -> list[int]:
        """Return the indexes of words that are neither in the values of `slots` nor in `known`.

        `half_used`: spans whose unused words are all included, even if they are known. If `known` is None,
        return only the words of unused values.
        """
        used, words = self.find_used(slots), self.utterance.words
        dropped = {at for one in half_used for at in one}
        if known is None:
            left = places_of(self._sure) - used
        else:
            left = {at for at in range(len(words)) if at in dropped or is_telling(words[at], known)} - used
        for one in self.candidates:
            if used and is_negated(self.utterance, one):
                left.difference_update(one.places)  # a replaced value: “Rome is wrong, …”
            elif left.intersection(one.places) and used.isdisjoint(one.places):
                left.update(one.places)
        return [at for at in sorted(left) if at in dropped or not self._stands_alone(at, left)]

    def _stands_alone(self, place: int, left: Collection[int]) -> bool:
        """Return whether the word is a preposition that narrows nothing: “think about it”, “what about Monday”."""
        words = self.utterance.words
        if words[place] not in NARROWING:
            return False
        if words[place] == "about" and word_at(words, place - 1) in PROPOSING:
            return True
        behind = place + 1
        while behind < len(words) and words[behind] in ARTICLES:
            behind += 1
        return behind not in left and behind not in places_of(self.candidates)

    def is_lost(self, place: range, known: frozenset[str]) -> bool:
        """Return whether so many unknown words surround a name that the name may be an ordinary word."""
        own = self.candidate_at(place.start)
        if own is None or not own.kind.startswith("entity:"):
            return False
        valued = places_of(self.candidates)
        others = {word for at, word in enumerate(self.utterance.words) if at not in valued}
        strange = [word for word in others if is_telling(word, known)]
        return len(strange) > len(place)

    def find_excluded(self, told: str) -> Iterable[int]:
        """Yield the word indexes of exclusions without a value, such as “not for us”, that `told` doesn't quote."""
        valued = places_of(self.candidates)
        for span in find_spans(find_moods(self.utterance.words, ()), {Mood.EXCLUDED}):
            if valued.isdisjoint(span) and self.utterance.surface(span.start, span.stop) not in told:
                yield from span

    def is_mostly(self, left: Sequence[int]) -> bool:
        """Return whether most of the message's distinctive words are unused. `left`: indexes of unused words."""
        inside = self.valued
        telling = {at for at, word in enumerate(self.utterance.words) if is_telling(word, SAYING_LITTLE)}
        if telling and telling.issubset(left):
            return True
        return 2 * len(telling.intersection(left) - inside) > len(telling - inside) + len(self._sure)

    def names_other_thing(self, left: Collection[int]) -> bool:
        """Return whether all nouns after articles are in `left`, so that the message asks for something else.

        In a domain without trains, “book a train” does.
        """
        words = self.utterance.words
        valued = places_of(self._sure)
        known: list[bool] = []
        for at, word in enumerate(words[: min(valued, default=len(words)) - 1]):
            if word in _NAMING and word_at(words, at - 1) not in _BEING:
                behind = range(at + 1, len(words))
                last = next((to for to in behind if words[to] in STOP_WORDS or to in valued), len(words))
                known.append(not set(range(at + 1, last)).issubset(left))
        return bool(known) and not any(known)

    def quote(self, left: Sequence[int], slots: Iterable[str]) -> Iterable[str]:
        """Yield the unused words in phrases, with the words between them and the prepositions before them."""
        words, used = self.utterance.words, self.find_used(slots)
        groups: list[list[int]] = []
        for at in left:
            if groups and self._are_joined(groups[-1][-1], at, used):
                groups[-1].append(at)
            else:
                groups.append([at])
        for group in groups:
            first = group[0]
            while first > 0 and first - 1 not in used and words[first - 1] in _BEFORE_QUOTED:
                first -= 1
            yield self.utterance.surface(first, group[-1] + 1)

    def _are_joined(self, one: int, other: int, used: Collection[int]) -> bool:
        if self.utterance.text[self.utterance.ends[one] : self.utterance.starts[other]].find(" ") < 0:
            return True  # “7:45”
        between = range(one + 1, other)
        return len(between) <= _MOST_BETWEEN and not any(
            at in used or not self.utterance.words[at][0].isalnum() for at in between
        )


def is_telling(word: str, known: Collection[str]) -> bool:
    if not (word.isdecimal() or (len(word) > 1 and word[0].isalpha())):
        return False
    forms = (word, word.removesuffix("s"), f"{word}s")
    return not any(form in known for form in forms)


def find_end_of_number(phrase: Phrase, place: range, known: frozenset[str]) -> int:
    """Return the end of a value's span. A number's span includes a counted noun that is not in `known`."""
    words = phrase.utterance.words
    own, behind = phrase.candidate_at(place.start), word_at(words, place.stop)
    is_number = own is not None and own.kind == NUMBER
    return place.stop + 1 if is_number and is_telling(behind, known) else place.stop


def find_rival(phrase: Phrase, place: range) -> tuple[int, int] | None:
    """Return the span of a second value for a slot (“business for me, economy for my boss”), or None."""
    own = phrase.candidate_at(place.start)
    if own is None or own.kind in _LOOSE:
        return None
    values = [value for one in phrase.slots.values() for value in (one.value, *one.candidates)]
    words = phrase.utterance.words
    for one in phrase.candidates:
        shared = own.readings.keys() & one.readings.keys() - _LOOSE
        is_other = (
            one is not own
            and not _are_apart(phrase.utterance, one, own)
            and any(one.readings[kind].value not in values for kind in shared)
        )
        is_joined = word_at(words, one.first - 1) == "or" and one.first - 1 != own.last
        is_old = one.last <= place.start and word_at(words, one.first - 1) == "from"
        if is_other and not (is_joined or is_old or is_negated(phrase.utterance, one)):
            return one.first, one.last
    return None


def _are_apart(utterance: Utterance, one: Candidate, other: Candidate) -> bool:
    """Return whether a preposition separates two values, as in “to Rome via Munich”."""
    words = [word_at(utterance.words, place.first - 1) for place in (one, other)]
    is_cued = one.kind != DATE and words[0] != words[1] and PREPOSITIONS.issuperset(words)
    return words[0] in NARROWING or is_cued
