"""Model-written parts of a message: no markup except paragraphs and list items (RS-7)."""

import re
import time
from collections.abc import Callable

from orchestrator.context import TurnContext
from orchestrator.res.templates import escape_value
from orchestrator.turns.event import Event

_LIST = re.compile(r"^\s*(?:[-*+|>#]|\d+[.)])\s|^```", re.MULTILINE)
_ITEM = re.compile(r"(?:[-*]|\d+[.)])\s+")


def is_list(text: str) -> bool:
    """Return whether a paragraph contains a list or similar, which stays unchanged."""
    return _LIST.search(text) is not None


def escape_rewriting(text: str) -> str:
    """Escape the text as part of a message."""
    return "\n".join(_escape_line(line.strip()) for line in text.splitlines())


def _escape_line(line: str) -> str:
    item = _ITEM.match(line)
    if item is None:
        return str(escape_value(line))
    return item[0] + str(escape_value(line[item.end() :]))


BATCH_CHARACTERS = 24
BATCH_S = 0.04
"""Minimum interval between published pieces, unless a piece is long enough."""

CHARACTERS_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


class TokenStream:
    """Publishes a model's text in whole words, escaped, while it is valid.

    Args:
        world: the turn, with its listeners.
        before: paragraphs before this text.
        find_fault: checks a beginning that ends with a word; after a fault, publishing stops.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        context: TurnContext,
        before: str,
        find_fault: Callable[[str], str | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._before = before
        self._find_fault = find_fault
        self._clock = clock
        self._written = ""
        self._told = ""
        self._last = clock()
        self._stopped = False
        self.begun = False

    async def take(self, piece: str) -> None:
        """Add a piece, and publish complete words."""
        self._written += piece
        if self._stopped:
            return
        whole = self._whole_words()
        new = len(whole) - len(self._told)
        due = new >= BATCH_CHARACTERS or (new > 0 and self._clock() - self._last >= BATCH_S)
        if not due:
            return
        self._stopped = self._find_fault(whole) is not None
        if not self._stopped:
            await self._tell(whole)

    def _whole_words(self) -> str:
        """Return the text up to the last space: an incomplete word can still change."""
        text = self._written.lstrip()
        end = max(text.rfind(" "), text.rfind("\n"))
        return text[:end].rstrip() if end > 0 else ""

    async def _tell(self, whole: str) -> None:
        shown = escape_rewriting(whole)
        known = escape_rewriting(self._told)
        if not shown.startswith(known):
            return  # only now recognizable as a list item; the next piece has it
        if not self.begun and self._before:
            await self._publish(self._before, 0)
        self.begun = self._context.changes.streamed = True
        await self._publish(shown[len(known) :], len(self._before) + len(known))
        self._told, self._last = whole, self._clock()

    async def take_back(self) -> None:
        """Withdraw the published text: listeners start over."""
        if self.begun:
            self.begun = self._context.changes.streamed = False
            await self._publish("", 0)

    async def _publish(self, text: str, offset: int) -> None:
        context = self._context
        assert context.live is not None
        token = Event(context.ids.session_id, "token", context.ids.turn_id, {"text": text, "offset": offset})
        await context.live.publish(context.ids.session_id, (token,))
