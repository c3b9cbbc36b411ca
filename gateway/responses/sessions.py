from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue

from gateway.responses.common import JsonMap, ResponseModel, Timestamp, optional, response_of
from orchestrator.dialogue.specification import Priority
from orchestrator.ports.memory.scratchpad import EntryKind
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.step import StepStatus
from orchestrator.turns.turn import SessionRecord


def _name_status(closed: bool) -> str:
    return "closed" if closed else "open"


def _data_of(result: Any) -> Any:
    return None if result is None else result.get("data")


class Utterance(ResponseModel):
    turn_id: str
    seq: int
    role: Literal["user", "agent", "system", "operator"]
    form: str
    content: str
    at: Timestamp


class Session(response_of(SessionRecord, without=("closed",))):
    status: Annotated[Literal["open", "closed"], BeforeValidator(_name_status)] = Field(
        validation_alias="closed"
    )
    timezone: str | None = optional("The user's time zone. Default: the domain's time zone.")
    locale: str | None = optional("The user's locale. Default: the domain's locale.")
    state: JsonMap | None = optional("The working state; only when reading one session.")
    title: str | None = optional("The beginning of the first message; only in lists.")
    parent: str | None = optional("ID of the session that this one was forked from.")
    parent_epoch: int | None = optional("Version of the parent at the fork.")
    root: str | None = optional("For a fork, the ID of the session at the root of its lineage.")
    plan: JsonMap | None = optional("The plan at the version `at`; only with `at`.")
    history: list[Utterance] | None = optional("The messages up to the version `at`; only with `at`.")


class SlotOutline(ResponseModel):
    name: str
    priority: Priority
    group: str | None = optional("Group of an elective slot. At least one slot in the group must be filled.")


class FlowOutline(ResponseModel):
    """A flow as declared by its domain."""

    dact: str = Field(examples=["book_flight"])
    intent: str
    description: str
    slots: list[SlotOutline]
    confirm: bool = Field(description="Whether the user must confirm before a tool with a side effect runs.")
    tools: list[str]


class State(ResponseModel):
    epoch: int
    state: JsonMap | None


class Event(ResponseModel):
    """The data of a server-sent event. `number` is null for live events, which are not stored."""

    type: str
    turn_id: str | None
    payload: JsonMap
    number: int | None
    at: Timestamp | None = optional("Time when the event was stored.")


class Effect(response_of(LedgerEntry, without=("session_id", "step_key"))):
    """A side effect in the ledger. `at`: the time of its last change."""

    result: Annotated[JsonValue, BeforeValidator(_data_of)]
    of_session: str | None = optional(
        "For a fork, the ID of the session from which it inherited the side effect."
    )


class ComparedTurns(ResponseModel):
    """Turns at the same position after two sessions diverged. A side is null if its session has fewer turns."""

    left: JsonMap | None
    right: JsonMap | None
    differs: list[str] = Field(examples=[["said", "tools"]])


class Comparison(ResponseModel):
    left: str
    right: str
    common: JsonMap | None = Field(
        description="The last version that both sessions share, with its session ID, or null if there is none.",
        examples=[{"session_id": "session_1", "epoch": 3}],
    )
    turns: list[ComparedTurns]
    effects: dict[Literal["left", "right"], list[JsonMap]] = Field(
        description="Side effects in only one of the two ledgers, by side."
    )


class Plan(ResponseModel):
    plan_id: str
    dact: str
    goal: str
    state: str
    reason: str | None
    revision: int
    turn_id: str
    at: Timestamp
    steps: list[JsonMap]
    revisions: list[JsonMap]


class Frame(ResponseModel):
    frame_id: str
    flow_id: str
    turn_id: str
    display_type: str
    display_name: str
    data: JsonValue
    source: list[str]
    table_id: str | None
    rows: int | None
    at: Timestamp


class FramePage(ResponseModel):
    frame_id: str
    page: int
    pages: int
    row_count: int
    rows: list[JsonValue]


class Note(ResponseModel):
    entry_id: str
    flow: str
    origin: str
    kind: EntryKind
    text: str | None
    data: JsonValue
    epoch: int
    labels: list[str]
    at: float


class JournalStep(ResponseModel):
    turn_id: str
    key: str
    kind: str
    status: StepStatus
    request_hash: str
    duration_ms: float | None = Field(description="Duration of the call, or null until it ends.")
    at: Timestamp
