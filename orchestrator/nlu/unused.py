"""Detect words that the interpretation of a message does not use (IR-6).

The reply quotes these words. Parley checks messages that request a task, give a value or ask a question and, while
a call is pending, nearly all other messages. Values in a phrase with unused words, such as “by way of Frankfurt”,
are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from orchestrator.dialogue.specification import Family, FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Digression, Mention, MessageKind, Source, Understanding
from orchestrator.domain.model import Answer
from orchestrator.nlu.clauses import EXCLUDING_WORDS, Mood, find_moods
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.phrase import (
    ARTICLES,
    GENERIC,
    PROPOSING,
    SAYING_LITTLE,
    Phrase,
    find_end_of_number,
    find_rival,
    is_telling,
)
from orchestrator.nlu.system1.extract.extractor import Extractor
from orchestrator.nlu.system1.extract.found import DATE, Candidate, places_of
from orchestrator.nlu.system1.extract.numbers import ORDINALS, TIMES
from orchestrator.nlu.system1.requests import POLITE_WORDS, REPEATING, UNDOING, request_verbs
from orchestrator.nlu.system1.slot_assignment import read_cues, slot_words
from orchestrator.nlu.system1.training.examples import kind_texts
from orchestrator.nlu.text import LONGEST_CHECKED, NARROWING, PREPOSITIONS, tokenize, word_at, word_set
from orchestrator.saying import quote_all
from orchestrator.types import Dact

_CLOSED = frozenset({Source.COMMAND, Source.ACTION, Source.DOCUMENTS})
_OF_VALUES = frozenset({MessageKind.SLOT_VALUE, MessageKind.CORRECTION})
_REQUESTS = _OF_VALUES | {MessageKind.TASK}
_CHANGING_KINDS = frozenset({MessageKind.TASK, MessageKind.CORRECTION})
_JUDGED = _REQUESTS | {MessageKind.DIGRESSION}
_MANY = 2
"""A request with at least this many values stays certain even if most of its words are unused."""
_SURE_CUES = word_set("from to")
_ANSWERED = frozenset({Digression.CLARIFICATION, Digression.HELP, Digression.STATUS, Digression.PERSON})
_SEVERAL = word_set("both each every")
"""Words that request a change to several things, which one call doesn't make."""
_CHANGING = NARROWING | EXCLUDING_WORDS


