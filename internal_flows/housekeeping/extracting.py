"""A summary without a model: the sentences that carry most of what a conversation is about."""

from __future__ import annotations

import re
from collections import Counter

from orchestrator.types import JsonObject

_WORD = re.compile(r"[^\W\d_]{4,}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_FRAMES = {"user": "User: ", "agent": "Assistant: "}


def summarize(earlier: str, lines: list[JsonObject], kept: int, length: int) -> str:
    """The earlier summary and the most relevant new sentences, in order; the oldest go when it is long.

    A sentence counts as much as its words occur in the conversation, for each of its words; the users' own
    count double.
    """
    sentences = [
        (line["role"], sentence.strip())
        for line in lines
        for sentence in _SENTENCE.split(line["text"])
        if _WORD.search(sentence)
    ]
    counts = Counter(word for _, sentence in sentences for word in _words(sentence))
    ranked = sorted(range(len(sentences)), key=lambda place: (-_weight(*sentences[place], counts), place))
    chosen = [sentences[place] for place in sorted(ranked[:kept])]
    new = [f"{_FRAMES.get(role, '')}{sentence}" for role, sentence in dict.fromkeys(chosen)]
    kept_lines = [*earlier.splitlines(), *new]
    while len(kept_lines) > 1 and sum(len(line) + 1 for line in kept_lines) > length:
        kept_lines.pop(0)
    return "\n".join(kept_lines)[:length]


def _words(sentence: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(sentence)]


def _weight(role: str, sentence: str, counts: Counter[str]) -> float:
    words = _words(sentence)
    return (2 if role == "user" else 1) * sum(counts[word] for word in set(words)) / max(4, len(words))
