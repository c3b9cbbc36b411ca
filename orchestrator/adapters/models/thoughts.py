"""Remove the leading thought from an answer. Servers without a reasoning parser leave it in the text."""

import re

_NAMES = ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think")
_OPENING = (*(f"<{name}>" for name in _NAMES), "[THINK]")
_OPENED = re.compile(rf"\s*(?:<(?:{'|'.join(_NAMES)})>|\[THINK\])", re.IGNORECASE)
_CLOSED = re.compile(rf"</(?:{'|'.join(_NAMES)})>|\[/THINK\]", re.IGNORECASE)
_LONGEST_CLOSING = len("</seed:think>")


def cut_thought(text: str) -> str:
    """Return a text without its leading thought, whose opening tag may be missing.

    If the thought is not closed, the result is empty.
    """
    opened = _OPENED.match(text)
    closed = _CLOSED.search(text, opened.end() if opened else 0)
    if closed is not None:
        return cut_thought(text[closed.end() :]).lstrip() if opened or not _is_quoted(text, closed) else text
    return "" if opened else text


def _is_quoted(text: str, closed: re.Match[str]) -> bool:
    """Return whether a closing tag is part of JSON or code, instead of ending a thought."""
    return text.lstrip().startswith(("{", "[", "`")) and not text[closed.end() :].lstrip().startswith(
        ("{", "[")
    )


class ThoughtFilter:
    """A filter that removes the leading thought from streamed text.

    Text is buffered only while it may be part of a thought. `misread`: True if a closing tag followed text
    that was already forwarded.
    """

    def __init__(self) -> None:
        self._held = ""
        self._begun = False
        self._tail = ""
        self.misread = False

    def feed(self, piece: str) -> str:
        """Add a piece of text. Return the text that can be forwarded."""
        if self._begun:
            self._tail = (self._tail + piece)[-len(piece) - _LONGEST_CLOSING :]
            self.misread = self.misread or _CLOSED.search(self._tail) is not None
            return piece
        self._held += piece
        if _may_open(self._held) or (_OPENED.match(self._held) and not _CLOSED.search(self._held)):
            return ""
        said = cut_thought(self._held)
        if said and not _may_open(said):
            self._begun, self._held, self._tail = True, "", said[-_LONGEST_CLOSING:]
            return said
        self._held = said
        return ""

    def end(self) -> str:
        """Return the buffered text that is not part of a thought."""
        held, self._held = self._held, ""
        return cut_thought(held)


def _may_open(text: str) -> bool:
    """Return whether further text could turn this text into an opening tag."""
    start = text.lstrip().lower()
    return any(tag.lower().startswith(start) and tag.lower() != start for tag in _OPENING)
