"""Answers about repairs: what is wrong with a session, what a repair would change, what it has changed."""

from pydantic import Field, JsonValue

from gateway.responses.approvals import Approval
from gateway.responses.common import JsonMap, ResponseModel
from gateway.responses.sessions import Effect
from orchestrator.turns.turn import TurnStatus


class Fit(ResponseModel):
    repair: dict[str, JsonValue]
    why: str


class UnfinishedTurn(ResponseModel):
    """A turn that waits, runs, or was set aside."""

    turn_id: str
    seq: int
    status: TurnStatus
    attempts: int
    error: str | None


class Trouble(ResponseModel):
    """What an operator has to know of a session to repair it."""

    session_id: str
    epoch: int
    person: str | None = Field(description="Who answers in place of the assistant.")
    wrong: list[str] = Field(description="What must not be in the state.")
    flows: list[JsonMap] = Field(description="The stack, top last, as it is stored.")
    effects: list[Effect] = Field(description="The ledger, oldest first.")
    approvals: list[Approval] = Field(description="Those that wait.")
    turns: list[UnfinishedTurn]
    fits: list[Fit] = Field(description="Repairs that fit, to be completed and previewed.")


class Preview(ResponseModel):
    """What repairs would come to at this epoch; with `refused` they would not be made."""

    session_id: str
    epoch: int
    done: list[str] = Field(description="What would change, in sentences.")
    told: str | None = Field(description="What the user would be told.")
    refused: list[str] = Field(description="Why they would not be made.")
    wrong: list[str] = Field(description="What would still be wrong.")
    diff: JsonMap = Field(description="The patch of the working state.")


class Repaired(ResponseModel):
    """What became of repairs; `turn_id` is null for what is made at once."""

    session_id: str
    turn_id: str | None
    status: TurnStatus
    epoch: int | None
    done: list[str]
    reply: str | None
    by: str
    why: str
