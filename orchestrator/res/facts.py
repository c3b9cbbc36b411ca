"""Whether a rewriting says what its draft says: numbers, codes, links, names, and yes or no (RS-3).

Judges words only; what is done about a fault is `naturalize`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_FACT = re.compile(r"https?://\S+|[^\s,;!?()“”\"']*\d[^\s,;!?()“”\"']*|\b[A-Z]{2,}\b")
_NAME = re.compile(r"(?<![\w'’])[A-ZÀ-ÖØ-Þ][^\W\d_]*(?:[-'’][^\W\d_]+)*(?!\w)")
_NOT = re.compile(r"\b(?:not|no|nobody|none|never|nothing|cannot|unable|without)\b|n['’]t\b", re.IGNORECASE)
_SENTENCE_ENDS = ".!?:;\n•–-*(“\"'"
_SELF = frozenset({"i", "i'm", "i’m", "i'll", "i’ll", "i've", "i’ve", "i'd", "i’d", "ok"})
MOST_TOLD = 200
"""Characters of a fault."""


def find_fault(
    draft: str, text: str, *, values: Iterable[str] = (), known: str = "", english: bool = True
) -> str | None:
    """Say why a rewriting must not be used; None when it holds every fact of the draft and no other.

    Args:
        draft: what a template said.
        text: the same in other words.
        values: words for slot values that the draft may hold.
        known: other words that name nothing new, such as the assistant's own name.
        english: whether capitals mean names, and "not" a no.
    """
    lost = _facts(draft) - _facts(text)
    lost |= {value for value in values if value in draft and value.casefold() not in text.casefold()}
    if english:
        lost |= {name for name in find_names(draft) if not _holds(text, name)}
    if lost:
        return f"The rewriting lost: {', '.join(sorted(lost))}"[:MOST_TOLD]
    added = find_added(draft, text, known=known, english=english)
    if added is not None:
        return added
    if english and bool(_NOT.search(draft)) != bool(_NOT.search(text)):
        return "The rewriting made a no of a yes, or the other way round"
    if len(text) > 2 * len(draft) + 200:
        return f"The rewriting has {len(text)} characters, the draft {len(draft)}"
    return None


def find_added(draft: str, text: str, *, known: str = "", english: bool = True) -> str | None:
    """Say what a rewriting, or its beginning up to the end of a word, says beyond the draft."""
    added = _facts(text) - _facts(draft)
    if english:
        added |= {name for name in find_names(text) if not (_holds(draft, name) or _holds(known, name))}
    return f"The rewriting added: {', '.join(sorted(added))}"[:MOST_TOLD] if added else None


def find_names(text: str) -> set[str]:
    """Capitalised words that do not begin a sentence."""
    return {
        found[0]
        for found in _NAME.finditer(text)
        if found[0].casefold() not in _SELF and not _begins_sentence(text, found.start())
    }


def _begins_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \t")
    return not before or before[-1] in _SENTENCE_ENDS


def _holds(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _facts(text: str) -> set[str]:
    return {found.rstrip(".:") for found in _FACT.findall(text)}
