"""The answer in progress that the RES steps share, and the model interface that they use."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from orchestrator.context import Answer, TurnContext
from orchestrator.models.calling import CallContext
from orchestrator.res.templates import Templates
from orchestrator.types import Json


class Writer(Protocol):
    """The part of the Prompt Engineer that RES uses."""

    def can_answer(self, prompt_id: str | None) -> bool: ...

    async def text(
        self,
        prompt_id: str,
        variables: dict[str, Json],
        call: CallContext,
        *,
        publish: Callable[[str], Awaitable[None]] | None = None,
    ) -> str: ...


class Response(NamedTuple):
    """An answer in progress. `writer`: rephrases answers with a model, or None."""

    context: TurnContext
    answer: Answer
    templates: Templates
    writer: Writer | None = None
