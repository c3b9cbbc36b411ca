"""Split texts into sentences and search terms (stemmed words without stop words), and estimate token counts."""

import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_STOP_WORDS_TEXT = """
    a about after all also am an and any are as at be been before but by can could did do does for from get had has
    have he her here him his how i if in into is it its just may me more most must my no not of off on one or our
    out please she should so some than that the their them then there these they this those to too up us very was
    we were what when where which who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
_ENDINGS = ("ations", "ation", "ings", "ments", "ment", "ing", "ies", "ied", "ed", "es", "s", "y", "e")
SHORTEST_STEM = 3
MOST_REMEMBERED = 50_000


def find_terms(text: str) -> tuple[str, ...]:
    """Return the search terms of a text in order, including repetitions."""
    return tuple(_stem(word) for word in split_words(text) if word not in STOP_WORDS)


def share_of(text: str, other: str, *, empty: float = 0.0) -> float:
    """Return the share of a text's search terms that occur in another text.

    `empty`: the result for a text without search terms.
    """
    terms = set(find_terms(text))
    return len(terms & set(find_terms(other))) / len(terms) if terms else empty


def split_words(text: str) -> list[str]:
    """Return a text's case-folded words without accents."""
    return _WORD.findall(fold(text))


def split_sentences(text: str) -> list[str]:
    """Return a text's sentences, which end with a period, “!”, “?” or a newline."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def fold(text: str) -> str:
    """Return the text in lower case without accents, for comparing words and names."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


@lru_cache(maxsize=MOST_REMEMBERED)
def _stem(word: str) -> str:
    """Strip a word's ending, so that "refunds", "refunded" and "refund" become the same term."""
    if not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            stem = word[: -len(ending)]
            return stem[:-1] if len(stem) > SHORTEST_STEM and stem[-1] == stem[-2] else stem
    return word


def count_tokens(text: str) -> int:
    """Estimate a model's token count: one token per four bytes, and at least one per two words."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return max((size + 3) // 4, text.count(" ") // 2)
