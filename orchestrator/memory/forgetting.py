"""Remove forgotten content from stored texts, sentence by sentence (CO-4).

A sentence is removed if it contains most key terms of a forgotten sentence, in any order or form. As a
result, unrelated sentences may also be removed. Outside prose, names and bare values stay, because they
belong to a task and say nothing about the user.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

from orchestrator.memory.tokenizer import find_terms
from orchestrator.ports.memory.preferences import EVERYTHING, Preference, PreferenceKind
from orchestrator.types import Json, JsonObject, is_list, is_object

FORGOTTEN = "[forgotten]"
REPLACES = "replaces"
"""Key in a note's origin for the user's earlier statements that the note replaced."""
MOST_WORDS = 0.75
"""Minimum share of a forgotten sentence's key terms that a sentence must contain to be removed.

Forgotten sentences with at most three key terms require all of them.
"""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[bfnrt])")
"""Escapes in JSON text, such as stored prompts, which would otherwise merge with the next word."""
_SENTENCE_END = re.compile(r"[.!?…]")
_SENTENCE = re.compile(r"((?<=[.!?…])[\"”’)]*\s+|\n+)")
_FRAME = frozenset(
    find_terms(
        "remember forget note mind know tell said prefer preference like love want need wish choose take always"
        " usually normally often mostly never hate avoid dislike please user person customer"
    )
)
"""Words that introduce a statement but are not key terms."""
_SPOKEN = frozenset({"text", "reply", "message", "utterance", "content", "words", "question"})
"""Names of JSON members that contain conversation text."""


@dataclass(frozen=True, slots=True)
class Unwanted:
    """Content to remove from stored texts.

    Attributes:
        subjects: the key terms of each forgotten sentence.
        values: slot values, which are kept where they stand alone.
        everything_until: the time up to which all conversation text is removed, in Unix seconds, or None.
        kept: the texts of later statements, which are kept.
    """

    subjects: tuple[frozenset[str], ...]
    values: frozenset[str] = frozenset()
    everything_until: float | None = None
    kept: tuple[str, ...] = ()

    def is_in(self, text: str) -> bool:
        terms = frozenset(find_terms(text)).union(find_terms(_ESCAPE.sub(_read_escape, text)))
        return any(len(subject & terms) >= _enough(subject) for subject in self.subjects)

    def take_out(self, value: Json, name: str = "") -> Json:
        """Return a JSON value without the unwanted content.

        `name`: the name of the member that has this value.
        """
        if isinstance(value, str):
            spoken = name in _SPOKEN
            if spoken and value and self.everything_until is not None:
                return value if any(value in text for text in self.kept) else FORGOTTEN
            return self.take_out_of_text(value) if spoken or self._is_prose(value) else value
        if is_list(value):
            return [self.take_out(entry, name) for entry in value]
        if is_object(value):
            return {key: self.take_out(entry, key) for key, entry in value.items()}
        return value

    def _is_prose(self, text: str) -> bool:
        """Return whether a text is a sentence, not a name or value such as `book_hotel` or "New York"."""
        if len(text.split()) < 2:
            return False
        terms = frozenset(find_terms(text))
        return _SENTENCE_END.search(text) is not None or not any(terms <= one for one in self.subjects)

    def take_out_of_text(self, text: str) -> str:
        """Replace each sentence that contains unwanted content with `FORGOTTEN`.

        If the unwanted content is spread over several sentences, replace the whole text.
        """
        if text in self.values or not self.is_in(text):
            return text
        parts = _SENTENCE.split(text)
        kept = [FORGOTTEN if self.is_in(part) else part for part in parts]
        return "".join(kept) if kept != parts else FORGOTTEN


def collect_unwanted(forgotten: Iterable[Preference]) -> Unwanted:
    """Return the content to remove for forgotten preferences, whose `updated_at` is the time of forgetting."""
    known = list(forgotten)
    cleared = [one.updated_at for one in known if one.key == EVERYTHING]
    return Unwanted(
        subjects=tuple({subject for one in known for subject in _subjects_of(one) if subject}),
        values=frozenset(str(one.value) for one in known if one.kind is PreferenceKind.RULE),
        everything_until=max(cleared, default=None),
    )


def tells(one: Preference, forgotten: Iterable[Preference]) -> bool:
    """Return whether an inferred preference contains forgotten content in its text or its usual slot values."""
    gone = list(forgotten)
    slots = {each.key.rpartition(".")[2] for each in gone if each.kind is PreferenceKind.RULE}
    usual = one.value.get("usually") if is_object(one.value) else None
    return collect_unwanted(gone).is_in(one.text) or (is_object(usual) and not slots.isdisjoint(usual))


def read_replaced(origin: JsonObject) -> list[str]:
    replaced = origin.get(REPLACES)
    return [str(text) for text in replaced] if is_list(replaced) else []


def _read_escape(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else " "


def _subjects_of(one: Preference) -> Iterator[frozenset[str]]:
    if one.kind is PreferenceKind.RULE:
        slot = one.key.rpartition(".")[2].replace("_", " ")
        yield frozenset(find_terms(f"{slot} {one.value}"))
        return
    for text in (one.text, *read_replaced(one.origin)):
        terms = frozenset(find_terms(text))
        yield (terms - _FRAME) or terms


def _enough(subject: frozenset[str]) -> int:
    return len(subject) if len(subject) <= 3 else ceil(MOST_WORDS * len(subject))
