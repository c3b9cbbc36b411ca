"""Escape and stream model-written text.

The text's only markup is paragraphs and list items (RS-4, RS-7).
"""

import re
import time
from collections.abc import Callable

from orchestrator.context import TurnContext
from orchestrator.res.templates import escape_value
from orchestrator.turns.event import Event

_LIST = re.compile(r"^\s*(?:[-*+|>#]|\d+[.)])\s|^```", re.MULTILINE)
_ITEM = re.compile(r"(?:[-*]|\d+[.)])\s+")


def is_list(text: str) -> bool:
    """Return whether a paragraph contains a list or similar markup."""
    return _LIST.search(text) is not None


def escape_rewriting(text: str) -> str:
    """Escape a model's text for a message, except its list markers."""
    return "\n".join(_escape_line(line.strip()) for line in text.splitlines())


def _escape_line(line: str) -> str:
    item = _ITEM.match(line)
    if item is None:
        return str(escape_value(line))
    return item[0] + str(escape_value(line[item.end() :]))


BATCH_CHARACTERS = 24
BATCH_S = 0.04
"""Minimum interval between published parts, in seconds, unless a part reaches `BATCH_CHARACTERS`."""


class TokenStream:
    """A stream that publishes a model's text, escaped and in whole words.

    `before`: the paragraphs before this text. Publishing stops when `find_fault` finds a fault in the text so
    far.
    """

    def __init__(
        self,
        context: TurnContext,
        before: str,
        find_fault: Callable[[str], str | None],
    ) -> None:
        self._context = context
        self._before = before
        self._find_fault = find_fault
        self._written = ""
        self._told = ""
        self._last = time.monotonic()
        self._stopped = False
        self.begun = False

    async def take(self, piece: str) -> None:
        """Add a part, and publish complete words."""
        self._written += piece
        if self._stopped:
            return
        whole = self._whole_words()
        new = len(whole) - len(self._told)
        due = new >= BATCH_CHARACTERS or (new > 0 and time.monotonic() - self._last >= BATCH_S)
        if not due:
            return
        self._stopped = self._find_fault(whole) is not None
        if not self._stopped:
            await self._tell(whole)

    def _whole_words(self) -> str:
        """Return the text up to the last space or newline, because an incomplete word can still change."""
        text = self._written.lstrip()
        end = max(text.rfind(" "), text.rfind("\n"))
        return text[:end].rstrip() if end > 0 else ""

    async def _tell(self, whole: str) -> None:
        shown = escape_rewriting(whole)
        known = escape_rewriting(self._told)
        if not shown.startswith(known):
            return  # the new part turned the line into a list item, which is escaped differently
        if not self.begun and self._before:
            await self._publish(self._before, 0)
        self.begun = self._context.changes.streamed = True
        await self._publish(shown[len(known) :], len(self._before) + len(known))
        self._told, self._last = whole, time.monotonic()

    async def take_back(self) -> None:
        """Withdraw the published text, so that listeners discard it."""
        if self.begun:
            self.begun = self._context.changes.streamed = False
            await self._publish("", 0)

    async def _publish(self, text: str, offset: int) -> None:
        context = self._context
        assert context.live is not None
        token = Event(context.ids.session_id, "token", context.ids.turn_id, {"text": text, "offset": offset})
        await context.live.publish(context.ids.session_id, (token,))
