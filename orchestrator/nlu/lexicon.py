"""Says in English what a message in another language says, as far as its words are known (NL-8).

Words are data: files of `languages/`, the runtime's and the domain's. What finds days, numbers and a plain yes reads
English, and is given this; a word that is not known stays as it is, so that it agrees to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from orchestrator.domain.schema import LexiconFile
from orchestrator.nlu.text import clean, key_of, tokenize


class Lexicon:
    """The words and phrases of a language with what they are in English; without any, a text stays as it is."""

    def __init__(self, files: Iterable[LexiconFile] = ()) -> None:
        self._patterns: list[tuple[re.Pattern[str], str]] = []
        self._english: dict[str, str] = {}
        self._longest: dict[str, int] = {}
        self._of_english: set[str] = set()
        for file in files:
            self._patterns += [(re.compile(one, re.IGNORECASE), said) for one, said in file.patterns.items()]
            for english, words in file.words.items():
                self._of_english.update(tokenize(english).words)
                for key in map(key_of, words.split("|")):
                    first, length = key.partition(" ")[0], key.count(" ") + 1
                    self._english[key] = english
                    self._longest[first] = max(self._longest.get(first, 0), length)

    def to_english(self, text: str) -> str:
        """Replace patterns, then the longest known phrases from left to right, in a cleaned text.

        What has more words of English than of the language is English, as what was put into it before is.
        """
        if not self._english:
            return text
        words = tokenize(text).words
        known = sum(word in self._longest for word in words)
        if sum(word in self._of_english for word in words) > known:
            return text
        for pattern, said in self._patterns:
            text = pattern.sub(said, text)
        utterance = tokenize(text)
        words, pieces = utterance.words, list[str]()
        first = position = 0
        while first < len(words):
            reach = min(len(words), first + self._longest.get(words[first], 0))
            last = next(
                (end for end in range(reach, first, -1) if " ".join(words[first:end]) in self._english), 0
            )
            if last:
                pieces += (
                    text[position : utterance.starts[first]],
                    self._english[" ".join(words[first:last])],
                )
                position = utterance.ends[last - 1]
            first = last or first + 1
        return clean("".join([*pieces, text[position:]]))
