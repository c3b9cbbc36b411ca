"""What a `message` is, and the one place where it becomes HTML or plain text (RS-7).

A message is text in a small part of Markdown: paragraphs, line breaks, lists (``- `` and ``1. ``), and
a backslash before a character that is meant as it is. There are no links, images, emphasis, headings,
tables or HTML: whatever looks like them is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from markupsafe import Markup, escape

_BACKSLASH = re.compile(r"\\([\\`*_{}\[\]()#+\-.!<>~|\d])")
_ITEM = re.compile(r"(?:(?P<bullet>[-*])|(?P<number>\d{1,9})[.)])\s+(?P<text>.*)")
_PARAGRAPHS = re.compile(r"\n{2,}")


@dataclass(frozen=True, slots=True)
class Run:
    """Lines that belong together. `first`: the number of a numbered list's first item."""

    kind: Literal["text", "bullets", "numbers"]
    lines: list[str] = field(default_factory=list[str])
    first: int = 1


def read_runs(message: str) -> Iterator[Run]:
    """The parts of a message in order, their lines as plain text."""
    for paragraph in _PARAGRAPHS.split(message.strip("\n")):
        run: Run | None = None
        for line in paragraph.split("\n"):
            kind, text, number = _read_line(line)
            if run is None or run.kind != kind:
                if run is not None:
                    yield run
                run = Run(kind, first=number)
            run.lines.append(unescape(text))
        if run is not None:
            yield run


def _read_line(line: str) -> tuple[Literal["text", "bullets", "numbers"], str, int]:
    item = _ITEM.fullmatch(line)
    if item is None:
        return "text", line, 1
    if item["bullet"]:
        return "bullets", item["text"], 1
    return "numbers", item["text"], int(item["number"])


def unescape(text: str) -> str:
    """Text without the backslashes that kept it from being markup."""
    return _BACKSLASH.sub(r"\1", text)


def to_html(message: str) -> Markup:
    """The message for a page: `p`, `br`, `ul`, `ol` (with `start`) and `li`; all else is escaped text."""
    return Markup("").join(_run_to_html(run) for run in read_runs(message))


def _run_to_html(run: Run) -> Markup:
    lines = [escape(line) for line in run.lines]
    match run.kind:
        case "text":
            return Markup("<p>{}</p>").format(Markup("<br>").join(lines))
        case "bullets":
            return Markup("<ul>{}</ul>").format(_items(lines))
        case "numbers":
            return Markup('<ol start="{}">{}</ol>').format(run.first, _items(lines))


def _items(lines: list[Markup]) -> Markup:
    return Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)


def to_plain(message: str) -> str:
    """The message for a place that knows no markup, such as a terminal: lists keep their marks."""
    return unescape(message)