class UnusedWords:
    def __init__(
        self, flows: Mapping[Dact, FlowSpec], answers: Mapping[str, Answer], extractor: Extractor
    ) -> None:
        self._flows = flows
        self._answers = answers
        self._extractor = extractor
        self._cues = read_cues(flows.values())
        self._known: dict[tuple[object, ...], frozenset[str]] = {}
        self._slot_words = slot_words(flows.values()) - PREPOSITIONS

    def judge(self, understood: Understanding, text: str, context: NluContext) -> Understanding:
        """Return the interpretation with its unused words, and without values from partly used phrases.

        `text`: the message, with known words translated into English.
        """
        spec = self._find_spec(understood, context)
        is_offered = context.active is not None and context.question.confirming
        is_told = bool(understood.not_understood)  # by a model
        is_answer = context.question.is_open and understood.kind is MessageKind.UNKNOWN and not is_told
        is_judged = understood.kind in _JUDGED and understood.source is Source.SYSTEM1
        is_judged = is_judged or is_offered or is_answer
        may_be_judged = spec is not None or understood.kind is MessageKind.DIGRESSION
        if not (is_judged and may_be_judged) or _is_closed(understood, is_offered=is_offered):
            return understood
        utterance = tokenize(text.removesuffix(understood.later))
        if len(utterance.words) > LONGEST_CHECKED:
            return understood
        kind = understood.kind
        # A message that is not understood does not change an offer's values.
        understood = (
            replace(understood, slots={}) if is_offered and kind is MessageKind.UNKNOWN else understood
        )
        candidates = self._extractor.find(utterance, context.today, context.separators)
        known = self._find_known(understood, spec, is_offered=is_offered)
        if is_offered and _takes_value_elsewhere(understood, spec, context, utterance.words, candidates):
            phrase = Phrase(utterance, candidates, {})
            return _unknown(understood, phrase.quote(phrase.find_left((), (), SAYING_LITTLE), ()))
        if _is_used_up(utterance.words, candidates, understood.slots, known):
            return understood
        phrase = Phrase(utterance, candidates, understood.slots)
        if kind is MessageKind.DIGRESSION or spec is None:
            return _check_question(understood, phrase, known, is_offered=is_offered)
        known = _with_ordinals(known, phrase, context)
        half = self._find_half_used(phrase, spec, known, context.question.slot)
        slots = {name: one for name, one in understood.slots.items() if name not in half}
        left = phrase.find_left(slots, half.values(), known)
        if understood.declines:
            moods = find_moods(utterance.words, ())
            left = [at for at in left if moods.get(at) is not Mood.FORBIDDEN]
        if kind in _REQUESTS:
            left = sorted({*left, *phrase.find_excluded(" ".join(map(quote_all, understood.assumed)))})
        if not left:
            return understood
        is_half_used = bool(half) and not slots and (is_offered or kind is not MessageKind.TASK)
        read = replace(understood, slots=slots)
        return _name_left(read, phrase, left, is_offered=is_offered, is_half_used=is_half_used)

    def _find_spec(self, understood: Understanding, context: NluContext) -> FlowSpec | None:
        """Return the flow or running plan that the message is about, or None."""
        spec, kind = context.active, understood.kind
        if kind is MessageKind.TASK and understood.flows:
            spec = self._flows.get(understood.flows[0].dact, spec)
        elif kind is MessageKind.CORRECTION and understood.target is not None:
            spec = self._flows.get(Dact(understood.target), spec)
        if spec is not None and context.plan is not None and not understood.slots.keys() <= spec.slots.keys():
            return context.plan.spec
        return spec

    def _find_known(
        self, understood: Understanding, spec: FlowSpec | None, *, is_offered: bool
    ) -> frozenset[str]:
        """Return the known words for an interpretation, cached unless they include words from the message."""
        kind, target = understood.kind, understood.target
        has_message_words = understood.later or understood.assumed or (target and target not in self._answers)
        is_kept = not has_message_words and (spec is None or self._flows.get(spec.dact) is spec)
        key = (kind, spec and spec.dact, frozenset(understood.slots), target, understood.copied, is_offered)
        known = self._known.get(key) if is_kept else None
        if known is None:
            polite = POLITE_WORDS - TIMES if understood.copied else POLITE_WORDS  # “the same, a week later”
            known = self._vocabulary(understood, spec) | (frozenset[str]() if is_offered else polite)
            if is_kept:
                self._known[key] = known
        return known

    def _vocabulary(self, understood: Understanding, spec: FlowSpec | None) -> frozenset[str]:
        """Return the words that the interpretation explains, without the words in its values."""
        known = {*SAYING_LITTLE, *_words_of_kind(understood.kind)}
        known.update(*(_words(text) for text in (understood.later, *map(quote_all, understood.assumed))))
        names_deed = understood.kind in {MessageKind.TASK, MessageKind.DENIAL}  # “no, don't book that”
        if spec is not None and (names_deed or understood.slots):
            known.update(_words(spec.dact), *(_words(example) for example in spec.examples))
        if spec is not None and understood.kind is MessageKind.TASK:
            known.update(_words(spec.description), *(_words_of_slot(slot) for slot in spec.slots.values()))
        for name in understood.slots:
            if spec is not None and (slot := spec.slots.get(name)) is not None:
                known |= _words_of_slot(slot)
        if understood.copied:
            known |= REPEATING
        if (answer := self._answers.get(understood.target or "")) is not None:
            known.update(*(_words(example) for example in answer.examples))
        if spec is not None and names_deed and not UNDOING.isdisjoint(request_verbs((spec,))):
            known |= UNDOING
        if spec is not None and spec.family is not Family.READ and names_deed:
            return frozenset(known.difference(_SEVERAL - _words(" ".join(spec.examples))))
        return frozenset(known)

    def _find_half_used(
        self, phrase: Phrase, spec: FlowSpec, known: frozenset[str], asked: str | None
    ) -> dict[str, range]:
        """Return, by slot, the span of a phrase that contains the slot's value and gives it another meaning.

        `asked`: the requested slot. A message that begins with a value for this slot is an answer.
        """
        found: dict[str, range] = {}
        has_duration = not TIMES.isdisjoint(phrase.utterance.words)
        for name, places in phrase.places.items():
            slot = spec.slots.get(name)
            is_part = (
                len(phrase.slots[name].text) < len(phrase.utterance.text)
                and not phrase.slots[name].candidates
            )
            for place in places if slot is not None and is_part else ():
                first = self._begin_of_phrase(phrase, place.start, name, known)
                if has_duration:
                    first = min(first, _begin_of_duration(phrase, place.start, spec))
                last = find_end_of_number(phrase, place, known)
                rival = find_rival(phrase, place) if self._is_only(slot, spec) else None
                is_answer = name == asked and SAYING_LITTLE.issuperset(phrase.utterance.words[: place.start])
                stray = not (is_answer or self._is_cued(phrase, place, name)) and (
                    phrase.slots[name].invalid is not None or phrase.is_lost(place, known)
                )
                if first < place.start or last > place.stop or stray or rival is not None:
                    ends = (first, last, *(rival or ()))
                    found[name] = range(min(ends), max(ends))
        return found

    def _begin_of_phrase(self, phrase: Phrase, start: int, name: str, known: frozenset[str]) -> int:
        """Return the start of a value's phrase, including earlier words that change the meaning of the value."""
        words, used = phrase.utterance.words, phrase.find_used(phrase.slots)
        begin = at = start
        cues = self._cues.get(name, set[str]())
        if at > 0 and words[at - 1] in self._slot_words - known - ARTICLES - cues:
            return at - 1  # “return a week later” doesn't change the outbound flight
        nouns = known.difference(_words_of_kind(MessageKind.DENIAL)) | SAYING_LITTLE
        is_open = False  # True after a noun that is only part of the phrase after a preposition
        while at > 0 and at - 1 not in used and at - 1 not in phrase.valued:
            word = words[at - 1]
            is_proposal = word == "about" and word_at(words, at - 2) in PROPOSING
            if is_proposal or (word in _SURE_CUES and word in cues):
                break
            if word in NARROWING and word not in cues:
                begin, is_open = at - 1, False
            elif word in GENERIC or word in NARROWING:
                begin, is_open = (at - 1 if is_open else begin), False
            elif is_telling(word, nouns) and at < start and not is_open:
                is_open = True  # “way of”, perhaps after “by”
            elif word not in ARTICLES:
                break
            at -= 1
        return begin

    def _is_only(self, slot: SlotSpec | None, spec: FlowSpec) -> bool:
        return slot is not None and not any(
            one.name != slot.name and one.takes_what(slot) for one in spec.slots.values()
        )

    def _is_cued(self, phrase: Phrase, place: range, name: str) -> bool:
        before = word_at(phrase.utterance.words, place.start - 1)
        return before == "to" or before in self._cues.get(name, ())


