"""One turn as data: `TurnContext`, its frozen inputs, and `TurnChanges`, all that the turn would change.

Steps read the one and fill the other. A failed step throws the changes away whole; nothing is written
before the commit. `TurnLog` says what happened, and stays whatever becomes of the changes. `Answer` is what RES
makes of them all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.dialogue.ambiguity import Question
from orchestrator.dialogue.base_flow import ValueFinder
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import FlowState
from orchestrator.dialogue.records import Frame
from orchestrator.dialogue.remark import Remark, RemarkKind
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.model import Domain
from orchestrator.domain.registry import Registry
from orchestrator.memory.notes import Notes, Preferences
from orchestrator.models.calling import CallContext
from orchestrator.ports.memory.documents import ContextSearch, Passage
from orchestrator.ports.memory.scratchpad import Scratchpad
from orchestrator.ports.turns import LiveEvents
from orchestrator.runtime.journal import Journal
from orchestrator.telemetry import RecordSignal, Signal, SignalType
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus
from orchestrator.turns.event import Event
from orchestrator.turns.lease import OutboxEntry
from orchestrator.turns.plan import PlanRevision
from orchestrator.types import FlowId, Json, JsonObject, SessionId, TenantId, ToolId, TurnId, UserId


@dataclass(frozen=True, slots=True)
class TurnIds:
    """Whose turn it is."""

    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId | None
    turn_id: TurnId
    root: SessionId | None = None
    """Of a branch: where its family begins."""


@dataclass(frozen=True, slots=True)
class World:
    """The session as the modules may look at it (AG-3): read only.

    `prior_state`: the state before this turn, as it is stored. `frames`: those at hand, by flow.
    """

    domain: Domain
    registry: Registry
    prior_state: JsonObject
    frames: Mapping[FlowId, Frame]


class SourcedFinder(ValueFinder, Protocol):
    """A finder that says where it has found each value."""

    sources: Mapping[str, Passage]


@dataclass(frozen=True, slots=True)
class Recall:
    """Where a value or a fact may be known from beyond the message; nothing is read before it is asked for.

    `recent_turns`, `preferences` and `document_finder` find values for empty slots (PX-4), `documents` passages of
    business context; `scratchpad` holds what Internal flows found. `can_gather`: Internal flows can be sent for more
    (PX-16).
    """

    notes: Notes
    recent_turns: ValueFinder | None = None
    document_finder: SourcedFinder | None = None
    preferences: Preferences | None = None
    documents: ContextSearch | None = None
    scratchpad: Scratchpad | None = None
    can_gather: bool = False


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """One tool call of the turn, as the turn object shows it. `status`: ok, an error category, or unknown."""

    tool_id: ToolId
    arguments: JsonObject
    status: str

    def serialize(self) -> JsonObject:
        return {"tool_id": self.tool_id, "arguments": self.arguments, "status": self.status}


@dataclass(slots=True)
class TurnLog:
    """What happened in the turn. `flags`: what its turn object says beyond the state's own, as ``degraded``."""

    ids: TurnIds
    record_signal: RecordSignal
    tools: list[ToolUsed] = field(default_factory=list[ToolUsed])
    events: list[Event] = field(default_factory=list[Event])
    signals: list[Signal] = field(default_factory=list[Signal])
    flags: dict[str, Json] = field(default_factory=dict[str, Json])

    def event(self, kind: str, /, **payload: Json) -> None:
        self.events.append(Event(self.ids.session_id, kind, self.ids.turn_id, payload))

    def signal(
        self, source: str, kind: SignalType, flow_id: FlowId | None = None, /, **payload: Json
    ) -> None:
        signal = Signal(
            source=source,
            type=kind,
            session=self.ids.session_id,
            turn=self.ids.turn_id,
            flow=flow_id,
            payload=payload,
        )
        self.signals.append(signal)
        self.record_signal(signal)

    def failed_check(self, module: str, name: str, why: str, flow_id: FlowId | None = None) -> None:
        """Record a named check that did not hold (AG-4)."""
        self.signal(module, SignalType.CHECK, flow_id, check=name, ok=False, why=why)

    def degrade(self, problem: str) -> None:
        """Note that a model was wanted and did not serve. `problem`: the code of its error."""
        self.flags["degraded"] = True
        self.flags["model_problem"] = problem


@dataclass(slots=True)
class ApprovalChanges:
    """`closed`: what became of approvals in this turn, by their identifiers."""

    asked: list[ApprovalRecord] = field(default_factory=list[ApprovalRecord])
    closed: dict[str, ApprovalStatus] = field(default_factory=dict[str, ApprovalStatus])


