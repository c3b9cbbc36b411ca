"""Reading a whole message as the answer to the open question, when no extractor found a value."""

from __future__ import annotations

import re
from datetime import date

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.nlu.extract.booleans import boolean_value, polarity
from orchestrator.nlu.extract.dates import read_loosely
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.extract.found import DATE, MONEY, NAME, NUMBER, TIME
from orchestrator.nlu.extract.gazetteer import reading_of
from orchestrator.nlu.extract.numbers import find_numbers
from orchestrator.nlu.extract.span_types import (
    LISTS,
    accepts_names,
    is_boolean,
    is_free_text,
    kinds_of,
    type_name,
)
from orchestrator.nlu.extract.times import bare_hour
from orchestrator.nlu.text import Utterance, clean, tokenize

_FILLER = re.compile(
    r"^(?:(?:um+|uh+|well|so|oh|ok(?:ay)?|yes|yeah|sure|hmm+|please|just|the name is|it['’]s|its?|it is"
    r"|that['’]?s|that is|this is"
    r"|i(?:['’]d| would)? (?:like|want|prefer|choose|need)|i(?:['’]ll| will) (?:take|have)|let['’]?s (?:say|go with|do)"
    r"|make it|i am|i['’]m|my name is|call (?:it|him|her|them)"
    r"|under(?: the name)?|for|to|from|in|at|on|by|with)\b[\s,:]*)+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[\s,]*(?:please|thanks|thank you|would be (?:good|great|fine|nice)|is fine|sounds good)?[\s.!?,]*$",
    re.IGNORECASE,
)
_FEW_WORDS = 8
_REFUSALS = frozenset({"any", "anything", "whatever", "none", "nothing"})


def core_of(text: str) -> str:
    """An answer without the words around it: "it's Anna, please" → "Anna"."""
    return _TAIL.sub("", _FILLER.sub("", text)).strip(" .,!?")


def read_answer(utterance: Utterance, slot: SlotSpec, extractor: Extractor, today: date) -> Mention | None:
    """Read a message as the value of the asked slot; None when it cannot be one."""
    if is_free_text(slot):
        return Mention(utterance.text, utterance.text) if utterance.words else None
    if is_boolean(slot):
        wanted = polarity(utterance.words)
        return None if wanted is None else Mention(boolean_value(slot, wanted), utterance.text)
    core = core_of(utterance.text)
    if not core or len(core) > 200 or not any(char.isalnum() for char in core):
        return None
    mention = _read_typed(core, slot, today) or _read_listed(core, slot, extractor)
    if mention is not None and type_name(slot) in LISTS and not isinstance(mention.value, list):
        return Mention([mention.value], mention.text, mention.candidates, mention.invalid)
    return mention


def _read_typed(core: str, slot: SlotSpec, today: date) -> Mention | None:
    kinds = kinds_of(slot)
    numbers = find_numbers(tokenize(core))
    if DATE in kinds:
        if core.isdigit() or len(core.split()) > _FEW_WORDS:
            return None
        value = read_loosely(core.lower(), today)
        return Mention(value, core) if value else None
    if not numbers or len(core.split()) > _FEW_WORDS:
        return None
    number, text = numbers[0].reading.value, core[numbers[0].start : numbers[0].end]
    if TIME in kinds:
        hour = bare_hour(number)
        return Mention(hour, text) if hour else Mention(None, text, invalid=f"{text} is not a time of day.")
    if MONEY in kinds and len(slot.values) == 1:
        return Mention({"amount": number, "currency": slot.values[0]}, text)
    return Mention(number, text) if MONEY in kinds or NUMBER in kinds else None


def _read_listed(core: str, slot: SlotSpec, extractor: Extractor) -> Mention | None:
    """Read as a name: of the list (perhaps misspelt), or any where the vocabulary is open."""
    kinds = kinds_of(slot)
    for kind in kinds:
        values = extractor.gazetteer.lookup(kind, core)
        reading = reading_of(values) if values else None
        if reading is None and not slot.open:
            reading = extractor.gazetteer.repair(kind, core)
        if reading is not None:
            return Mention(reading.value, core, reading.candidates)
    if accepts_names(slot) and len(core.split()) <= _FEW_WORDS:
        return Mention(core, core)
    return None


def reject_answer(text: str, slot: SlotSpec) -> Mention | None:
    """Say that a short answer is none of the values; None when it is too long to have been meant as one."""
    core = core_of(text)
    if not core or len(core.split()) > 4 or NAME in kinds_of(slot) or core.lower() in _REFUSALS:
        return None
    what = slot.entity or slot.name.replace("_", " ")
    return Mention(None, core, invalid=f"{core!r} is not a {what.replace('_', ' ')} that I know.")


def parse(text: str) -> Utterance:
    """Clean and tokenize."""
    return tokenize(clean(text))
