"""Data shared by a policy's steps, and the ways in which they end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias, get_args

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import Frame
from orchestrator.errors import FailureCategory
from orchestrator.saying import Told
from orchestrator.tools.runner import ToolRunner
from orchestrator.tools.toolbox import Tool
from orchestrator.types import Dact, Json, JsonObject


@dataclass(slots=True)
class Execution:
    """An execution of a flow. `own_tools`: the flow's available tools.

    `data`: tools' results, merged by name; later tools win. `answers`: each call's result, in order.
    `filled`: the slots with values when the tools were called, for `verify`. `warning`: why the data are
    incomplete. `code`: code written by a skill, for the frame. `noted`: whether the findings are in the
    scratchpad. `faulty`: whether verification failed.
    """

    flow: BaseFlow
    context: TurnContext
    tools: ToolRunner
    own_tools: Sequence[Tool]
    data: JsonObject = field(default_factory=JsonObject)
    answers: list[tuple[Tool, JsonObject]] = field(default_factory=list["tuple[Tool, JsonObject]"])
    frame: Frame | None = None
    filled: frozenset[str] = frozenset()
    warning: Told | None = None
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
        """Return whether the flow had a committed side effect, in this turn or before."""
        effects = self.context.changes.state.effects
        return any(note.flow_id == self.flow.flow_id and note.stands for note in effects)

    def keep(self, tool: Tool, data: JsonObject) -> None:
        """Store a call's result."""
        self.answers.append((tool, data))
        self.data.update(data)

    def value(self, name: str) -> Json:
        return self.flow.value(name)


@dataclass(frozen=True, slots=True)
class Completed:
    """The flow is Completed, and its frame, if its family has one, is among the turn's changes."""


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """An ambiguity is declared; only the user can resolve it."""


@dataclass(frozen=True, slots=True)
class Parked:
    """The flow waits for an approval (PX-17) or a result (RT-32); the user can talk about other things meanwhile.

    `waits_for`: the ID of the approval, or the reference of the call.
    """

    waits_for: str


@dataclass(frozen=True, slots=True)
class Failed:
    """No usable result; `message` is fit for the user.

    `check`: the name of the check that stopped the flow before any tool ran (PX-2).
    `retryable`: nothing was changed and the same call may succeed now.
    `final`: no later call can succeed until someone changes something, so the user is not offered one.
    `uncertain`: a skill that could not go on; something is to be settled first (PX-6).
    `unusable`: there are results, which cannot be shown or are not what the flow is to give (AG-6, PX-15).
    `evidence`: what it knows, for a re-route. `alternative`: inputs with which the call would succeed.
    """

    category: FailureCategory
    message: Told
    check: str | None = None
    retryable: bool = False
    final: bool = False
    uncertain: bool = False
    unusable: bool = False
    evidence: JsonObject = field(default_factory=JsonObject)
    alternative: JsonObject = field(default_factory=JsonObject)


@dataclass(frozen=True, slots=True)
class Partial:
    """There are partial results: they are shown with `warning`, and the flow stays Active (PX-13)."""

    warning: Told


@dataclass(frozen=True, slots=True)
class Stacked:
    """A Plan flow has pushed sub-flows, which run first (PL-1)."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A Plan flow has ended without its goal and reported what is missing (PL-3)."""


class Recovery(StrEnum):
    """Recovery steps in signals: PEX proposes, the Agent acts (AG-6, PX-16)."""

    REPAIR = "repair"
    """PEX fixed a frame before it was displayed."""
    RETRY = "retry"
    """The same flow runs again."""
    GATHER = "gather"
    """Background flows look for missing values; the flow waits for them."""
    GATHERED = "gathered"
    """Background flows reported their findings."""
    FALLBACK = "fallback"
    """The policy or the flow's type names another flow, the `target`."""
    REROUTE = "reroute"
    """NLU finds another flow or a plan."""
    SKIP = "skip"
    """The plan continues without the step."""
    ASK_AGAIN = "ask_again"
    """The user is asked again for a value that a tool rejected."""
    ESCALATE = "escalate"
    """Only the user can decide how to continue."""


Proposal: TypeAlias = Literal[
    Recovery.RETRY, Recovery.GATHER, Recovery.FALLBACK, Recovery.REROUTE, Recovery.ESCALATE
]
"""The steps that PEX can propose to the Agent."""


@dataclass(frozen=True, slots=True)
class Recover:
    """The policy chose a recovery step; the Agent acts (PX-16)."""

    recovery: Proposal
    failure: Failed
    target: Dact | None = None


Ending: TypeAlias = Completed | Partial | NeedsInput | Parked | Stacked | GaveUp | Failed | Recover

ENDINGS: tuple[type, ...] = get_args(Ending)
