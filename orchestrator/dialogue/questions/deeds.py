"""Actions triggered by answers to questions. The Agent runs the actions."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from orchestrator.types import Dact, Json, JsonObject


class Decision(StrEnum):
    """A decision about a committed call that no longer fits the user's wishes (RT-12). Values are action names."""

    KEEP = "keep_effect"
    REPEAT = "repeat_effect"
    COMPENSATE = "compensate_effect"


@dataclass(frozen=True, slots=True)
class Agree:
    """An action that runs the displayed pending call."""


@dataclass(frozen=True, slots=True)
class Continue:
    """An action that closes the question and continues the flow unchanged."""


@dataclass(frozen=True, slots=True)
class Fill:
    """An action that fills a slot. `confirmed`: True if the user confirmed this value."""

    slot: str
    value: Json
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class Clear:
    """An action that empties a slot, so that the flow asks for it again."""

    slot: str


@dataclass(frozen=True, slots=True)
class Start:
    """An action that starts a task."""

    dact: Dact
    slots: JsonObject = field(default_factory=JsonObject)


@dataclass(frozen=True, slots=True)
class Decline:
    """An action that drops the pending call and asks what to change, or cancels the task if nothing can change."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """An action that cancels the task. `left_unknown`: True if the outcome of a call stays unknown."""

    left_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Decide:
    """An action that applies the user's decision about a committed call that no longer fits the user's wishes."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class Propose:
    """An action that repeats the question and suggests a decision that a “yes” selects. `label`: the reply's label."""

    decision: Decision
    label: str


@dataclass(frozen=True, slots=True)
class CloseQuestion:
    """An action that closes a question that doesn't belong to a task. `told`: True to acknowledge the answer."""

    told: bool = False


@dataclass(frozen=True, slots=True)
class AskAgain:
    """An action that repeats the question because the answer doesn't fit."""


Deed: TypeAlias = (
    Agree | Continue | Fill | Clear | Start | Decline | GiveUp | Decide | Propose | CloseQuestion | AskAgain
)
