"""Take what is to be forgotten out of what was said and written, a sentence at a time (CO-4).

It errs on the side of forgetting: a sentence that has most of the telling words of a forgotten one goes, in whatever
order and form they stand. Where no words of people stand, names and bare values stay: they belong to a task, and say
nothing of the user.
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
"""In the origin of a note: what the user had said before, in its place."""
MOST_WORDS = 0.75
"""Of the telling words of a longer sentence, those that another one must have to say the same."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[bfnrt])")
"""In a text that holds JSON, as kept prompts do: a line break is no part of the word after it."""
_SENTENCE_END = re.compile(r"[.!?…]")
_SENTENCE = re.compile(r"((?<=[.!?…])[\"”’)]*\s+|\n+)")
_FRAME = frozenset(
    find_terms(
        "remember forget note mind know tell said prefer preference like love want need wish choose take always"
        " usually normally often mostly never hate avoid dislike please user person customer"
    )
)
"""Words with which people say that something is so, not what."""
_SPOKEN = frozenset({"text", "reply", "message", "utterance", "content", "words", "question"})
"""Members of stored JSON that hold what was said."""


@dataclass(frozen=True, slots=True)
class Unwanted:
    """What is to be found nowhere any more.

    Args:
        subjects: the telling words of each sentence.
        values: of slots, which stay where they stand alone.
        everything_until: whatever was said by then goes, in unix seconds.
        kept: what has been said since.
    """

    subjects: tuple[frozenset[str], ...]
    values: frozenset[str] = frozenset()
    everything_until: float | None = None
    kept: tuple[str, ...] = ()

    def is_in(self, text: str) -> bool:
        """Say whether a text tells any of it."""
        terms = frozenset(find_terms(text)).union(find_terms(_ESCAPE.sub(_read_escape, text)))
        return any(len(subject & terms) >= _enough(subject) for subject in self.subjects)

    def take_out(self, value: Json, name: str = "") -> Json:
        """Give the same JSON without it. `name`: of the member that holds the value."""
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
        """Tell a sentence from a name or a bare value, such as `book_hotel` or "New York"."""
        if len(text.split()) < 2:
            return False
        terms = frozenset(find_terms(text))
        return _SENTENCE_END.search(text) is not None or not any(terms <= one for one in self.subjects)

    def take_out_of_text(self, text: str) -> str:
        """Put a mark for each sentence that tells it."""
        if text in self.values or not self.is_in(text):
            return text
        parts = _SENTENCE.split(text)
        kept = [FORGOTTEN if self.is_in(part) else part for part in parts]
        return "".join(kept) if kept != parts else FORGOTTEN  # it is told by several sentences together


def collect_unwanted(forgotten: Iterable[Preference]) -> Unwanted:
    """Collect what some forgotten preferences were about; `updated_at` is when they were forgotten."""
    known = list(forgotten)
    cleared = [one.updated_at for one in known if one.key == EVERYTHING]
    return Unwanted(
        subjects=tuple({subject for one in known for subject in _subjects_of(one) if subject}),
        values=frozenset(str(one.value) for one in known if one.kind is PreferenceKind.RULE),
        everything_until=max(cleared, default=None),
    )


def tells(one: Preference, forgotten: Iterable[Preference]) -> bool:
    """Say whether something that was inferred tells what was forgotten: by its words, or as a task's usual value."""
    gone = list(forgotten)
    slots = {each.key.rpartition(".")[2] for each in gone if each.kind is PreferenceKind.RULE}
    usual = one.value.get("usually") if is_object(one.value) else None
    return collect_unwanted(gone).is_in(one.text) or (is_object(usual) and not slots.isdisjoint(usual))


def read_replaced(origin: JsonObject) -> list[str]:
    """List what the user had said before, in place of a note."""
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
