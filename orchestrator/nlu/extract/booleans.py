"""Yes and no: as answers, and as mentions of something wanted or not ("with wifi", "no smoking")."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.nlu.extract.span_types import is_boolean
from orchestrator.nlu.text import Utterance, key_of, word_set

_YES = word_set(
    "yes yeah yep yup y sure ok okay correct right exactly absolutely definitely please fine true affirmative"
)
_NO = word_set("no nope nah n not don't doesn't never false negative without")
_PREFIXES = ("has_", "is_", "with_", "have_", "needs_", "wants_", "add_", "include_", "includes_")
_REACH = 4
_SENTENCE_ENDS = frozenset({".", "!", "?", ",", ";", "and", "but"})
_QUESTION_WORDS = word_set("is are does do did has was will what which how")


def polarity(words: list[str]) -> bool | None:
    """Whether an answer says yes or no: the first word that does decides; None when none does."""
    for word in words[:8]:
        if word in _NO:
            return False
        if word in _YES:
            return True
    return None


def cue_phrases(slot: SlotSpec) -> list[list[str]]:
    """What people call the thing: the slot's name without its verb, and its synonyms."""
    name = slot.name
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    phrases = [name.replace("_", " "), *slot.synonyms]
    return [key_of(phrase).split(" ") for phrase in phrases if phrase]


def find_booleans(utterance: Utterance, slots: Iterable[SlotSpec]) -> dict[str, tuple[bool, str]]:
    """Slot → (whether it is wanted, the words that say so) for the yes-or-no slots that are mentioned."""
    found: dict[str, tuple[bool, str]] = {}
    for slot in slots:
        if not is_boolean(slot):
            continue
        for phrase in cue_phrases(slot):
            place = _place(utterance.words, phrase)
            if place is not None and not _is_asked_about(utterance.words, place):
                found[slot.name] = (
                    _wanted(utterance, slot, phrase, place),
                    utterance.surface(place, place + len(phrase)),
                )
                break
    return found


def _wanted(utterance: Utterance, slot: SlotSpec, phrase: list[str], place: int) -> bool:
    meant = slot.synonyms.get(" ".join(phrase), "true").lower() != "false"
    before = utterance.words[max(0, place - _REACH) : place]
    return meant != any(word in _NO for word in before)


def _is_asked_about(words: list[str], place: int) -> bool:
    """Whether the sentence around is a question about the thing, not a wish: "is it furnished?"."""
    start = place
    while start > 0 and words[start - 1] not in _SENTENCE_ENDS:
        start -= 1
    return words[start] in _QUESTION_WORDS


def _place(words: list[str], phrase: list[str]) -> int | None:
    first, count = phrase[0], len(phrase)
    if first not in words:
        return None
    for index, word in enumerate(words):
        if word == first and words[index : index + count] == phrase:
            return index
    return None


def boolean_value(slot: SlotSpec, wanted: bool) -> bool | str:
    """The value in the spelling of the slot's own list, when it has one."""
    return next((value for value in slot.values if value.lower() == str(wanted).lower()), wanted)