def _begin_of_duration(phrase: Phrase, start: int, spec: FlowSpec) -> int:
    """Return the start of a duration before a date, as in “a week on Tuesday”, or `start` if there is none.

    Durations in the flow's examples, such as “for two nights from Tuesday”, don't change a date.
    """
    words, at = phrase.utterance.words, start
    while at > 0 and words[at - 1] in GENERIC:
        at -= 1
    is_date = any(one.kind == DATE and one.first == start for one in phrase.candidates)
    if not is_date or at == 0 or words[at - 1] not in TIMES:
        return start
    if phrase.find_used(phrase.slots).intersection((at - 1, at - 2)):
        return start
    return start if any(words[at - 1] in _words(one) for one in spec.examples) else at - 1


def _with_ordinals(known: frozenset[str], phrase: Phrase, context: NluContext) -> frozenset[str]:
    """Return `known`, with the ordinals if a value may come from a displayed row: “the third one”."""
    is_of_row = context.shown is not None and not all(phrase.places.values())
    return known | ORDINALS.keys() if is_of_row else known


def _unknown(understood: Understanding, words: Iterable[str]) -> Understanding:
    return Understanding(MessageKind.UNKNOWN, understood.source, understood.text, not_understood=tuple(words))


def _name_left(
    understood: Understanding, phrase: Phrase, left: Sequence[int], *, is_offered: bool, is_half_used: bool
) -> Understanding:
    """Return the interpretation with the unused words, or UNKNOWN if the message may mean something else."""
    kind, slots = understood.kind, understood.slots
    told = " ".join(map(quote_all, understood.assumed))
    words = tuple(one for one in phrase.quote(left, slots) if one not in told)
    is_else = kind in _CHANGING_KINDS and phrase.names_other_thing(left)
    is_else = is_else or (kind is MessageKind.TASK and len(slots) < _MANY and phrase.is_mostly(left))
    if is_else and not is_offered:
        return replace(understood, kind=MessageKind.UNKNOWN, slots={}, not_understood=words)
    return _unknown(understood, words) if is_half_used else replace(understood, not_understood=words)


