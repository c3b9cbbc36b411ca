"""The record that a policy's steps share, and the possible endings of an execution."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias, get_args

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import Frame
from orchestrator.errors import FailureCategory
from orchestrator.saying import Told
from orchestrator.telemetry import SignalType
from orchestrator.tools.runner import ToolRunner
from orchestrator.tools.toolbox import Tool
from orchestrator.types import Dact, Json, JsonObject


@dataclass(frozen=True, slots=True)
class Query:
    """A read-only query for a flow's tool, as last attempted.

    `name`: the input that contains the statement. `fault`: why the query could not run, or None. `unknown`,
    `nearest`: a name in the query that doesn't exist, and the most similar known name.
    """

    tool: Tool
    arguments: JsonObject
    name: str
    fault: str | None = None
    unknown: str | None = None
    nearest: str | None = None

    @property
    def statement(self) -> str:
        return str(self.arguments.get(self.name, ""))


@dataclass(slots=True)
class Execution:
    """One execution of a flow.

    Attributes:
        own_tools: the flow's tools that the manifest contains.
        data: the tools' results, merged by name. Later tools take precedence.
        answers: the result of each call, in order.
        filled: the slots that had values when the tools were called, for `verify`.
        warning: why `data` is incomplete, or None.
        code: code written by a skill, for the frame.
        noted: True if the findings are in the scratchpad.
        faulty: True if verification of the results failed.
        query: the query that produced the results, or that failed last.
        repairs: number of repair attempts so far (AG-6).
        repaired: what a repair has changed, as text for the user.
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
    query: Query | None = None
    repairs: int = 0
    repaired: Told | None = None

    @property
    def has_repairs(self) -> bool:
        return self.repairs < self.context.world.domain.config.resilience.repair_attempts

    def begin_repair(self) -> bool:
        """Count another repair attempt. Return False if the limit is reached."""
        if not self.has_repairs:
            return False
        self.repairs += 1
        return True

    def note_repair(self, how: str, fault: str) -> None:
        """Record how a frame or query was repaired, and its fault."""
        self.context.log.signal(
            "pex", SignalType.RECOVERY, self.flow.flow_id, rung=Recovery.REPAIR, how=how, fault=fault
        )

    @property
    def returned(self) -> list[JsonObject]:
        return [data for _, data in self.answers]

    @property
    def has_result(self) -> bool:
        return bool(self.answers) or self.by_skill

    @property
    def has_effect(self) -> bool:
        """Return whether a side effect of the flow is still in place, from this turn or an earlier turn."""
        effects = self.context.state.effects
        return any(note.flow_id == self.flow.flow_id and note.stands for note in effects)

    def keep(self, tool: Tool, data: JsonObject) -> None:
        self.answers.append((tool, data))
        self.data.update(data)

    def value(self, name: str) -> Json:
        return self.flow.value(name)


@dataclass(frozen=True, slots=True)
class Completed:
    """A successful ending. If the flow's family has frames, the turn's changes contain the flow's frame."""


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """An ending with an open question that only the user can answer."""


@dataclass(frozen=True, slots=True)
class Parked:
    """An ending for a flow that waits for an approval (PX-17) or a late result (RT-32).

    During the wait, the user can change the subject.
    """


@dataclass(frozen=True, slots=True)
class Failed:
    """An ending without a usable result. `message`: a message for the user.

    Attributes:
        check: the check that stopped the flow before any tool ran, or None (PX-2).
        retryable: True if nothing was changed, and the same call may succeed now.
        final: True if later calls would also fail until something changes. The user is not offered a retry.
        uncertain: True if a skill cannot continue until a question is settled (PX-6).
        unusable: True if the results are invalid or cannot be displayed (AG-6, PX-15).
        evidence: facts for rerouting.
        alternative: inputs that would make the call succeed.
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
    """An ending with partial results, displayed with `warning`. The flow stays Active (PX-13)."""

    warning: Told


@dataclass(frozen=True, slots=True)
class Stacked:
    """An ending for a Plan flow that has put new sub-flows on the stack, which run first (PL-1)."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """An ending for a flow that missed its goal and has already reported why (PL-3)."""


class Recovery(StrEnum):
    """A recovery step, as recorded in signals (AG-6, PX-16)."""

    REPAIR = "repair"
    """PEX repairs a frame or a query before the result is displayed."""
    RETRY = "retry"
    """The same flow runs again."""
    GATHER = "gather"
    """The flow waits while background flows search for missing values."""
    GATHERED = "gathered"
    """Background flows have reported their findings."""
    FALLBACK = "fallback"
    """Another flow runs instead, as chosen by the policy or the flow's type."""
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
"""Recovery steps that PEX can propose to the Agent."""


@dataclass(frozen=True, slots=True)
class Recover:
    """An ending with a recovery step for the Agent (PX-16). `target`: the fallback flow, or None."""

    recovery: Proposal
    failure: Failed
    target: Dact | None = None


Ending: TypeAlias = Completed | Partial | NeedsInput | Parked | Stacked | GaveUp | Failed | Recover

ENDINGS: tuple[type, ...] = get_args(Ending)
