"""Correction of two swapped letters, or of a single or doubled one: "plna a tirp to rmoe", "pariss".

Other slips are not corrected, because an added or missing letter makes other words ("plane", "plan"); the
user is asked instead. Long names of days and of a slot's own values tolerate more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from rapidfuzz.distance import OSA

_WORD = re.compile(r"(?<![\w'’\"“-])[a-z]{4,}(?![\w'’\"”-])")
"""Words in lower case: a capital begins a name, whose spelling is not corrected."""


SHORTEST_MISSPELT = 6
"""Minimum letters of a name whose misspellings are corrected."""
_LONG = 8
"""Minimum length of a name that can have two misspellings."""


def spell(word: str, names: Collection[str]) -> tuple[str, ...]:
    """List the names most similar to a misspelled word; empty for a correctly spelled word."""
    if word in names or word.removesuffix("s") in names:
        return ()
    most = 2 if len(word) >= _LONG else 1
    near = {name: OSA.distance(word, name, score_cutoff=most) for name in sorted(names)}
    least = min(near.values(), default=most + 1)
    return tuple(name for name, distance in near.items() if distance == least <= most)


def is_slip(word: str, known: Collection[str]) -> bool:
    """Return whether a word is a known one with a slip of the pen."""
    if any(one in known for one in _spellings(word)):
        return True
    return len(word) >= SHORTEST_MISSPELT and bool(spell(word, known))


def mend(text: str, is_known: Callable[[str], bool], is_meant: Callable[[str], bool]) -> str:
    """Correct each misspelled word of a text; a word with no or several corrections stays.

    `is_known`: whether a word is correct. `is_meant`: whether it can be the result of a correction.
    """

    def correct_word(found: re.Match[str]) -> str:
        word = found[0]
        if is_known(word):
            return word
        meant = {one for one in _spellings(word) if is_meant(one)}
        return meant.pop() if len(meant) == 1 else word

    return _WORD.sub(correct_word, text)


def _spellings(word: str) -> Iterator[str]:
    for place in range(len(word) - 1):
        one, two = word[place], word[place + 1]
        if one == two:
            yield word[:place] + word[place + 1 :]
        else:
            yield word[:place] + two + one + word[place + 2 :]
    for place, letter in enumerate(word):
        yield word[:place] + letter + word[place:]
