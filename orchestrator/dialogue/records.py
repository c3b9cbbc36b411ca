"""Records in the dialogue state: flags, approvals, side effects, messages, labels and plan steps (ST-1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from orchestrator.dialogue.lifecycle import CANCELLED, PLANNED, PRUNED, FlowState, FlowStatus, Reason
from orchestrator.dialogue.understanding import Digression
from orchestrator.saying import Told
from orchestrator.types import Dact, FlowId, Json, JsonObject, ToolId, TurnId, copy_json


@dataclass(slots=True)
class Flags:
    """Flags for the Agent's loop.

    `keep_going`: the next flow runs without waiting for the user. `has_issues`: a check failed, or a result
    is incomplete. `has_plan`: a plan is in progress. `natural_birth`: the top flow came from the user's
    request, not from a fallback.
    """

    keep_going: bool = False
    has_issues: bool = False
    has_plan: bool = False
    natural_birth: bool = True


@dataclass(slots=True)
class DigressionRecord:
    """The number of consecutive digressions, and the kind of the last digression, or None (IR-3)."""

    depth: int = 0
    last: Digression | None = None

    def record(self, kind: Digression) -> None:
        self.depth += 1
        self.last = kind


@dataclass(slots=True)
class PendingApproval:
    """A request for approval of one call with exactly these arguments and this plan revision (PX-17).

    The request expires if no decision is made before `expires_at`, in Unix seconds.
    """

    approval_id: str
    flow_id: FlowId
    tool_id: ToolId
    arguments: JsonObject
    expires_at: float
    plan_revision: int = 0
    policy_version: str = ""
    question: str = ""
    cause: Told | None = None
    """The reason displayed to the user, or None to use the reason from the tool's manifest."""
    found: tuple[str, ...] = ()
    """The arguments that came from a tool result or a document."""
    asked_turn: int = 0
    """Number of the turn that last asked the user. A plain “yes” takes effect only in the next turn."""
    operator_only: bool = False

    def put(self, turn: int) -> None:
        self.asked_turn = turn

    def has_expired(self, now: float) -> bool:
        return now >= self.expires_at


class EffectStatus(StrEnum):
    FINISHED = "finished"
    UNKNOWN = "unknown"
    """The call was started, but its outcome is unknown (RT-9)."""
    AWAITED = "awaited"
    """The call was accepted, and its result comes later (RT-32)."""
    COMPENSATED = "compensated"
    """The tool's compensation has undone the call."""


@dataclass(slots=True)
class EffectNote:
    """A tool call with a side effect, and the flow's slot values at the time of the call (RT-12)."""

    tool_id: ToolId
    flow_id: FlowId
    slots: JsonObject
    arguments: JsonObject
    summary: Told = ""
    status: EffectStatus = EffectStatus.FINISHED
    compensation: ToolId | None = None
    turn_id: TurnId | None = None
    result: JsonObject = field(default_factory=JsonObject)
    """The small part of the result that a compensation needs."""
    fingerprint: str = ""
    """The call's key in the session's side-effect ledger."""

    @property
    def is_done(self) -> bool:
        """Return whether the call certainly succeeded and was not undone."""
        return self.status is EffectStatus.FINISHED

    @property
    def is_awaited(self) -> bool:
        return self.status is EffectStatus.AWAITED

    @property
    def stands(self) -> bool:
        """Return whether the effect may still be in place."""
        return self.status is not EffectStatus.COMPENSATED

    def mark_undone(self) -> None:
        self.status = EffectStatus.COMPENSATED


@dataclass(frozen=True, slots=True)
class Message:
    """A message in the conversation. `role`: ``user``, ``agent`` or ``system``. `turn`: its turn number."""

    role: str
    text: str
    turn: int = 0


MOST_SOURCES = 8
"""Maximum number of sources per label. The state keeps the first sources."""


PRICE_WORDS = frozenset({"price", "fare", "cost", "rent", "rate", "total", "sum"})
"""Words that mark a field's name as a price or an amount of money."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Displayed rows in order, reduced to the fields that users refer to (IR-5).

    `tool_id`: the tool that returned the rows. `dact`: the flow that displayed them. `key`: the field that
    identifies a row. `place`: index of the current row, initially the first. `made_from`: the required
    slot values that produced the rows, by slot.
    """

    tool_id: ToolId
    dact: Dact
    key: str
    rows: list[JsonObject]
    place: int = 0
    made_from: JsonObject = field(default_factory=JsonObject)

    def fits(self, values: JsonObject) -> bool:
        """Return whether `values` agree with the required values that produced the rows.

        For example, flights to Rome don't fit a task with the destination Paris. Missing values agree.
        """
        return all(values.get(name, value) == value for name, value in self.made_from.items())

    @property
    def current(self) -> JsonObject:
        """Return the current row, or an empty row if there are no rows."""
        return self.rows[self.place] if self.rows else {}

    def name(self, value: Json) -> str | None:
        """Return a readable name for the row whose key is `value`, or None if there is no such row.

        The name is the key if the key is a word or phrase; otherwise, it is the row's other texts, joined by
        commas, after the key if two rows have the same texts.
        """
        row = next((row for row in self.rows if row.get(self.key) == value), None)
        if row is None:
            return None
        if isinstance(value, str) and (" " in value or value.isalpha()):
            return value
        name, names = self._join_texts(row), [self._join_texts(one) for one in self.rows]
        is_unclear = len({*names}) < len(names)
        return f"{value}, {name}" if is_unclear and name else name or str(value)

    def _join_texts(self, row: JsonObject) -> str:
        return ", ".join(part for name, part in row.items() if name != self.key and isinstance(part, str))