def _check_question(
    understood: Understanding, phrase: Phrase, known: frozenset[str], *, is_offered: bool
) -> Understanding:
    """Return the interpretation of a question, or UNKNOWN if the answer would be for a different question.

    While a call is pending, report unused values.
    """
    if understood.target is not None and (left := phrase.find_left((), (), known)):
        return _unknown(understood, phrase.quote(left, ()))
    left = phrase.find_left((), (), None) if is_offered else []
    return replace(understood, not_understood=tuple(phrase.quote(left, ()))) if left else understood


def _takes_value_elsewhere(
    understood: Understanding,
    spec: FlowSpec | None,
    context: NluContext,
    words: Sequence[str],
    candidates: Iterable[Candidate],
) -> bool:
    """Return whether a model interpreted mere values as a request for another task or a correction of a lookup.

    While a call is pending, such a message corrects the call. Questions, and messages with a word from the
    other task's examples, are exempt.
    """
    kind, active = understood.kind, context.active
    if understood.source is not Source.SYSTEM2 or active is None or spec is None or spec.dact == active.dact:
        return False
    if kind is not MessageKind.TASK and not (kind is MessageKind.CORRECTION and spec.family is Family.READ):
        return False
    inside = places_of(candidates)
    said = {word for at, word in enumerate(words) if at not in inside and is_telling(word, SAYING_LITTLE)}
    own = _words(spec.dact).union(*(_words(example) for example in spec.examples))
    return bool(inside) and "?" not in words and said.isdisjoint(own - PREPOSITIONS)


def _is_used_up(
    words: Sequence[str],
    candidates: Iterable[Candidate],
    slots: Mapping[str, Mention],
    known: frozenset[str],
) -> bool:
    """Return whether every word is known or part of a value, and no word can change a value's meaning."""
    texts, inside = [one.text for one in slots.values()], set[int]()
    if not _CHANGING.isdisjoint(words):
        return False
    for one in candidates:
        if one.text not in texts:
            return False
        inside.update(range(one.first, one.last))
    for at, word in enumerate(words):
        if at not in inside and word not in known and (word.isdecimal() or word[0].isalpha()):
            return False
    return True


def _is_closed(understood: Understanding, *, is_offered: bool) -> bool:
    """Return whether an interpretation doesn't need a check.

    While a call is pending, only commands, actions, answers from documents and rejected messages are exempt.
    """
    if understood.source in _CLOSED or understood.rejection is not None:
        return True
    is_answered = understood.digression in _ANSWERED or understood.kind is MessageKind.PLAN_CHANGE
    return is_answered and not is_offered


@lru_cache(maxsize=2048)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", text.lower()))


def _words_of_slot(slot: SlotSpec) -> frozenset[str]:
    texts = (slot.name, slot.description, slot.entity or "")
    people = "people persons passengers travellers travelers us we" if slot.counts else ""
    return frozenset[str]().union(word_set(people), *map(_words, texts))


@cache
def _words_of_kind(kind: MessageKind) -> frozenset[str]:
    own = {kind.value, "correction", "denial"} if kind in _OF_VALUES else {kind.value}
    return frozenset[str]().union(*(_words(text) for name in own for text in kind_texts().get(name, ())))
