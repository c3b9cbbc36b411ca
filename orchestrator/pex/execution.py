"""Keeps what the steps of a policy hand to each other, and names the ways in which they end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, get_args

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import Frame
from orchestrator.errors import FailureCategory
from orchestrator.tools.runner import ToolRunner
from orchestrator.tools.toolbox import Tool
from orchestrator.types import Dact, Json, JsonObject


@dataclass(slots=True)
class Execution:
    """One execution of one flow. `own_tools`: the flow's, of those that there are.

    `data`: what the tools returned, merged by name; later tools win. `answers`: what each call returned, in order.
    `filled`: the slots that held values when the tools were called, for `verify`.
    `warning`: why the data are only a part. `code`: what a skill wrote, for the frame.
    `noted`: what was found is in the scratchpad. `faulty`: a verification found its results wrong.
    """

    flow: BaseFlow
    context: TurnContext
    tools: ToolRunner
    own_tools: Sequence[Tool]
    data: JsonObject = field(default_factory=JsonObject)
    answers: list[tuple[Tool, JsonObject]] = field(default_factory=list["tuple[Tool, JsonObject]"])
    frame: Frame | None = None
    filled: frozenset[str] = frozenset()
    warning: str | None = None
    code: str | None = None
    by_skill: bool = False
    noted: bool = False
    faulty: bool = False

    @property
    def returned(self) -> list[JsonObject]:
        return [data for _, data in self.answers]

    @property
    def has_result(self) -> bool:
        return bool(self.answers) or self.by_skill

    @property
    def has_effect(self) -> bool:
        """Whether something was changed for good on behalf of the flow, in this turn or before."""
        effects = self.context.changes.state.effects
        return any(note.flow_id == self.flow.flow_id and note.stands for note in effects)

    def value(self, name: str) -> Json:
        return self.flow.value(name)


@dataclass(frozen=True, slots=True)
class Completed:
    """The flow is Completed and its frame, if its family makes one, is among the turn's changes."""


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """An ambiguity is declared; only the user can go on."""


@dataclass(frozen=True, slots=True)
class Parked:
    """The flow waits for an approval; the user may talk about other things meanwhile (PX-17)."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class Failed:
    """No usable result; `message` is fit for the user.

    `check`: the name of the check that stopped the flow before any tool ran (PX-2).
    `retryable`: nothing was changed and the same call may succeed now.
    `uncertain`: a skill that could not go on; something is to be settled first (PX-6).
    `unusable`: there are results, which cannot be shown or are not what the flow is to give (AG-6, PX-15).
    `evidence`: what it knows, for a re-route. `alternative`: inputs with which the call would succeed.
    """

    category: FailureCategory
    message: str
    check: str | None = None
    retryable: bool = False
    uncertain: bool = False
    unusable: bool = False
    evidence: JsonObject = field(default_factory=JsonObject)
    alternative: JsonObject = field(default_factory=JsonObject)


@dataclass(frozen=True, slots=True)
class Partial:
    """There are results, but not all: they are shown with `warning`, and the flow stays Active (PX-13)."""

    warning: str


@dataclass(frozen=True, slots=True)
class Stacked:
    """A Plan flow has put sub-flows above itself; they come first (PL-1)."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A Plan flow has ended without its goal and said what is missing (PL-3)."""


class Recovery(StrEnum):
    """The rungs that PEX may ask the Agent to climb, in their order (PX-16)."""

    RETRY = "retry"
    """The same once more."""
    GATHER = "gather"
    """Internal flows look for what is missing; the flow waits for them."""
    REROUTE = "reroute"
    """NLU finds another flow or a plan."""
    ESCALATE = "escalate"
    """Only the user can say how to go on."""
    FALLBACK = "fallback"
    """Not of the ladder: the policy or the flow's type knows where to go, `target`."""


class Rung(StrEnum):
    """All that recovery can come to, as its signals name it: PEX proposes, the Agent acts (AG-6, PX-16)."""

    REPAIR = "repair"
    """A frame was mended before anybody saw it."""
    RETRY = "retry"
    GATHER = "gather"
    GATHERED = "gathered"
    """What was looked for has come."""
    FALLBACK = "fallback"
    REROUTE = "reroute"
    SKIP = "skip"
    """A step of a plan was left out."""
    ASK_AGAIN = "ask_again"
    """A value that was turned away is asked for anew."""
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True)
class Recover:
    """The policy chose a way out and returns; the Agent acts (PX-16)."""

    recovery: Recovery
    failure: Failed
    target: Dact | None = None


Ending: TypeAlias = Completed | Partial | NeedsInput | Parked | Stacked | GaveUp | Failed | Recover

ENDINGS: tuple[type, ...] = get_args(Ending)
