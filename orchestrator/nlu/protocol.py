"""The interface of NLU components. `readers` lists the components in order."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from orchestrator.dialogue.understanding import Understanding
from orchestrator.models.calling import CallContext
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Reading:
    """An interpretation of a message.

    `confidence`: confidence in the kind and flow, from 0 to 1. `is_final`: True if later components are
    skipped. `problem`: the error code of a failed model call. `second`: the local classifier's
    interpretation, if a model interpreted the message.
    """

    understanding: Understanding
    confidence: float = 1.0
    is_final: bool = True
    problem: str | None = None
    second: Understanding | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message on its way through the NLU components.

    `raw`: the text as sent. `text`: the cleaned text. `english`: the text with known words in English.
    `call`: the context for model calls, or None if no model may be called. `guess`: an earlier component's
    interpretation that is not final. `recall`: finds the user's memories that are relevant to a text.
    """

    raw: str
    text: str
    english: str
    call: CallContext | None = None
    guess: Reading | None = None
    recall: Callable[[str], Awaitable[list[str]]] | None = None


class Reader(Protocol):
    """A component that interprets a message, or returns None to pass the message to the next component."""

    async def __call__(self, message: Message, context: NluContext, /) -> Reading | None: ...


class Asker(Protocol):
    """The methods of the Prompt Engineer that NLU uses."""

    @property
    def available(self) -> bool: ...

    async def structured(
        self,
        prompt_id: str,
        variables: Mapping[str, Json],
        schema: JsonObject,
        call: CallContext,
        *,
        judged_by: JsonObject | None = None,
    ) -> JsonObject: ...
