"""Clean and tokenize message texts, and translate their words into English.

Offsets refer to the cleaned text.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from orchestrator.domain.schema import LexiconFile
from orchestrator.memory.tokenizer import fold

_TOKEN = re.compile(r"['’]s\b|\w+(?=['’]s\b)|\w+(?:['’]\w+)*|[^\w\s]")
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
LONGEST_CHECKED = 400
"""Maximum length of a message whose words are checked one by one, in tokens."""
_SPACES = re.compile(r"\s+")
_SIGNS = {"yes": "👍👌✅✔💯", "no": "👎❌✖🚫🙅", "hmm": "🤔😕🙁☹😟😬😐🤷❓", "please": "🙏"}
_READ_SIGNS: dict[int, str | None] = {
    **{ord(sign): f" {said} " for said, signs in _SIGNS.items() for sign in signs},
    **dict.fromkeys(range(0x1F3FB, 0x1F400)),  # skin tones
}
_MOST_WORDS_WITH_SIGN = 4
"""Maximum length of an answer that ends with an emoji, in words. In longer texts, emoji are decoration."""


@dataclass(slots=True)
class Utterance:
    """A cleaned text and its tokens. `words`: folded tokens. `starts`, `ends`: their offsets, in characters."""

    text: str
    words: list[str]
    starts: list[int]
    ends: list[int]

    def surface(self, first: int, last: int) -> str:
        """Return the text of the tokens from `first` to `last`, exclusive."""
        return self.text[self.starts[first] : self.ends[last - 1]] if first < last else ""

    def token_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the token range of a character span, as (first, last + 1)."""
        first = bisect_left(self.ends, start + 1)
        return first, max(first + 1, bisect_left(self.starts, end))


def clean(text: str) -> str:
    """Normalize to NFKC, remove control, zero-width and direction characters, and collapse whitespace."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    elif text.isprintable():
        return " ".join(text.split())
    return _SPACES.sub(" ", _INVISIBLE.sub("", text)).strip()


def tokenize(text: str) -> Utterance:
    """Split a cleaned text into tokens: words with inner apostrophes, `'s`, and punctuation marks."""
    spans = [match.span() for match in _TOKEN.finditer(text)]
    if text.isascii():
        small = text.lower()
        words = [small[start:end] for start, end in spans]
    else:
        words = [fold(text[start:end]) or text[start:end] for start, end in spans]
    starts, ends = map(list, zip(*spans, strict=True)) if spans else ([], [])
    return Utterance(text, words, starts, ends)


def key_of(text: str) -> str:
    """Return a name's key for lookups: normalized tokens joined by single spaces."""
    if text.isascii() and text.isprintable():  # fast path for most names at startup
        return " ".join(_TOKEN.findall(text)).lower()
    return " ".join(tokenize(clean(text)).words)


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _read_answer_in_signs(text: str) -> str:
    """Convert emoji that mean yes, no, doubt or please to words, such as “👍” to “yes”."""
    read = clean(text.translate(_READ_SIGNS))
    is_answer = text[:1] != read[:1] or read.count(" ") < _MOST_WORDS_WITH_SIGN
    return read if is_answer else text


_EXCEPTING = word_set("not except without besides")


NARROWING = word_set(
    "about above across after against around before behind below beneath beside besides between beyond by despite "
    "during except excluding inside minus near off onto out over past per since than through throughout till toward "
    "towards under until up upon via within without"
)
"""Prepositions that change a value's meaning, unless the domain's examples use them before the value's slot."""
PREPOSITIONS = NARROWING | word_set("to for in at on of with as from into")


def find_phrase(words: list[str], phrase: list[str]) -> range:
    """Return the indexes of a phrase's words, or an empty range if the phrase is empty or doesn't occur."""
    count = len(phrase)
    starts = range(len(words) - count + 1) if phrase and phrase[0] in words else ()
    return next((range(at, at + count) for at in starts if words[at : at + count] == phrase), range(0))


