"""Search for planted words in the results of a run, in any encoding.

The search doesn't use the project's redaction: it decodes the results instead of encoding the words.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote_plus

DEPTH = 3
"""A Celery message is JSON with a base64 body of JSON, which may contain a URL."""
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}")
_AROUND = 60


@dataclass(frozen=True, slots=True)
class Leak:
    """A leak. `place`: the source; `word`: the name of the found word."""

    place: str
    word: str
    excerpt: str


def find_leaks(found: Mapping[str, bytes], planted: Mapping[str, str]) -> list[Leak]:
    """Return all planted words (by name) in everything that was found (by place)."""
    return [
        Leak(place, name, excerpt)
        for place, content in found.items()
        for name, excerpt in sorted(_search(content, planted).items())
    ]


def _search(content: bytes, planted: Mapping[str, str]) -> dict[str, str]:
    seen: dict[str, str] = {}
    for text in _readings(content.decode("utf-8", errors="replace"), DEPTH):
        for name, word in planted.items():
            at = text.find(word)
            if at >= 0:
                seen.setdefault(name, text[max(0, at - _AROUND) : at + len(word) + _AROUND])
    return seen


def _readings(text: str, depth: int) -> Iterator[str]:
    """Return the text and its decodings: unescaped, URL-decoded and base64-decoded."""
    yield text
    if depth == 0:
        return
    unescaped = _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), text)
    for other in (unescaped, unescaped.replace("\\", ""), unquote_plus(text)):
        if other != text:
            yield from _readings(other, depth - 1)
    inner = "\n".join(decoded for run in _BASE64.findall(text) for decoded in _decode(run))
    if inner:
        yield from _readings(inner, depth - 1)


def _decode(run: str) -> Iterator[str]:
    """Decode a run of letters as base64, at any offset."""
    plain = run.replace("-", "+").replace("_", "/")
    for skipped in range(4):
        piece = plain[skipped:]
        piece = piece[:-1] if len(piece) % 4 == 1 else piece
        try:
            told = b64decode(piece + "=" * (-len(piece) % 4)).decode("utf-8", errors="replace")
        except NoBase64:
            continue
        if sum(letter.isprintable() and letter.isascii() for letter in told) > 0.8 * len(told):
            yield told
