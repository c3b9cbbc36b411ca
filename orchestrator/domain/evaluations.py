"""The shape of a domain's `evaluations/*.yaml`: conversations with what must come of them."""

from collections.abc import Mapping
from enum import StrEnum
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


class FaultKind(StrEnum):
    """What may go wrong in a turn. PLACE: a tool, ``collection.create`` of the records, ``journal`` or ``commit``;
    with its number where it is not the turn's first (``journal 2``).
    """

    WORKER_DEATH = "worker_death"
    """``before PLACE`` or ``after PLACE``: the process ends there, and another takes the turn over."""
    OTHER_WORKER = "other_worker"
    """Another process has the session from this turn on."""
    TIME_OUT = "time_out"
    """PLACE, or ``every PLACE``: nothing is done, and no answer comes."""
    LOST_ANSWER = "lost_answer"
    """PLACE: it is done, and no answer comes."""
    DOUBLED = "doubled"
    """``by its key``: sent twice as one message; ``as it is``: said or clicked twice."""
    STALE_CLICK = "stale_click"
    """``NAME of turn N``: after this turn, what an earlier answer offered is clicked."""
    NONSENSE = "nonsense"
    """What a model makes of the message: ``a yes``, ``half a yes``, ``no JSON``, or a flow and what is to fill it
    (``FLOW {"slot": "value"}``).
    """
    INTERRUPTED = "interrupted"
    """``before PLACE`` or ``after PLACE``: the user breaks in while the turn is at work."""
    INTERJECTED = "interjected"
    """``before PLACE: WORDS`` or ``after PLACE: WORDS``: what is said while the turn is at work."""
    ASIDE = "aside"
    """Words that the user says before this turn."""


class TurnEntry(Entry):
    """One turn: what the `user` says, or the `action` they take. `faults`: what goes wrong meanwhile, and where."""

    user: str | None = None
    action: JsonObject | None = None
    expect: ExpectEntry = ExpectEntry()
    faults: Mapping[FaultKind, str] = Field(default_factory=dict[FaultKind, str])


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