def word_at(words: Sequence[str], place: int) -> str:
    """Return the word at an index, or an empty string before the first word and after the last word."""
    return words[place] if 0 <= place < len(words) else ""


def is_excepted(words: Sequence[str], place: int, within: int = 2) -> bool:
    """Return whether one of the `within` words before a position excludes it, as in “not the first”."""
    return not _EXCEPTING.isdisjoint(words[max(0, place - within) : place])


class Lexicon:
    """A translator of words and phrases into English (NL-10), for components that process only English.

    Unknown words remain unchanged, so that they can't count as a confirmation.
    """

    def __init__(self, files: Iterable[LexiconFile] = ()) -> None:
        files = tuple(files)
        phrases = [
            (one.strip(), said)
            for file in files
            for said, ones in file.words.items()
            for one in ones.split("|")
        ]
        self._patterns = [pair for file in files for pair in file.patterns.items()]
        self._english = {key_of(one): said for one, said in phrases}
        self._of_english = frozenset(word for _, said in phrases for word in tokenize(said).words)
        longest_first = sorted({*self._english, *(one for one, _ in phrases)}, key=len, reverse=True)
        known = "|".join(map(re.escape, longest_first))
        self._known = re.compile(rf"(?<!\w)(?:{known})(?!\w)", re.IGNORECASE)

    def to_english(self, text: str) -> str:
        """Translate emoji, patterns and known phrases in a cleaned text, the longest phrases first.

        A text with more known English words than words in the lexicon's language counts as English.
        """
        text = text if text.isascii() else _read_answer_in_signs(text)
        if not self._english:
            return text
        known = sum(one.count(" ") + 1 for one in self._known.findall(text))
        if sum(word in self._of_english for word in tokenize(text).words) > known:
            return text
        text = self._apply_patterns(text)
        return clean(self._known.sub(lambda found: self._english[key_of(found[0])], text))

    def _apply_patterns(self, text: str) -> str:
        for pattern, said in self._patterns:
            text = re.sub(pattern, said, text, flags=re.IGNORECASE)
        return text

    def as_said(self, english: str, text: str) -> str:
        """Return the original words in `text` for a translated phrase, or the phrase itself if it isn't found."""
        if not english or not self._english:
            return english
        said_text, text = text, self._apply_patterns(text)
        pieces: list[tuple[str, str]] = []
        end = 0
        for found in self._known.finditer(text):
            pieces += [(one, one) for one in re.findall(r"\w+|\W", text[end : found.start()])]
            pieces.append((self._english[key_of(found[0])], found[0]))
            end = found.end()
        pieces += [(one, one) for one in re.findall(r"\w+|\W", text[end:])]
        whole = "".join(said for said, _ in pieces).casefold()
        start = whole.find(english.casefold())
        if start < 0:
            return english
        kept, at = "", 0
        for said, original in pieces:
            if at < start + len(english) and at + len(said) > start:
                kept += original
            at += len(said)
        return _find_original(kept, text, said_text)


def _find_original(kept: str, changed: str, text: str) -> str:
    """Return the words of `text` for the part `kept` of `changed`, in which patterns have replaced some words."""
    if kept in text:
        return kept
    part, new, old = kept.split(), changed.split(), text.split()
    first = next((at for at in range(len(new)) if new[at : at + len(part)] == part), None)
    if first is None:
        return kept
    found: list[int] = []
    for _, begin, end, old_begin, old_end in SequenceMatcher(None, new, old, autojunk=False).get_opcodes():
        if begin < first + len(part) and first < end:
            is_equal = end - begin == old_end - old_begin
            ahead, behind = max(0, first - begin), max(0, end - first - len(part))
            found += range(old_begin + ahead, old_end - behind) if is_equal else range(old_begin, old_end)
    return " ".join(old[at] for at in found)
