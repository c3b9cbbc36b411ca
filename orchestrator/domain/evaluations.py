"""The schema of a domain's `evaluations/*.yaml`: conversations with expected results."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PositiveInt

from orchestrator.domain.schema import Entry
from orchestrator.domain.sections import Pattern
from orchestrator.types import JsonObject


class CriterionEntry(Entry):
    """A criterion for an answer: rules about its text, or a sentence (`meets`) that a model judges.

    `says`, `says_not`: regular expressions. `asks`: True if the text must end with a question, False if it
    must not.
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
    """The expected results of a turn. Omitted results are not checked. Patterns are regular expressions.

    Attributes:
        flow: the flow on top of the stack, or the last completed flow.
        flows: the whole stack, with the top last.
        tools: the tools called, in order.
        arguments: expected arguments by tool. Omitted tools and arguments are not checked.
        ambiguity: the level of the open question, or ``none``.
        rubric: criteria for the answer. A model judges a criterion that is a plain sentence.
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


class FaultKind(StrEnum):
    """Faults to inject into a turn, with the format of their values.

    PLACE is a tool, a write to a service's records (``collection.create``), ``journal`` or ``commit``. A
    number selects a later occurrence in the turn (``journal 2``).
    """

    WORKER_DEATH = "worker_death"
    """``before PLACE`` or ``after PLACE``: the process dies there, and another process continues the turn."""
    OTHER_WORKER = "other_worker"
    """Another process handles the session from this turn on."""
    TIME_OUT = "time_out"
    """``PLACE`` or ``every PLACE``: the call is not executed, and no response arrives."""
    LOST_ANSWER = "lost_answer"
    """``PLACE``: the call is executed, but no response arrives."""
    DOUBLED = "doubled"
    """``by its key``: the client sends the same message twice. ``as it is``: the user repeats the message or click."""
    STALE_CLICK = "stale_click"
    """``NAME of turn N``: after this turn, the user clicks the action NAME in the answer of turn N."""
    NONSENSE = "nonsense"
    """A model's wrong interpretation of the message: ``a yes``, ``half a yes``, ``no JSON``, or a flow with slots
    (``FLOW {"slot": "value"}``).
    """
    INTERRUPTED = "interrupted"
    """``before PLACE`` or ``after PLACE``: the user interrupts the running turn."""
    INTERJECTED = "interjected"
    """``before PLACE: WORDS`` or ``after PLACE: WORDS``: the user sends a mid-turn message."""
    ASIDE = "aside"
    """A message that the user sends before this turn."""


class TurnEntry(Entry):
    """A turn: the user's text (`user`) or `action`. `faults`: faults to inject, by kind."""

    user: str | None = None
    action: JsonObject | None = None
    expect: ExpectEntry = ExpectEntry()
    faults: Mapping[FaultKind, str] = Field(default_factory=dict[FaultKind, str])


class ConversationEntry(Entry):
    """A conversation. `now`: the time of its start, in ISO format.

    `config`: sections merged over the domain's configuration, to test a variant.
    """

    name: str = ""
    now: str | None = None
    config: JsonObject = Field(default_factory=JsonObject)
    requirements: tuple[str, ...] = ()
    turns: tuple[TurnEntry, ...] = ()


class EvaluationFile(Entry):
    conversations: tuple[ConversationEntry, ...] = ()
