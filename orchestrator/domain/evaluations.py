"""The shape of a domain's `evaluations/*.yaml`: conversations with what must come of them."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PositiveInt

from orchestrator.domain.configuration import Pattern
from orchestrator.domain.schema import Entry
from orchestrator.types import JsonObject


class CriterionEntry(Entry):
    """What makes an answer good: rules about its words, or a sentence (`meets`) that a model judges.

    `says`, `says_not`: regular expressions. `asks`: whether it ends with a question.
    """

    says: Pattern | None = None
    says_not: Pattern | None = None
    most_words: PositiveInt | None = None
    asks: bool | None = None
    meets: str | None = None


def _read_criterion(value: object) -> object:
    return {"meets": value} if isinstance(value, str) else value


Criterion = Annotated[CriterionEntry, BeforeValidator(_read_criterion)]


class ExpectEntry(Entry):
    """What must hold after a turn; what is left out is not looked at. Texts are regular expressions.

    `flow`: the top of the stack, or the flow that completed last. `flows`: the whole stack, top
    last. `tools`: the calls made, in order; `arguments`: of some of them, by tool, those that matter.
    `ambiguity`: its level, or ``none``. `rubric`: criteria of the answer; a text alone is one that a model judges.
    """

    kind: str | None = None
    flow: str | None = None
    flows: tuple[str, ...] | None = None
    completed: tuple[str, ...] | None = None
    slots: JsonObject = Field(default_factory=JsonObject)
    tools: tuple[str, ...] | None = None
    arguments: Mapping[str, JsonObject] = Field(default_factory=dict[str, JsonObject])
    ambiguity: Literal["general", "partial", "specific", "confirmation", "none"] | None = None
    answer: Pattern | None = None
    not_answer: Pattern | None = None
    rubric: tuple[Criterion, ...] = ()


class TurnEntry(Entry):
    """One turn: what the `user` says, or the `action` they take."""

    user: str | None = None
    action: JsonObject | None = None
    expect: ExpectEntry = ExpectEntry()


class ConversationEntry(Entry):
    """`now`: the date and time at which the conversation starts, ISO.

    `config`: sections laid over the domain's own, to try a variant of it.
    """

    name: str = ""
    now: str | None = None
    config: JsonObject = Field(default_factory=JsonObject)
    requirements: tuple[str, ...] = ()
    turns: tuple[TurnEntry, ...] = ()


class EvaluationFile(Entry):
    conversations: tuple[ConversationEntry, ...] = ()