class Label(StrEnum):
    PRIVATE = "private"
    """The session has read private data."""
    UNTRUSTED = "untrusted"
    """The session has read text that an outsider may have written."""


@dataclass(frozen=True, slots=True)
class LabelSource:
    """The source of a label. `source`: its display name, such as a tool's name. `turn`: the turn's number."""

    label: Label
    source: str
    turn: int
    flow_id: str | None = None


def add_source(sources: list[LabelSource], new: LabelSource) -> None:
    """Add a source of a label, up to `MOST_SOURCES` distinct sources per label."""
    of_label = [known for known in sources if known.label is new.label]
    if len(of_label) < MOST_SOURCES and all(known.source != new.source for known in of_label):
        sources.append(new)


def labels_of(sources: Iterable[LabelSource]) -> frozenset[Label]:
    return frozenset(known.label for known in sources)


@dataclass(slots=True)
class Frame:
    """A block to display.

    `data`: an object, or a list of row objects (only the first page; `table_id` leads to the rest).
    `display_type`: table, chart, card, list, form, confirmation, toast. `code`: the code that computed the data,
    or None. `chart_type`: ``auto`` to choose a type based on the data. `source`: the tools that returned the
    data. `rows`: total number of rows.
    """

    frame_id: str
    flow_id: str
    data: Json
    display_type: str = "card"
    display_name: str = ""
    source: list[str] = field(default_factory=list[str])
    code: str | None = None
    chart_type: str | None = None
    table_id: str | None = None
    rows: int | None = None
    warning: Told | None = None
    error: str | None = None


ANSWERED = "answered"
"""Note on a step that a plan dropped because its answer is already known. The plan treats the step as done."""


@dataclass(slots=True)
class PlanStep:
    """A step of a plan.

    `name`: the name that other steps use for this step. Default: the flow's name. `slots`: serialized bindings by
    slot. `needs`: names of the steps that must succeed first. `optional`: True if the plan counts as done without
    this step. `tell`: True to report the result even though the plan continues. `outputs`: results for later steps.
    `note`: the reason for dropping the step, as text for the user.
    """

    flow_id: FlowId
    dact: Dact
    state: FlowState = FlowState.PENDING
    reason: Reason | None = Reason.PLANNED
    name: str = ""
    purpose: str = ""
    slots: JsonObject = field(default_factory=JsonObject)
    needs: tuple[str, ...] = ()
    optional: bool = False
    tell: bool = False
    outputs: JsonObject = field(default_factory=JsonObject)
    note: Told = ""

    def __post_init__(self) -> None:
        self.name = self.name or self.dact

    @property
    def status(self) -> FlowStatus:
        return FlowStatus(self.state, self.reason)

    @property
    def is_planned(self) -> bool:
        return self.status == PLANNED

    @property
    def is_finished(self) -> bool:
        return self.state in {FlowState.COMPLETED, FlowState.INVALID}

    @property
    def is_done(self) -> bool:
        """Return whether the step was completed, or was not needed because its answer was known."""
        answered = self.status == PRUNED and self.note == ANSWERED
        return self.state is FlowState.COMPLETED or answered

    @property
    def was_dropped_by_user(self) -> bool:
        return self.status == CANCELLED

    @property
    def was_never_begun(self) -> bool:
        """Return whether the step was dropped before it began."""
        return self.status == PRUNED

    @property
    def label(self) -> str:
        """Return the step's purpose or, if it is empty, the step's name, for the user."""
        return self.purpose or self.name.replace("_", " ")

    def become(self, status: FlowStatus, note: Told = "") -> None:
        self.state, self.reason = status
        self.note = note or self.note

    def keep_outputs(self, outputs: JsonObject) -> None:
        """Store copies of the step's results for later steps, without None values."""
        self.outputs = {name: copy_json(value) for name, value in outputs.items() if value is not None}

    def rename(self, name: str) -> None:
        self.name = name

    def need(self, names: Iterable[str]) -> None:
        self.needs = tuple(dict.fromkeys(names))

    def bind(self, slot: str, binding: JsonObject) -> None:
        self.slots[slot] = binding

    def carried_out_by(self, flow_id: FlowId, dact: Dact) -> PlanStep:
        """Return a copy of this step, reset to planned, for another flow to run."""
        return replace(
            self, flow_id=flow_id, dact=dact, state=FlowState.PENDING, reason=Reason.PLANNED, note=""
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the conversation up to and including turn `through_turn`."""

    text: str
    through_turn: int


@dataclass(slots=True)
class History:
    """Recent messages and events of the conversation.

    `summary`: covers the older turns of a long conversation (IF-12). `lines`: the messages as JSON. `trace`: one
    entry per turn. Messages and trace entries must not be changed after they are added.
    """

    lines: list[JsonObject] = field(default_factory=list[JsonObject])
    trace: list[JsonObject] = field(default_factory=list[JsonObject])
    summary: Summary | None = None

    @property
    def messages(self) -> list[Message]:
        return [Message(**line) for line in self.lines]

    @property
    def summarized_through(self) -> int:
        """Return the last turn that the summary covers, or 0."""
        return 0 if self.summary is None else self.summary.through_turn

    def last_said(self, role: str) -> str:
        """Return the text of the last message with this role, or an empty string."""
        return next((line["text"] for line in reversed(self.lines) if line["role"] == role), "")


@dataclass(slots=True)
class Intake:
    """Labels of external content, and entity values that the session learned.

    `labels`: sources of private or untrusted content, for checking later calls (PX-3). `entities`:
    metadata of the entity values in the outputs of completed flows, by entity and value (AG-3).
    """

    labels: list[LabelSource] = field(default_factory=list[LabelSource])
    entities: dict[str, dict[str, JsonObject]] = field(default_factory=dict[str, dict[str, JsonObject]])
