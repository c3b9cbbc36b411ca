from pydantic import Field, JsonValue

from gateway.responses.approvals import Approval
from gateway.responses.common import JsonMap, ResponseModel
from gateway.responses.sessions import Effect
from orchestrator.turns.turn import TurnStatus


class Fit(ResponseModel):
    repair: dict[str, JsonValue]
    why: str


class UnfinishedTurn(ResponseModel):
    """A queued, running or quarantined turn."""

    turn_id: str
    seq: int
    status: TurnStatus
    attempts: int
    error: str | None


class Trouble(ResponseModel):
    """A session's problems, unfinished work and applicable repairs."""

    session_id: str
    epoch: int
    person: str | None = Field(description="The operator who answers instead of the assistant.")
    wrong: list[str] = Field(description="Violations of the state's invariants.")
    flows: list[JsonMap] = Field(description="The stored stack, top last.")
    effects: list[Effect] = Field(description="The session's side effects, oldest first.")
    approvals: list[Approval] = Field(description="Pending approvals.")
    turns: list[UnfinishedTurn]
    fits: list[Fit] = Field(description="Suggested repairs, to complete and preview.")


class Preview(ResponseModel):
    """The expected result of repairs. `epoch`: the session's epoch, which the repair order must name."""

    session_id: str
    epoch: int
    done: list[str] = Field(description="Descriptions of the changes.")
    told: str | None = Field(description="Message to the user, if any.")
    refused: list[str] = Field(description="Why the repairs would be rejected.")
    wrong: list[str] = Field(description="Problems that would remain.")
    diff: JsonMap = Field(description="Changes to the working state.")


class Repaired(ResponseModel):
    """The result of repairs. `turn_id` is null for repairs that are applied immediately."""

    session_id: str
    turn_id: str | None
    status: TurnStatus
    epoch: int | None
    done: list[str]
    reply: str | None
    by: str
    why: str
