"""Mends words with two letters swapped, or one too many or too few of a pair: "plna a tirp to rmoe", "pariss".

No other slip is mended: a letter more or less makes other words ("plane", "plan"), and what is meant is asked then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_WORD = re.compile(r"(?<![\w'’\"“-])[a-z]{4,}(?![\w'’\"”-])")
"""In small letters: a capital begins a name, which may be spelt as it likes."""


def mend(text: str, is_known: Callable[[str], bool], is_meant: Callable[[str], bool]) -> str:
    """Put what is meant for each misspelt word of a text; as it was where nothing, or several things, may be.

    `is_known`: of words that are right as they are. `is_meant`: of those that they may be mended to.
    """

    def mend_word(found: re.Match[str]) -> str:
        word = found[0]
        if is_known(word):
            return word
        meant = {one for one in _spellings(word) if is_meant(one)}
        return meant.pop() if len(meant) == 1 else word

    return _WORD.sub(mend_word, text)


def _spellings(word: str) -> Iterator[str]:
    for place in range(len(word) - 1):
        one, two = word[place], word[place + 1]
        if one == two:
            yield word[:place] + word[place + 1 :]
        else:
            yield word[:place] + two + one + word[place + 2 :]
    for place, letter in enumerate(word):
        yield word[:place] + letter + word[place:]
