"""Selection of the slot for a date by the words before the date, if exactly one slot matches (IR-4).

The trained model weights other words around a value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.text import tokenize, word_set

_UNTIL = word_set("until till til through")
_LINKS = word_set("the a it on for is to be should must will as in at by them that this my our up me - = :")
"""Words that can stand between the name of a date and the date."""
_GENERIC = word_set("date day time")
_FORMS = re.compile(r"(?:ing|ed|s)$")


def find_named_day(words: Sequence[str], first: int, days: Sequence[SlotSpec]) -> SlotSpec | None:
    """Return the date slot that matches the words before the date at `first`: "collect it on", "until".

    A slot matches by a word of its name, or by all distinctive words of its description.
    """
    place = first - 1
    said: set[str] = set()
    names = [_names_of(slot.name, slot.description) for slot in days]
    known = set[str]().union(*(name | description for name, description in names))
    while place >= 0 and (words[place] in _LINKS or not known.isdisjoint(_forms(words[place]))):
        said |= _forms(words[place])
        place -= 1
    if place >= 0 and words[place] in _UNTIL:
        later = [slot for slot in days if slot.not_before is not None]
        return later[0] if len(later) == 1 else None
    named = [slot for at, slot in enumerate(days) if _is_named(said, names, at)]
    return named[0] if len(named) == 1 else None


def _is_named(said: set[str], names: list[tuple[frozenset[str], frozenset[str]]], at: int) -> bool:
    others = set[str]().union(*(one | two for place, (one, two) in enumerate(names) if place != at))
    name, description = names[at][0] - others, names[at][1] - others
    return not said.isdisjoint(name) or (bool(description) and description <= said)


def _forms(word: str) -> set[str]:
    return {word, _FORMS.sub("", word)}


@lru_cache(maxsize=256)
def _names_of(name: str, description: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the distinctive words of a slot's name and of its description."""
    parts = (name.casefold().split("_"), tokenize(description.casefold()).words)
    one, two = (frozenset(words) - _GENERIC - STOP_WORDS - _LINKS for words in parts)
    return one, two
