from typing import Annotated

from pydantic import AliasPath, BeforeValidator, Field

from gateway.responses.common import JsonMap, ResponseModel, Timestamp, optional, response_of
from gateway.responses.sessions import JournalStep
from orchestrator.telemetry import SignalType
from orchestrator.turns import turn
from orchestrator.turns.feedback import Rating
from orchestrator.turns.turn import TurnKind, TurnStatus


def _none_if_empty(correction: JsonMap) -> JsonMap | None:
    return correction or None


class Receipt(response_of(turn.Receipt, without=("session_id", "repeated"))):
    """The receipt for an accepted turn. Parley has stored the turn and will answer it."""


class StackedFlow(ResponseModel):
    dact: str = Field(examples=["book_flight"])
    state: str = Field(examples=["Active"])
    reason: str | None
    slots: JsonMap = Field(examples=[{"origin": "OSL", "destination": "MAD"}])


class ToolCall(ResponseModel):
    tool_id: str
    arguments: JsonMap
    status: str


class Turn(ResponseModel):
    """A turn. Members are null or empty while their values are unknown."""

    session_id: str = Field(examples=["session_1"])
    turn_id: str = Field(examples=["turn_1"])
    seq: int
    epoch: int | None
    status: TurnStatus
    text: str | None = Field(examples=["Book a flight from Oslo to Madrid"])
    reply: str | None = Field(examples=["What day?"])
    flows: list[StackedFlow]
    completed: list[str]
    tools: list[ToolCall]
    frames: list[JsonMap] = Field(description="Blocks displayed with the reply, in order.")
    frame: JsonMap | None = Field(description="The last item in `frames`, or null if there are none.")
    actions: list[JsonMap]
    interaction: JsonMap = Field(
        description="Kind and details of the open question.", examples=[{"kind": "none"}]
    )
    code_snippet: JsonMap | None
    properties: JsonMap = Field(
        description="Provenance of the reply.",
        examples=[{"templates": ["book_flight"], "naturalized": False, "streamed": False}],
    )
    ambiguity: JsonMap | None = Field(examples=[{"level": "specific", "slot": "date", "flow_id": "flow_1"}])
    flags: JsonMap = Field(examples=[{"keep_going": False}])
    duration_ms: float | None = Field(examples=[2.1])
    error: str | None = optional("Why the turn failed.")


class TimedTurn(Turn):
    kind: TurnKind
    action: JsonMap | None = Field(description="The clicked action, if there is no text.")
    attempts: int
    accepted_at: Timestamp | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    waited_ms: float | None
    ran_ms: float | None


class FoundTurn(ResponseModel):
    """A turn found by a search, with quality indicators."""

    turn_id: str
    session_id: str
    seq: int
    user_id: str | None
    domain: str
    kind: TurnKind
    status: TurnStatus
    said: str | None
    action: str | None = Field(description="Name of the clicked action, if there is no text.")
    reply: str | None
    error: str | None
    accepted_at: Timestamp
    ran_ms: float | None
    failed: bool = Field(description="Whether the turn ended with an error or an apology.")
    not_understood: bool
    rated_down: bool
    refused_by: str | None = Field(description="The budget that refused a model call.", examples=["user_day"])
    tokens: int
    cost_micros: int = Field(description="Cost of the turn's model calls, in millionths of a US dollar.")


class FoundTurns(ResponseModel):
    turns: list[FoundTurn]
    next: str | None = Field(description="Value of `before` for the next page, or null if there is none.")


class DayOfTurns(ResponseModel):
    """Metrics for one day. `median_ms`: median time from a turn's start to its end, in milliseconds.

    `over_budget`: turns in which a budget refused a model call. `cost_micros`: cost of model calls, in
    millionths of a US dollar.
    """

    day: str = Field(examples=["2026-01-31"])
    turns: int
    failed: int
    not_understood: int
    rated_down: int
    over_budget: int
    median_ms: float | None
    tokens: int
    cost_micros: int


class TurnsOfUser(ResponseModel):
    """Metrics for one user, or for all sessions without a user.

    `cost_micros`: cost of model calls, in millionths of a US dollar.
    """

    user_id: str | None
    turns: int
    failed: int
    over_budget: int = Field(description="Turns in which a budget refused a model call.")
    tokens: int
    cost_micros: int


class TurnSignal(ResponseModel):
    """An observation about a turn. `payload` depends on `type`."""

    id: str
    source: str
    type: SignalType
    time: Timestamp
    flow_id: str | None = optional("ID of the flow that the signal concerns.")
    prompt_version: str | None = optional("Version of the prompt that the signal concerns.")
    payload: JsonMap


class TurnJournal(ResponseModel):
    """A turn's journal. `steps` are ordered by last write, and `signals` by time."""

    turn_id: str
    session_id: str
    status: TurnStatus
    started_at: Timestamp | None
    finished_at: Timestamp | None
    steps: list[JournalStep]
    signals: list[TurnSignal]


class TestCase(ResponseModel):
    """A test case for `parley eval`, as a file for a domain's `evaluations/` folder."""

    turn_id: str
    domain: str
    name: str
    yaml: str


class Feedback(ResponseModel):
    feedback_id: str
    session_id: str
    turn_id: str
    rating: Rating | None = Field(validation_alias=AliasPath("feedback", "rating"))
    comment: str | None = Field(validation_alias=AliasPath("feedback", "comment"))
    correction: Annotated[JsonMap | None, BeforeValidator(_none_if_empty)] = Field(
        validation_alias=AliasPath("feedback", "correction")
    )
    author: str | None = Field(validation_alias=AliasPath("feedback", "author"))
    at: Timestamp
