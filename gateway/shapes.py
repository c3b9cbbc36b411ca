"""What answers look like, for the OpenAPI document and those who read it. Nothing is checked at run time.

Members may be added; those that are named here stay.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from orchestrator.ports.memory.scratchpad import EntryKind
from orchestrator.telemetry import SignalType
from orchestrator.turns.access import Scope
from orchestrator.turns.approval import ApprovalStatus
from orchestrator.turns.effect import LedgerStatus
from orchestrator.turns.feedback import Rating
from orchestrator.turns.step import StepStatus
from orchestrator.turns.turn import IfBusy, TurnStatus

JsonMap = dict[str, Any]


class Shape(BaseModel):
    """An answer; every member is there."""

    model_config = ConfigDict(extra="allow")


class Problem(Shape):
    """An error, as problem details (RFC 9457). `code` is stable; `detail` says what to do."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Not Found",
                    "status": 404,
                    "code": "not_found",
                    "detail": "There is no session 'nowhere'.",
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    code: str
    detail: str
    field: str | None = Field(default=None, description="What is wrong, where input is (422, 413).")
    errors: list[JsonMap] | None = Field(default=None, description="All mistakes of a malformed request.")


class Session(Shape):
    session_id: str
    tenant_id: str
    user_id: str | None
    domain: str
    epoch: int
    status: Literal["open", "closed"]
    pending: int
    if_busy: IfBusy
    created_at: datetime
    updated_at: datetime
    state: JsonMap | None = Field(default=None, description="The working state, where one session is read.")


class State(Shape):
    epoch: int
    state: JsonMap | None


class Receipt(Shape):
    """A turn that was accepted: it is stored, and will be answered."""

    turn_id: str
    seq: int
    status: TurnStatus
    position: int


class StackedFlow(Shape):
    dact: str
    state: str
    reason: str | None
    slots: JsonMap


class ToolCall(Shape):
    tool_id: str
    arguments: JsonMap
    status: str


class Turn(Shape):
    """A turn; parts that are not known yet are empty."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "session_id": "session_1",
                    "turn_id": "turn_1",
                    "seq": 1,
                    "epoch": 1,
                    "status": "done",
                    "text": "Book a flight from Oslo to Madrid",
                    "reply": "On which day?",
                    "flows": [
                        {
                            "dact": "book_flight",
                            "state": "Active",
                            "reason": None,
                            "slots": {"origin": "OSL", "destination": "MAD"},
                        }
                    ],
                    "completed": [],
                    "tools": [],
                    "frame": None,
                    "actions": [],
                    "interaction": {"kind": "none"},
                    "code_snippet": None,
                    "properties": {"templates": ["book_flight"], "naturalized": False, "streamed": False},
                    "ambiguity": {"level": "specific", "slot": "date", "flow_id": "flow_1"},
                    "flags": {"keep_going": False},
                    "duration_ms": 2.1,
                }
            ]
        },
    )

    session_id: str
    turn_id: str
    seq: int
    epoch: int | None
    status: TurnStatus
    text: str | None
    reply: str | None
    flows: list[StackedFlow]
    completed: list[str]
    tools: list[ToolCall]
    frame: JsonMap | None
    actions: list[JsonMap]
    interaction: JsonMap = Field(description="How the open question is answered.")
    code_snippet: JsonMap | None
    properties: JsonMap = Field(description="How the answer came about.")
    ambiguity: JsonMap | None
    flags: JsonMap
    duration_ms: float | None
    error: str | None = Field(default=None, description="Why it failed, where it did.")


class TimedTurn(Turn):
    attempts: int
    accepted_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    waited_ms: float | None
    ran_ms: float | None


class Utterance(Shape):
    turn_id: str
    seq: int
    role: Literal["user", "agent", "system"]
    form: str
    content: str
    at: datetime


class Event(Shape):
    """What the data of a server-sent event hold; `number` is null for what is only told live."""

    type: str
    turn_id: str | None
    payload: JsonMap
    number: int | None


class Effect(Shape):
    tool_id: str
    arguments: JsonMap
    status: LedgerStatus
    flow_id: str
    turn_id: str
    slots: JsonMap
    result: JsonValue
    fingerprint: str
    idempotency_key: str
    at: datetime | None


class Plan(Shape):
    plan_id: str
    dact: str
    goal: str
    state: str
    reason: str | None
    revision: int
    turn_id: str
    at: datetime
    steps: list[JsonMap]
    revisions: list[JsonMap]


class Frame(Shape):
    frame_id: str
    flow_id: str
    turn_id: str
    display_type: str
    display_name: str
    data: JsonValue
    source: list[str]
    table_id: str | None
    rows: int | None
    at: datetime


class FramePage(Shape):
    frame_id: str
    page: int
    pages: int
    row_count: int
    rows: list[JsonValue]


class Note(Shape):
    entry_id: str
    flow: str
    origin: str
    kind: EntryKind
    text: str | None
    data: JsonValue
    epoch: int
    labels: list[str]
    at: float


class JournalStep(Shape):
    turn_id: str
    key: str
    kind: str
    status: StepStatus
    request_hash: str
    at: datetime


class TurnSignal(Shape):
    """One observed fact about a turn; what `payload` tells depends on the type."""

    id: str
    source: str
    type: SignalType
    time: datetime
    flow_id: str | None = None
    prompt_version: str | None = None
    payload: JsonMap


class TurnJournal(Shape):
    """`steps` in the order in which they were written last, `signals` as they came."""

    turn_id: str
    session_id: str
    status: TurnStatus
    steps: list[JournalStep]
    signals: list[TurnSignal]


class Feedback(Shape):
    feedback_id: str
    session_id: str
    turn_id: str
    rating: Rating | None
    comment: str | None
    correction: JsonMap | None
    author: str | None
    at: datetime


class Approval(Shape):
    approval_id: str
    session_id: str
    turn_id: str
    flow_id: str
    tool_id: str
    arguments: JsonMap
    question: str
    cause: str
    status: ApprovalStatus
    decided_by: str | None
    reason: str | None
    operator_only: bool
    created_at: datetime | None
    expires_at: datetime | None
    decided_at: datetime | None
    closed_at: datetime | None


class DecidedApproval(Approval):
    resumed_by: str = Field(description="The turn in which the flow goes on.")


class Alive(Shape):
    status: Literal["live"]


class Ready(Shape):
    status: Literal["ready"]
    models_down: list[JsonMap]


class InspectorFacts(Shape):
    tenant_id: str
    domains: list[str]
    default_domain: str
    flower_url: str | None


class Whoami(Shape):
    """The caller as the gateway knows him."""

    tenant_id: str
    user_id: str | None
    name: str
    scopes: list[Scope]
    known: bool = Field(description="False where the gateway asks nobody who he is.")


class Ticket(Shape):
    ticket: str = Field(description="Goes into an address as `?access_token=…`.")
    expires_in: int = Field(description="Seconds.")


class Webhook(Shape):
    webhook_id: str
    session_id: str | None = Field(description="Null: all sessions of the tenant.")
    url: str
    events: list[str] | None = Field(description="Null: all durable events.")
    created_at: datetime | None


class WebhookSecret(Shape):
    secret: str


class FailingFeed(Shape):
    """One session's events that do not arrive at one webhook."""

    webhook_id: str
    session_id: str
    status: Literal["retrying", "given_up"]
    attempts: int
    error: str | None
    delivered: int
    wanted: int
    failing_since: datetime | None
    given_up_at: datetime | None


class RetriedFeeds(Shape):
    feeds: int
