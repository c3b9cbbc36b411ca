"""What every reader of messages takes and gives; the readers and their order are in `readers`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention, Understanding
from orchestrator.domain.model import Domain
from orchestrator.models.calling import CallContext
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.text import Lexicon
from orchestrator.types import Dact, Json, JsonObject


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader makes of a message.

    `confidence`: in its kind and flow, 0 … 1. `is_final`: no later reader is asked. `problem`: the error
    code of a model that should have been asked and failed. `second`: what System 1 made of a message that a
    model has read.
    """

    understanding: Understanding
    confidence: float = 1.0
    is_final: bool = True
    problem: str | None = None
    second: Understanding | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message on its way through the readers.

    `text`: cleaned; `english`: with its words in English, as far as they are known; `raw`: as it was sent.
    `call`: for whom a model may be asked about it, None when none may. `guess`: what an earlier reader made of it
    without being the last to say. `recall`: finds what is remembered of the user that words are about, for a model.
    """

    raw: str
    text: str
    english: str
    call: CallContext | None = None
    guess: Reading | None = None
    recall: Callable[[str], Awaitable[list[str]]] | None = None


class Reader(Protocol):
    """Reads a message, or leaves it to the next reader: None."""

    async def __call__(self, message: Message, context: NluContext, /) -> Reading | None: ...


Rate: TypeAlias = Callable[[str, NluContext], Mapping[Dact, float]]
"""Returns how likely each flow is for a message, in English as far as it is known."""
FindSlots: TypeAlias = Callable[[str, FlowSpec, NluContext], Mapping[str, Mention]]
"""Returns what a message says for the slots of a flow."""


class Asker(Protocol):
    """What is needed of the Prompt Engineer."""

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


@dataclass(frozen=True, slots=True)
class ReaderSetup:
    """What readers are made from, for one domain.

    `flows`: those that a message may ask for. `system1`: System 1 as a reader, trained already. `rate`: how
    likely it holds each flow. `find_slots`: the values that it finds for a flow. `lexicon`: of the default language.
    `asker`: the Prompt Engineer, if a model may be asked. `development`: a developer's shortcuts count.
    """

    domain: Domain
    flows: Mapping[Dact, FlowSpec]
    system1: Reader
    rate: Rate
    find_slots: FindSlots
    lexicon: Lexicon
    asker: Asker | None = None
    development: bool = False

    @property
    def assistant(self) -> str:
        """Who the assistant is, for prompts."""
        config = self.domain.config
        return f"{config.persona.name}. {config.description}".strip()
