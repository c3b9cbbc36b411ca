"""Stream a skill's result, a string in the arguments of `finish`, while the model writes it (RS-4)."""

import json
import re
from collections.abc import Callable
from typing import Protocol, TypeAlias

from orchestrator.context import TurnContext
from orchestrator.pex.skill_outcome import FINISH


class Words(Protocol):
    """A text that is published in parts and can be withdrawn."""

    async def take(self, piece: str) -> None: ...

    async def take_back(self) -> None: ...


FindFault: TypeAlias = Callable[[str], str | None]
OpenWords: TypeAlias = Callable[[TurnContext, str, FindFault], Words]
"""A function that opens the stream of an answer.

It takes the turn, the preceding text and a check of partial text.
"""

_BROKEN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")


class StreamedText:
    """The streamed text of one result. `name`: the key of the text in the result."""

    def __init__(self, words: Words, name: str) -> None:
        self._words = words
        self._begins = re.compile(rf'"{re.escape(name)}"\s*:\s*"')
        self._told = ""

    async def take(self, call: str, arguments: str) -> None:
        """Publish the new text in a call's partial arguments."""
        text = self._read(arguments) if call == FINISH else ""
        if len(text) > len(self._told):
            piece, self._told = text[len(self._told) :], text
            await self._words.take(piece)

    def _read(self, arguments: str) -> str:
        begins = self._begins.search(arguments)
        if begins is None:
            return ""
        rest = arguments[begins.end() :]
        ends = re.search(r'(?<!\\)(?:\\\\)*"', rest)
        written = rest[: ends.end() - 1] if ends is not None else _drop_open_escape(rest)
        try:
            return str(json.loads(f'"{written}"', strict=False))
        except ValueError:
            return ""  # once the call is complete, `find_fault` reports invalid JSON

    async def take_back(self) -> None:
        """Withdraw the text of a rejected result."""
        await self._words.take_back()


def _drop_open_escape(text: str) -> str:
    """Remove an incomplete escape at the end."""
    backslashes = len(text) - len(text.rstrip("\\"))
    if backslashes % 2:
        return text[:-1]
    found = _BROKEN_ESCAPE.search(text)
    return text[: found.start()] if found and not backslashes else text
