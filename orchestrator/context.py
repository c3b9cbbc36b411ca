"""The data of a turn.

`TurnContext` has the turn's inputs and collects its results. Modules write to `TurnChanges`, which are
discarded if the turn fails, and to `TurnLog`, which is kept. RES generates the `Answer` from the context.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from orchestrator.dialogue.ambiguity import Asked
from orchestrator.dialogue.base_flow import ValueFinder
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import FlowState
from orchestrator.dialogue.notice import Notice, NoticeKind
from orchestrator.dialogue.records import Frame
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.tables import ShownTable
from orchestrator.dialogue.understanding import Understanding
from orchestrator.domain.model import Domain
from orchestrator.domain.registry import Registry
from orchestrator.memory.notes import SessionNotes
from orchestrator.memory.user_memory import UserPreferences
from orchestrator.models.calling import CallContext
from orchestrator.ports.memory.documents import ContextSearch, Passage
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
    session_id: SessionId
    tenant_id: TenantId
    user_id: UserId | None
    turn_id: TurnId
    root: SessionId | None = None
    """The root of the fork tree, or None if the session isn't a fork."""


@dataclass(frozen=True, slots=True)
class World:
    """A read-only view of the session for modules (AG-3).

    `prior_state`: the stored state before this turn. `frames`: the available frames by flow.
    """

    domain: Domain
    registry: Registry
    prior_state: JsonObject
    frames: Mapping[FlowId, Frame]


class SourcedFinder(ValueFinder, Protocol):
    """A value finder that also records the source of each value."""

    sources: Mapping[str, Passage]


@dataclass(frozen=True, slots=True)
class Recall:
    """Sources of values and facts other than the message, read on demand.

    Args:
        notes: the notes of the session's flows.
        recent_turns, document_finder, preferences: finders for values of empty slots (PX-4).
        documents: searches business context.
        can_gather: True if background flows can gather more context (PX-16).
    """

    notes: SessionNotes
    recent_turns: ValueFinder | None = None
    document_finder: SourcedFinder | None = None
    preferences: UserPreferences | None = None
    documents: ContextSearch | None = None
    can_gather: bool = False


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """A tool call, as reported in the turn object. `status`: ok, accepted, unknown or a `FailureCategory`."""

    tool_id: ToolId
    arguments: JsonObject
    status: str


@dataclass(slots=True)
class TurnLog:
    """The tool calls, events and signals of a turn.

    `flags`: additional flags for the turn object, such as ``degraded``.
    """

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
        """Record a failed check (AG-4)."""
        self.signal(module, SignalType.CHECK, flow_id, check=name, ok=False, why=why)

    def degrade(self, problem: str) -> None:
        """Record in the turn's flags that a required model was unavailable. `problem`: the error code."""
        self.flags["degraded"] = True
        self.flags["model_problem"] = problem


@dataclass(slots=True)
class ApprovalChanges:
    """Approvals requested in the turn (`asked`), and new statuses of earlier approvals, by ID (`closed`)."""

    asked: list[ApprovalRecord] = field(default_factory=list[ApprovalRecord])
    closed: dict[str, ApprovalStatus] = field(default_factory=dict[str, ApprovalStatus])


@dataclass(slots=True)
class PlanChanges:
    """A turn's changes to plans.

    Args:
        log: revisions to store (PL-6).
        seen: the number of finished flows that replanning has processed.
        edited: True if the user changed a plan.
        in_doubt: True if a plan used a value that was corrected, so that replanning may need a model.
    """

    log: list[PlanRevision] = field(default_factory=list[PlanRevision])
    seen: int = 0
    edited: bool = False
    in_doubt: bool = False


