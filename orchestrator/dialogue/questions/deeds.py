"""Actions that answers to questions trigger. The Agent runs them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from orchestrator.types import Dact, Json, JsonObject


class Decision(StrEnum):
    """A decision about a committed call that no longer fits (RT-12). Values are action names of replies."""

    KEEP = "keep_effect"
    REPEAT = "repeat_effect"
    COMPENSATE = "compensate_effect"


@dataclass(frozen=True, slots=True)
class Agree:
    """Run the displayed pending call."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Close the question and continue the flow unchanged."""


@dataclass(frozen=True, slots=True)
class Fill:
    """Fill a slot. `confirmed`: the user confirmed this value."""

    slot: str
    value: Json
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class Clear:
    """Empty a slot, which the flow then asks for again."""

    slot: str


@dataclass(frozen=True, slots=True)
class Start:
    """Start a task."""

    dact: Dact
    slots: JsonObject = field(default_factory=JsonObject)


@dataclass(frozen=True, slots=True)
class Decline:
    """Drop the pending call and ask what to change, or cancel the task if nothing can be changed."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Cancel the task. `left_unknown`: the outcome of one of its calls stays unknown."""

    left_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Decide:
    """Decide about a committed call that no longer fits."""

    decision: Decision


@dataclass(frozen=True, slots=True)
class Propose:
    """A repeated question that suggests the understood reply; a “yes” selects that reply."""

    decision: Decision
    label: str


@dataclass(frozen=True, slots=True)
class CloseQuestion:
    """Close a question that belongs to no task. `told`: acknowledge it."""

    told: bool = False


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Ask the question again because the answer doesn't fit."""


Deed: TypeAlias = (
    Agree | Continue | Fill | Clear | Start | Decline | GiveUp | Decide | Propose | CloseQuestion | AskAgain
)
