"""Messages as text: cleaning what people and programs send, and cutting it into tokens.

Does not interpret anything; offsets always refer to the cleaned text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass

_TOKEN = re.compile(r"['’]s\b|\w+(?=['’]s\b)|\w+(?:['’]\w+)*|[^\w\s]")
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
_SPACES = re.compile(r"\s+")


@dataclass(slots=True)
class Utterance:
    """A cleaned text and its tokens. `words` are lower case without accents; offsets in characters."""

    text: str
    words: list[str]
    starts: list[int]
    ends: list[int]

    def surface(self, first: int, last: int) -> str:
        """Cut out the text of the tokens from `first` up to, not including, `last`."""
        return self.text[self.starts[first] : self.ends[last - 1]] if first < last else ""

    def token_span(self, start: int, end: int) -> tuple[int, int]:
        """Find the tokens that a span of characters touches, as (first, last + 1)."""
        first = bisect_left(self.ends, start + 1)
        return first, max(first + 1, bisect_left(self.starts, end))


def clean(text: str) -> str:
    """Normalise (NFKC), drop control, zero-width and direction characters, and join white space."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _SPACES.sub(" ", _INVISIBLE.sub("", text)).strip()


def fold(text: str) -> str:
    """Fold to lower case without accents, the form in which names are compared."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char)) or text


def tokenize(text: str) -> Utterance:
    """Cut a cleaned text into tokens: words (with inner apostrophes), `'s`, and single marks."""
    starts: list[int] = []
    ends: list[int] = []
    words: list[str] = []
    for match in _TOKEN.finditer(text):
        starts.append(match.start())
        ends.append(match.end())
        words.append(match.group())
    words = [word.lower() for word in words] if text.isascii() else [fold(word) for word in words]
    return Utterance(text, words, starts, ends)


def key_of(text: str) -> str:
    """Make the form under which a name is stored in a gazetteer: folded tokens joined by one space."""
    if text.isascii() and text.isprintable():  # nearly every name is, and a start reads tens of thousands
        return " ".join(_TOKEN.findall(text)).lower()
    return " ".join(tokenize(clean(text)).words)


def word_set(words: str) -> frozenset[str]:
    """Split a text that is a list of words."""
    return frozenset(words.split())
