"""What a module may ask of the turn's journal: run a call once, or be told that nobody knows (RT-8, RT-9).

The journal itself belongs to the agent; modules see only this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.dialogue.flow import BaseFlow, ValueFinder
from orchestrator.dialogue.frame import Frame
from orchestrator.dialogue.lifecycle import FlowState
from orchestrator.dialogue.remark import Remark, RemarkKind
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.model import Domain
from orchestrator.domain.registry import Registry
from orchestrator.memory.notes import Notes, Preferences
from orchestrator.models.calling import CallContext
from orchestrator.ports.memory.documents import ContextSearch
from orchestrator.ports.turns.events import LiveEvents
from orchestrator.telemetry import RecordSignal, Signal, SignalType
from orchestrator.telemetry.signals import describe
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision
from orchestrator.turns.effect import Effect
from orchestrator.turns.event import Event
from orchestrator.turns.plan import PlanRevision
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import FlowId, Json, JsonObject, SessionId, TenantId, ToolId, TurnId, UserId


class Steps(Protocol):
    async def call(
        self,
        key: str,
        kind: str,
        request: Json,
        run: Callable[[str], Awaitable[Json]],
        *,
        idempotent: bool,
        effect: Effect | None = None,
    ) -> Json | UnknownOutcome:
        """Answer from the journal, or run and record the result under `key`.

        `key` is unique in the turn and stable across its attempts. `run` gets the idempotency key.
        A call that is not idempotent, was begun by an earlier attempt and left no result is not
        run again: UnknownOutcome. With `effect` the session's ledger is asked as well: what an
        earlier turn did for the same flow is answered from there (RT-10).
        """
        ...

    async def settle(
        self,
        unknown: UnknownOutcome,
        kind: str,
        request: Json,
        result: Json,
        effect: Effect | None = None,
    ) -> None:
        """Record what an unknown outcome turned out to be."""
        ...

    async def decide_approval(self, approval_id: str, decision: Decision) -> ApprovalRecord | None:
        """Decide a pending approval, once; gives it as it then stands. None: there is none."""
        ...


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """One tool call of the turn, as the turn object shows it. `status`: ok, an error category, or unknown."""

    tool_id: ToolId
    arguments: JsonObject
    status: str

    def serialize(self) -> JsonObject:
        return {"tool_id": self.tool_id, "arguments": self.arguments, "status": self.status}


@dataclass(slots=True)
class World:
    """`now` in unix seconds; `deadline` likewise: no tool is waited for beyond it.

    `call`: for whom models are asked in this turn, and until when.
    """

    domain: Domain
    registry: Registry
    state: DialogueState
    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId | None
    turn_id: TurnId
    now: float
    deadline: float
    steps: Steps
    call: CallContext
    record_signal: RecordSignal
    notes: Notes
    text: str = ""
    live: LiveEvents | None = None
    """Who hears the words of an answer while they are written (RS-4); None: nobody."""
    frames: dict[FlowId, Frame] = field(default_factory=dict[FlowId, Frame])
    story: list[Remark | BaseFlow] = field(default_factory=list["Remark | BaseFlow"])
    """What there is to tell, in order: remarks, and flows with results (RS-1)."""
    finished: list[BaseFlow] = field(default_factory=list[BaseFlow])
    """All flows that left the stack in this turn, for the archive."""
    recent_turns: ValueFinder | None = None
    """Where a missing slot's value may be known from (PX-4)."""
    preferences: Preferences | None = None
    """What is remembered of the user; likewise."""
    context: ContextSearch | None = None
    """Business context."""
    can_gather: bool = False
    """Whether Internal flows can be sent for more context (PX-16)."""
    climbed: set[tuple[FlowId, str]] = field(default_factory=set["tuple[FlowId, str]"])
    """The rungs of recovery that flows have taken in this turn."""
    asks_again: bool = False
    """The open question was asked before and was not answered in this turn: no new round (AM-4)."""
    tools: list[ToolUsed] = field(default_factory=list[ToolUsed])
    events: list[Event] = field(default_factory=list[Event])
    signals: list[JsonObject] = field(default_factory=list[JsonObject])
    findings: dict[FlowId, JsonObject] = field(default_factory=dict[FlowId, JsonObject])
    """What a flow's tools returned, merged by name: the source of templates."""
    asked_approvals: list[ApprovalRecord] = field(default_factory=list[ApprovalRecord])
    closed_approvals: dict[str, ApprovalStatus] = field(default_factory=dict[str, ApprovalStatus])
    """What became of approvals in this turn, by their identifiers."""
    silent: set[FlowId] = field(default_factory=set[FlowId])
    """Completed flows that are not told, because the plan they serve goes on (RS-2)."""
    plan_log: list[PlanRevision] = field(default_factory=list[PlanRevision])
    """What became of plans in this turn, for their lasting record (PL-6)."""
    flags: dict[str, Json] = field(default_factory=dict[str, Json])
    """What the turn object's flags say beyond the state's own, for example ``degraded``."""

    def remark(self, kind: RemarkKind, /, **values: Json) -> None:
        self.story.append(Remark(kind, values))

    @property
    def completed(self) -> list[BaseFlow]:
        """Flows that completed in this turn, in order."""
        return [flow for flow in self.told if flow.state is FlowState.COMPLETED]

    @property
    def told(self) -> list[BaseFlow]:
        """Flows whose results are told in this turn: completed ones, and those with a part of them."""
        return [part for part in self.story if isinstance(part, BaseFlow)]

    def close_approval(self, approval_id: str, status: ApprovalStatus) -> None:
        """Note that an approval was used, expired or became void."""
        self.closed_approvals[approval_id] = status

    def event(self, kind: str, /, **payload: Json) -> None:
        self.events.append(Event(self.session_id, kind, self.turn_id, payload))

    def signal(
        self, source: str, kind: SignalType, flow_id: FlowId | None = None, /, **payload: Json
    ) -> None:
        signal = Signal(
            source=source,
            type=kind,
            session=self.session_id,
            turn=self.turn_id,
            flow=flow_id,
            payload=payload,
        )
        self.signals.append(describe(signal))
        self.record_signal(signal)

    def degrade(self, problem: str) -> None:
        """Note that a model was wanted and did not serve. `problem`: the code of its error."""
        self.flags["degraded"] = True
        self.flags["model_problem"] = problem

    def failed_check(self, module: str, name: str, why: str, flow_id: FlowId | None = None) -> None:
        """Record a named check that did not hold (AG-4)."""
        self.signal(module, SignalType.CHECK, flow_id, check=name, ok=False, why=why)
