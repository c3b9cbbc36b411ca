"""A turn as data: `TurnContext`, its frozen inputs, and `TurnChanges`, all its changes.

Steps read the former and fill the latter. A failed step discards all changes; nothing is written before the
commit. `TurnLog` records what happened, whatever becomes of the changes. `Answer` is generated from them by
RES.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.dialogue.ambiguity import Asked
from orchestrator.dialogue.base_flow import ValueFinder
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import FlowState
from orchestrator.dialogue.records import Frame
from orchestrator.dialogue.remark import Remark, RemarkKind
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.tables import ShownTable
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
    """The IDs of a turn."""

    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId | None
    turn_id: TurnId
    root: SessionId | None = None
    """The root of the fork tree, if the session is a fork."""


@dataclass(frozen=True, slots=True)
class World:
    """A read-only view of the session for modules (AG-3).

    `prior_state`: the stored state before this turn. `frames`: the available ones, by flow.
    """

    domain: Domain
    registry: Registry
    prior_state: JsonObject
    frames: Mapping[FlowId, Frame]


class SourcedFinder(ValueFinder, Protocol):
    """A finder that reports the source of each value."""

    sources: Mapping[str, Passage]


@dataclass(frozen=True, slots=True)
class Recall:
    """Sources of values and facts beyond the message, read on demand.

    `recent_turns`, `preferences` and `document_finder` find values for empty slots (PX-4), `documents`
    passages of business context; `scratchpad` has the findings of background flows. `can_gather`: background
    flows can gather more (PX-16).
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
    """A tool call in the turn object. `status`: ok, an error category, or unknown."""

    tool_id: ToolId
    arguments: JsonObject
    status: str

    def serialize(self) -> JsonObject:
        return {"tool_id": self.tool_id, "arguments": self.arguments, "status": self.status}


@dataclass(slots=True)
class TurnLog:
    """The turn's log. `flags`: flags of the turn object besides the state's own, such as ``degraded``."""

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
        """Record a failed named check (AG-4)."""
        self.signal(module, SignalType.CHECK, flow_id, check=name, ok=False, why=why)

    def degrade(self, problem: str) -> None:
        """Record that a required model was unavailable. `problem`: the error's code."""
        self.flags["degraded"] = True
        self.flags["model_problem"] = problem


@dataclass(slots=True)
class ApprovalChanges:
    """Changes of approvals. `closed`: outcomes in this turn, by approval ID."""

    asked: list[ApprovalRecord] = field(default_factory=list[ApprovalRecord])
    closed: dict[str, ApprovalStatus] = field(default_factory=dict[str, ApprovalStatus])


@dataclass(slots=True)
class PlanChanges:
    """Changes of plans.

    `log`: for the durable record (PL-6). For the replanning check: `seen`, how many of the turn's finished
    flows their plans have processed; `edited`, whether the user changed a plan; `in_doubt`, whether a
    corrected value was used by a plan, which may be more than rules can handle.
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
    told while they were written. `page`: another page of a table, with its rows. `outbox`: what is sent after
    the commit, besides what every turn may make due.
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
    page: tuple[ShownTable, list[JsonObject]] | None = None
    outbox: list[OutboxEntry] = field(default_factory=list[OutboxEntry])

    def remark(self, kind: RemarkKind, /, **values: Json) -> None:
        self.messages.append(Remark(kind, values))

    @property
    def completed(self) -> list[BaseFlow]:
        """Return flows that completed in this turn, in order."""
        return [flow for flow in self.reported if flow.state is FlowState.COMPLETED]

    @property
    def reported(self) -> list[BaseFlow]:
        """Return flows with results in the answer: completed ones, and those with partial results."""
        return [part for part in self.messages if isinstance(part, BaseFlow)]


@dataclass(frozen=True, slots=True)
class TurnContext:
    """`now` in unix seconds; `deadline` likewise, by this machine's clock: no tool is waited for beyond it.

    `now`: when the turn was accepted, the same in every attempt (RT-29). `local_now`: `now` as a clock where the user
    is shows it, as if it stood in UTC: what “today” is said of. `locale`: the user's, such as ``de-DE``, or None.

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
    locale: str | None = None


NO_INTERACTION: JsonObject = {"kind": "none"}


@dataclass(slots=True)
class Answer:
    """The reply and its attachments, while it is built (RS-7).

    `parts`: paragraphs in order, the open question last. `templates`: the names of their templates. `frames`:
    blocks to display with the text. `interaction`: the form of the open question. `fixed`: indexes of
    paragraphs that no model can rewrite.
    """

    parts: list[str] = field(default_factory=list[str])
    templates: list[str] = field(default_factory=list[str])
    actions: list[JsonObject] = field(default_factory=list[JsonObject])
    question: Asked | None = None
    frames: list[JsonObject] = field(default_factory=list[JsonObject])
    interaction: JsonObject = field(default_factory=NO_INTERACTION.copy)
    fixed: set[int] = field(default_factory=set[int])
    leads: bool = False
    """The last paragraph introduces the next sentence."""

    def add(self, text: str, *, leads: bool = False, fixed: bool = False) -> None:
        """Add a paragraph; after an introducing one, a single line continues it."""
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
