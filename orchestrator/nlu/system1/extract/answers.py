"""Answers to the open question, and wishes such as “with wifi” or “no smoking”.

If no extractor finds a value, `read_answer` interprets the whole answer.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from orchestrator.dialogue.slots import LIST_TYPES
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.nlu.clauses import can_be_name
from orchestrator.nlu.system1.extract.dates import read_loosely
from orchestrator.nlu.system1.extract.extractor import (
    accepts_names,
    is_boolean,
    kinds_of,
)
from orchestrator.nlu.system1.extract.found import DATE, MONEY, NUMBER, TIME, reading_of
from orchestrator.nlu.system1.extract.gazetteer import Gazetteer
from orchestrator.nlu.system1.extract.numbers import find_numbers, is_pronoun
from orchestrator.nlu.system1.extract.times import in_part_of_day
from orchestrator.nlu.text import Utterance, find_phrase, key_of, tokenize, word_set
from orchestrator.saying import say
from orchestrator.types import is_list

_FILLER = re.compile(
    r"^(?:(?:um+|uh+|well|so|oh|ok(?:ay)?|yes|yeah|sure|hmm+|please|just|the name is|it['’]s|its?|it is"
    r"|that['’]?s|that is|this is"
    r"|i(?:['’]d| would)? (?:like|want|prefer|choose|need)|i(?:['’]ll| will) (?:take|have)|let['’]?s (?:say|go with|do)"
    r"|make it|i am|i['’]m|my name is|call (?:it|him|her|them)"
    r"|under(?: the name)?|for|to|from|in|at|on|by|with)\b[\s,:]*)+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[\s,]*(?:please|pls|plz|thanks|thank you|would be (?:good|great|fine|nice)|is fine|sounds good)?[\s.!?,]*$",
    re.IGNORECASE,
)
_FEW_WORDS, _SHORT = 8, 4
_LONGEST_NAME = 80
"""Maximum length of a rejected name in a reply, in characters."""
_REFUSALS = frozenset({"any", "anything", "whatever", "none", "nothing"})


def core_of(text: str) -> str:
    """Remove filler words around an answer: "it's Anna, please" → "Anna"."""
    return _TAIL.sub("", _FILLER.sub("", text)).strip(" .,!?")


def read_answer(utterance: Utterance, slot: SlotSpec, gazetteer: Gazetteer, today: date) -> Mention | None:
    """Interpret a message as a value for the requested slot, or return None if it can't be one."""
    if slot.is_free_text:
        return Mention(utterance.text, utterance.text) if utterance.words else None
    if is_boolean(slot):
        wanted = polarity(utterance.words)
        return None if wanted is None else Mention(boolean_value(slot, wanted), utterance.text)
    core = core_of(utterance.text)
    if not core or len(core) > 200 or not any(char.isalnum() for char in core):
        return None
    mention = _read_typed(core, slot, today) or _read_listed(core, slot, gazetteer)
    return None if mention is None else in_list(mention, slot)


def in_list(mention: Mention, slot: SlotSpec) -> Mention:
    is_single = slot.type in LIST_TYPES and mention.value is not None and not is_list(mention.value)
    return replace(mention, value=[mention.value]) if is_single else mention


def _read_typed(core: str, slot: SlotSpec, today: date) -> Mention | None:
    kinds = kinds_of(slot)
    said = tokenize(core)
    spans = ((one, said.token_span(one.start, one.end)) for one in find_numbers(said))
    numbers = [one for one, span in spans if not is_pronoun(said, *span)]
    if DATE in kinds:
        if core.isdigit() or len(core.split()) > _FEW_WORDS:
            return None
        value = read_loosely(core.lower(), today)
        return Mention(value, core) if value else None
    if not numbers or len(core.split()) > _FEW_WORDS:
        return None
    number, text = numbers[0].reading.value, core[numbers[0].start : numbers[0].end]
    if TIME in kinds:
        if number != int(number) or not 0 <= number <= 23:
            return Mention(None, text, invalid=say("not_time_of_day", text=text))
        return Mention(in_part_of_day(f"{int(number):02d}:00", text, slot.part_of_day), text)
    if MONEY in kinds and len(slot.values) == 1:
        return Mention({"amount": number, "currency": slot.values[0]}, text)
    return Mention(number, text) if MONEY in kinds or NUMBER in kinds else None