@dataclass(slots=True)
class TurnChanges:
    """All changes that a turn makes, until they are committed or discarded.

    Args:
        messages: the parts of the answer in order: messages, and flows with results (RS-1).
        finished: all flows that left the stack, for the archive.
        understanding: NLU's result for the message, or None if NLU did not run.
        carry_on: True if PEX has work to do.
        findings: merged tool results by flow, for the templates.
        silent: completed flows to omit from the answer, because their plan continues (RS-2).
        climbed: pairs of a flow and a recovery step that was used for the flow.
        reroutes: number of reroutes so far.
        refreshed: flows whose required summary or memories were checked.
        asks_again: True if the open question is repeated after the user did something else, so that it
            doesn't count as a failed answer (AM-4).
        streamed: True if part of the answer was streamed.
        page: the table page to display, with its rows.
        outbox: additional messages to send after the commit.
    """

    messages: list[Notice | BaseFlow] = field(default_factory=list["Notice | BaseFlow"])
    finished: list[BaseFlow] = field(default_factory=list[BaseFlow])
    frames: dict[FlowId, Frame] = field(default_factory=dict[FlowId, Frame])
    findings: dict[FlowId, JsonObject] = field(default_factory=dict[FlowId, JsonObject])
    approvals: ApprovalChanges = field(default_factory=ApprovalChanges)
    plans: PlanChanges = field(default_factory=PlanChanges)
    silent: set[FlowId] = field(default_factory=set[FlowId])
    climbed: set[tuple[FlowId, str]] = field(default_factory=set["tuple[FlowId, str]"])
    reroutes: int = 0
    refreshed: set[FlowId] = field(default_factory=set[FlowId])
    understanding: Understanding | None = None
    carry_on: bool = False
    asks_again: bool = False
    streamed: bool = False
    page: tuple[ShownTable, list[JsonObject]] | None = None
    outbox: list[OutboxEntry] = field(default_factory=list[OutboxEntry])

    @property
    def completed(self) -> list[BaseFlow]:
        return [flow for flow in self.reported if flow.state is FlowState.COMPLETED]

    @property
    def reported(self) -> list[BaseFlow]:
        """Return the flows in `messages`, which have complete or partial results, in order."""
        return [part for part in self.messages if isinstance(part, BaseFlow)]


@dataclass(frozen=True, slots=True)
class TurnContext:
    """A turn's inputs and its changes so far.

    Args:
        now: the time when the turn was accepted, in Unix seconds, the same in every attempt (RT-29).
        local_now: `now` shifted to the user's time zone, so that its UTC date is the user's date.
        deadline: the time after which tool calls are no longer awaited, in Unix seconds by this machine's
            clock.
        call: the context and deadline of model calls.
        state: the dialogue state, which changes during the turn.
        live: receives the answer while it streams (RS-4).
        locale: the user's locale, such as ``de-DE``, or None if unknown.
        action: the clicked action, or None if the input is text.
        arrived_at: the time when the message arrived, in Unix seconds by this machine's clock.
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
    state: DialogueState
    changes: TurnChanges
    live: LiveEvents | None = None
    locale: str | None = None
    action: JsonObject | None = None
    arrived_at: float = 0.0

    @property
    def today(self) -> str:
        """Return the user's date with its weekday, for prompts."""
        return datetime.fromtimestamp(self.local_now, UTC).strftime("%A, %Y-%m-%d")

    def tell(self, kind: NoticeKind, /, **values: Json) -> None:
        self.changes.messages.append(Notice(kind, values))


NO_INTERACTION: JsonObject = {"kind": "none"}


@dataclass(slots=True)
class Answer:
    """The reply and its attachments while they are built (RS-7).

    Args:
        parts: paragraphs in order, ending with the open question.
        templates: the names of the templates used.
        frames: blocks to display with the text.
        interaction: the form for the open question.
        fixed: indexes of paragraphs that models must not rephrase.
        leads: True if the last paragraph introduces the next sentence.
    """

    parts: list[str] = field(default_factory=list[str])
    templates: list[str] = field(default_factory=list[str])
    actions: list[JsonObject] = field(default_factory=list[JsonObject])
    question: Asked | None = None
    frames: list[JsonObject] = field(default_factory=list[JsonObject])
    interaction: JsonObject = field(default_factory=NO_INTERACTION.copy)
    fixed: set[int] = field(default_factory=set[int])
    leads: bool = False

    def add(self, text: str, *, leads: bool = False, fixed: bool = False) -> None:
        """Add a paragraph, unless the reply already contains it.

        If the last paragraph introduces the text, and both are single lines, extend that paragraph.
        """
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
