"""Hold the answer while it is made: the reply and what goes with it (RS-7). Records only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from orchestrator.context import TurnContext
from orchestrator.dialogue.ambiguity import Question
from orchestrator.models.calling import CallContext
from orchestrator.res.templates import Templates
from orchestrator.types import Json, JsonObject

NO_INTERACTION: JsonObject = {"kind": "none"}


@dataclass(slots=True)
class Answer:
    """`parts`: paragraphs in order, the open question last. `templates`: the names that made them.

    `frames`: what is shown beside the words, each with its block. `interaction`: how the open question is
    answered. `fixed`: places of paragraphs that no model may rewrite.
    """

    parts: list[str] = field(default_factory=list[str])
    templates: list[str] = field(default_factory=list[str])
    actions: list[JsonObject] = field(default_factory=list[JsonObject])
    question: Question | None = None
    frames: list[JsonObject] = field(default_factory=list[JsonObject])
    interaction: JsonObject = field(default_factory=NO_INTERACTION.copy)
    fixed: set[int] = field(default_factory=set[int])
    leads: bool = False
    """Whether the last paragraph leads over to the next sentence."""

    def add(self, text: str, *, leads: bool = False, fixed: bool = False) -> None:
        """Add a paragraph; after one that leads over, a single line continues it."""
        if not text or text in self.parts:
            return
        if self.leads and "\n" not in text and "\n" not in self.parts[-1]:
            self.parts[-1] += f" {text}"
        else:
            self.parts.append(text)
        if fixed:
            self.fixed.add(len(self.parts) - 1)
        self.leads = leads

    @property
    def message(self) -> str:
        return "\n\n".join(part for part in self.parts if part)


class Writer(Protocol):
    """What is asked of the Prompt Engineer."""

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
    """What the steps of RES work on. `writer`: a model that puts the templates' words into speech, if any."""

    context: TurnContext
    answer: Answer
    templates: Templates
    writer: Writer | None = None