@dataclass(slots=True)
class PlanChanges:
    """`log`: what became of plans, for their lasting record (PL-6). For the replanning check: `seen`, how many
    of the turn's finished flows their plans know of; `edited`, that the user changed a plan; `in_doubt`, that a
    value was corrected which a plan was made with: that may be more than rules can mend.
    """

    log: list[PlanRevision] = field(default_factory=list[PlanRevision])
    seen: int = 0
    edited: bool = False
    in_doubt: bool = False


@dataclass(slots=True)
class TurnChanges:
    """Everything that the turn would change, until it is committed or thrown away.

    `messages`: what there is to say, in order: remarks, and flows with results (RS-1). `finished`: all
    flows that left the stack, for the archive. `findings`: what a flow's tools returned, merged by name:
    the source of templates. `silent`: completed flows of which nothing is said, because the plan they serve
    goes on (RS-2). `climbed`: the rungs of recovery that flows have taken. `asks_again`: the open question
    was asked before and was not answered now: no new round (AM-4). `streamed`: words of the answer were
    told while they were written. `outbox`: what is sent after the commit, besides what every turn may make
    due.
    """

    state: DialogueState
    messages: list[Remark | BaseFlow] = field(default_factory=list["Remark | BaseFlow"])
    finished: list[BaseFlow] = field(default_factory=list[BaseFlow])
    frames: dict[FlowId, Frame] = field(default_factory=dict[FlowId, Frame])
    findings: dict[FlowId, JsonObject] = field(default_factory=dict[FlowId, JsonObject])
    approvals: ApprovalChanges = field(default_factory=ApprovalChanges)
    plans: PlanChanges = field(default_factory=PlanChanges)
    silent: set[FlowId] = field(default_factory=set[FlowId])
    climbed: set[tuple[FlowId, str]] = field(default_factory=set["tuple[FlowId, str]"])
    asks_again: bool = False
    streamed: bool = False
    outbox: list[OutboxEntry] = field(default_factory=list[OutboxEntry])

    def remark(self, kind: RemarkKind, /, **values: Json) -> None:
        self.messages.append(Remark(kind, values))

    @property
    def completed(self) -> list[BaseFlow]:
        """Flows that completed in this turn, in order."""
        return [flow for flow in self.reported if flow.state is FlowState.COMPLETED]

    @property
    def reported(self) -> list[BaseFlow]:
        """Flows whose results the answer gives: completed ones, and those with a part of them."""
        return [part for part in self.messages if isinstance(part, BaseFlow)]


@dataclass(frozen=True, slots=True)
class TurnContext:
    """`now` in unix seconds; `deadline` likewise: no tool is waited for beyond it.

    `local_now`: `now` as a clock where the users are shows it, as if it stood in UTC: what “today” is said of.

    `call`: for whom models are asked in this turn, and until when. `live`: who hears the words of an answer
    while they are written (RS-4).
    """

    world: World
    ids: TurnIds
    text: str
    now: float
    local_now: float
    deadline: float
    journal: Journal
    call: CallContext
    recall: Recall
    log: TurnLog
    changes: TurnChanges
    live: LiveEvents | None = None


NO_INTERACTION: JsonObject = {"kind": "none"}


@dataclass(slots=True)
class Answer:
    """The reply and what goes with it (RS-7), while it is made.

    `parts`: paragraphs in order, the open question last. `templates`: the names that made them.

    `frames`: what is shown beside the words, each with its block. `interaction`: how the open question is
    answered. `fixed`: places of paragraphs that no model may rewrite.
    """

    parts: list[str] = field(default_factory=list[str])
    templates: list[str] = field(default_factory=list[str])
    actions: list[JsonObject] = field(default_factory=list[JsonObject])
    question: Question | None = None
    frames: list[JsonObject] = field(default_factory=list[JsonObject])
    interaction: JsonObject = field(default_factory=NO_INTERACTION.copy)
    fixed: set[int] = field(default_factory=set[int])
    leads: bool = False
    """Whether the last paragraph leads over to the next sentence."""

    def add(self, text: str, *, leads: bool = False, fixed: bool = False) -> None:
        """Add a paragraph; after one that leads over, a single line continues it."""
        if not text or text in self.parts:
            return
        if self.leads and "\n" not in text and "\n" not in self.parts[-1]:
            self.parts[-1] += f" {text}"
        else:
            self.parts.append(text)
        if fixed:
            self.fixed.add(len(self.parts) - 1)
        self.leads = leads

    @property
    def message(self) -> str:
        return "\n\n".join(part for part in self.parts if part)