def _read_listed(core: str, slot: SlotSpec, gazetteer: Gazetteer) -> Mention | None:
    """Interpret an answer as a listed value, or as a name if the slot takes unlisted names.

    Misspelled values are recognized unless the slot is open.
    """
    kinds = kinds_of(slot)
    for kind in kinds:
        values = gazetteer.lookup(kind, core)
        reading = reading_of(values) if values else None
        if reading is None and not slot.open:
            reading = gazetteer.repair(kind, core)
        if reading is not None:
            return Mention(reading.value, core, reading.candidates)
    words = core.lower().split()
    is_sentence = _OF_SENTENCES.intersection(words if slot.entity is not None else ())
    is_name = (
        accepts_names(slot)
        and len(words) <= _FEW_WORDS
        and words[0] not in WH_WORDS
        and not is_sentence
        and can_be_name(core)
    )
    return Mention(core, core) if is_name else None


def reject_answer(text: str, slot: SlotSpec) -> Mention | None:
    """Return a short answer as an invalid value.

    Return None if the slot takes any name, or if the message is unlikely to be a value: if it is long, a question,
    a sentence or a word such as “anything”.
    """
    core = core_of(text)
    words = core.lower().split()
    is_other = not _REFUSALS.union(WH_WORDS, _OF_SENTENCES).isdisjoint(words)
    if is_other or not 0 < len(words) <= _SHORT or accepts_names(slot):
        return None
    return as_unknown(core, core, slot)


def as_unknown(name: str, text: str, slot: SlotSpec) -> Mention:
    """Return an invalid value for a name that the slot's entity doesn't contain. `text`: the user's words."""
    kind = (slot.entity or slot.name).replace("_", " ")
    return Mention(None, text, invalid=say("no_such_name", kind=kind, name=name[:_LONGEST_NAME]))


WH_WORDS = word_set("who whose what what's when where why which how")
_OF_SENTENCES = word_set(
    "i i'm i'd i've me my mine you your we us our he him his she her they them it its this that these those am is are "
    "was were be been do does did have has had can could will would should may might must"
)
_YES = word_set(
    "yes yeah yep yup y sure ok okay correct right exactly absolutely definitely please fine true affirmative"
)
_NO = word_set("no nope nah n not don't doesn't never false negative without")
_PREFIXES = ("has_", "is_", "with_", "have_", "needs_", "wants_", "add_", "include_", "includes_")
_REACH = 4
_SENTENCE_ENDS = frozenset({".", "!", "?", ",", ";", "and", "but"})
_QUESTION_WORDS = word_set("is are does do did has was will what which how")


def polarity(words: list[str]) -> bool | None:
    """Return True for yes or False for no, by the first decisive word, or None if none of 8 words is decisive."""
    return next((word in _YES for word in words[:8] if word in _NO or word in _YES), None)


def cue_phrases(slot: SlotSpec) -> list[list[str]]:
    """Return the words of each phrase for a slot: its name without a prefix such as `has_`, and its synonyms."""
    name = slot.name
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    phrases = [name.replace("_", " "), *slot.synonyms]
    return [key_of(phrase).split(" ") for phrase in phrases if phrase]


def find_booleans(utterance: Utterance, slots: Mapping[str, SlotSpec]) -> dict[str, Mention]:
    """Return values for those of the yes-or-no `slots` that a message mentions."""
    found: dict[str, Mention] = {}
    words = utterance.words
    for slot in slots.values():
        for phrase in cue_phrases(slot):
            places = find_phrase(words, phrase)
            if places and not _is_asked_about(words, places.start):
                is_wish = slot.synonyms.get(" ".join(phrase), "true").lower() != "false"
                is_negated = not _NO.isdisjoint(words[max(0, places.start - _REACH) : places.start])
                value = boolean_value(slot, is_wish != is_negated)
                found[slot.name] = Mention(value, utterance.surface(places.start, places.stop))
                break
    return found


def _is_asked_about(words: list[str], place: int) -> bool:
    """Return whether a sentence asks about the slot instead of requesting it: "is it furnished?"."""
    start = place
    while start > 0 and words[start - 1] not in _SENTENCE_ENDS:
        start -= 1
    return words[start] in _QUESTION_WORDS


def boolean_value(slot: SlotSpec, wanted: bool) -> bool | str:
    """Return `wanted` as spelled in the slot's list of values, or unchanged if the list doesn't contain it."""
    return next((value for value in slot.values if value.lower() == str(wanted).lower()), wanted)
