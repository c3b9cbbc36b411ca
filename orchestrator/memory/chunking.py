"""Cuts a text or Markdown document into chunks that stand for themselves: under their headings, at paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST_CHUNK = 900
"""Characters, without the headings that are put before it."""
SHORTEST_CHUNK = 200
"""A paragraph that is shorter is joined to the next one of its section."""
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_BLANK = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n")


def cut(text: str, *, longest: int = LONGEST_CHUNK, shortest: int = SHORTEST_CHUNK) -> list[str]:
    """The chunks in order. Each begins with the headings it stands under; none is empty."""
    chunks: list[str] = []
    for headings, body in _sections(text):
        lead = " › ".join(headings)
        pieces = list(_join(_paragraphs(body, longest), longest, shortest))
        chunks += [f"{lead}\n{piece}" if lead else piece for piece in pieces or ([""] if lead else [])]
    return [chunk.strip() for chunk in chunks]


def _sections(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Parts of a document with the headings above them; a heading without text only if nothing is under it."""
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        level = len(heading[1])
        if any(line.strip() for line in lines) or (path and level <= path[-1][0]):
            yield tuple(name for _, name in path), "\n".join(lines)
        lines = []
        path = [(depth, name) for depth, name in path if depth < level] + [(level, heading[2])]
    yield tuple(name for _, name in path), "\n".join(lines)


def _paragraphs(body: str, longest: int) -> Iterator[str]:
    for paragraph in _BLANK.split(body):
        if len(paragraph) <= longest:
            yield paragraph.strip()
        else:
            yield from _join(_sentences(paragraph, longest), longest, longest, between=" ")


def _sentences(paragraph: str, longest: int) -> Iterator[str]:
    for sentence in _SENTENCE.split(paragraph):
        for start in range(0, len(sentence), longest):
            yield sentence[start : start + longest].strip()


def _join(pieces: Iterator[str], longest: int, enough: int, *, between: str = "\n\n") -> Iterator[str]:
    """Put pieces together until they are long enough, never beyond the longest."""
    held = ""
    for piece in filter(None, pieces):
        joined = f"{held}{between}{piece}" if held else piece
        if held and (len(held) >= enough or len(joined) > longest):
            yield held
            held = piece
        else:
            held = joined
    if held:
        yield held
