"""Stream a skill's result, a string in the arguments of `finish`, while the model writes it (RS-4)."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from pydantic_core import from_json

from orchestrator.context import TurnContext
from orchestrator.pex.skill_outcome import FINISH
from orchestrator.types import is_object


class Words(Protocol):
    """Text that is published in parts and can be withdrawn."""

    async def take(self, piece: str) -> None: ...

    async def take_back(self) -> None: ...


FindFault: TypeAlias = Callable[[str], str | None]
OpenWords: TypeAlias = Callable[[TurnContext, str, FindFault], Words]
"""A function that opens an answer's text stream.

Its arguments are the turn context, the preceding text, and a function that checks partial text.
"""


class StreamedText:
    """The streamed text of one result. `name`: the key of the text in the result."""

    def __init__(self, words: Words, name: str) -> None:
        self._words = words
        self._name = name
        self._told = ""

    async def take(self, call: str, arguments: str) -> None:
        """Publish the new text in a call's partial arguments."""
        text = self._read(arguments) if call == FINISH else ""
        if len(text) > len(self._told):
            piece, self._told = text[len(self._told) :], text
            await self._words.take(piece)

    def _read(self, arguments: str) -> str:
        try:
            body = from_json(arguments, allow_partial="trailing-strings")
        except ValueError:
            return ""  # `find_fault` reports invalid JSON when the call is complete
        data = body.get("data") if is_object(body) else None
        text = data.get(self._name) if is_object(data) else None
        return text if isinstance(text, str) else ""

    async def take_back(self) -> None:
        await self._words.take_back()
