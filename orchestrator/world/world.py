"""What the three modules may touch during one turn: domain, registry, state, frames, and a record of what happened.

The Agent owns it and makes one per turn (AG-3). It decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.dialogue.flow import BaseFlow, ValueFinder
from orchestrator.dialogue.frame import Frame
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.model import Domain
from orchestrator.prompting.calling import CallContext
from orchestrator.telemetry import RecordSignal, Signal, SignalType, drop_signal
from orchestrator.turns.event import Event
from orchestrator.types import FlowId, Json, JsonObject, SessionId, TenantId, ToolId, TurnId, UserId
from orchestrator.world.registry import Registry
from orchestrator.world.remark import Remark, RemarkKind
from orchestrator.world.steps import Steps


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
    text: str = ""
    frames: dict[FlowId, Frame] = field(default_factory=dict[FlowId, Frame])
    story: list[Remark | BaseFlow] = field(default_factory=list["Remark | BaseFlow"])
    """What there is to tell, in order: remarks, and flows that completed in this turn (RS-1)."""
    finished: list[BaseFlow] = field(default_factory=list[BaseFlow])
    """All flows that left the stack in this turn, for the archive."""
    recent_turns: ValueFinder | None = None
    memory: ValueFinder | None = None
    """Where a missing slot's value may be known from (PX-4)."""
    asks_again: bool = False
    """The open question was asked before and was not answered in this turn: no new round (AM-4)."""
    tools: list[ToolUsed] = field(default_factory=list[ToolUsed])
    events: list[Event] = field(default_factory=list[Event])
    findings: dict[FlowId, JsonObject] = field(default_factory=dict[FlowId, JsonObject])
    """What a flow's tools returned, merged by name: the source of templates."""
    flags: dict[str, Json] = field(default_factory=dict[str, Json])
    """What the turn object's flags say beyond the state's own, for example ``degraded``."""

    def remark(self, kind: RemarkKind, /, **values: Json) -> None:
        self.story.append(Remark(kind, values))

    @property
    def completed(self) -> list[BaseFlow]:
        """Flows that completed in this turn, in order."""
        return [part for part in self.story if isinstance(part, BaseFlow)]

    def event(self, kind: str, /, **payload: Json) -> None:
        self.events.append(Event(self.session_id, kind, self.turn_id, payload))

    def signal(
        self, source: str, kind: SignalType, flow_id: FlowId | None = None, /, **payload: Json
    ) -> None:
        if self.record_signal is drop_signal:
            return  # nobody listens: make none
        self.record_signal(
            Signal(
                source=source,
                type=kind,
                session=self.session_id,
                turn=self.turn_id,
                flow=flow_id,
                payload=payload,
            )
        )

    def degrade(self, problem: str) -> None:
        """Note that a model was wanted and did not serve. `problem`: the code of its error."""
        self.flags["degraded"] = True
        self.flags["model_problem"] = problem

    def failed_check(self, module: str, name: str, why: str, flow_id: FlowId | None = None) -> None:
        """Record a named check that did not hold (AG-4)."""
        self.signal(module, SignalType.CHECK, flow_id, check=name, ok=False, why=why)
